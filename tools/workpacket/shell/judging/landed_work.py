"""Find judged work that is done because it was merged as it was judged, although no event records its merge.

This is decided once, for the first commit on the target branch that contains the PASS verdict, and later changes do not
undo it. Only the first-parent history of the given commit counts, not other branches or references. Decisions are
cached in the user's home directory, like the claims of envelopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workpacket import __version__
from workpacket.git.merging import TrialMerges, trial_merges
from workpacket.git.objects import FIRST_PARENTS, changes_before
from workpacket.git.repository import Repository, commit_of, is_ancestor, landing_of, resolved
from workpacket.ledger.fold import fold
from workpacket.ledger.log import Log
from workpacket.lifecycle.coverage import Uncovered, is_governance, judging
from workpacket.lifecycle.gates import ends_unjudged, settles_by_landing
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.events import LogEvent
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import Location, Problem
from workpacket.shell.base import landed_at, root_commit, settings_folder
from workpacket.shell.cache import Cache
from workpacket.shell.judging.coverage import Anchors, logs_at, uncovered_paths
from workpacket.shell.work_done import is_described

# A command line has room for this many paths; beyond that, all events are read.
_FEW = 200
_YES, _NO = "landed", "not as it was judged"
_OTHERWISE = frozenset({"landed_otherwise", "changed_after_verdict"})
# The number of landings that an audit examines, newest first.
_MOST = 100


def landed(repository: Repository, tip: str, logs: Mapping[str, Log], policy: LifecyclePolicy) -> frozenset[str]:
    """Return the packets whose work is in the first-parent history of `tip`: as it was judged or, if the policy
    requires no judge, as it was submitted.
    """
    settling = {name: event for name, log in logs.items() if (event := _settling(log, policy)) is not None}
    if not settling or not tip:
        return frozenset()
    arrived = _arrivals(repository, tip, {event.path: name for name, event in settling.items()})
    keys = {name: f"{commit} {settling[name].id}" for name, commit in arrived.items()}
    memory = Cache(str(settings_folder()), __version__, ("landings", root_commit(repository, tip)))
    try:
        known = memory.recall("landed", keys.values())
        with trial_merges(repository) as trials:
            found = {
                key: _decide(repository, trials, arrived[name], settling[name], policy)
                for name, key in keys.items()
                if key not in known
            }
        # Questions that a clone without the judged commit cannot answer may be answered once it is fetched.
        unknown = {key for name, key in keys.items() if key in found and not _is_here(repository, logs[name])}
        memory.keep("landed", ((key, said) for key, said in found.items() if said == _YES or key not in unknown))
    finally:
        memory.close()
    return frozenset(name for name, key in keys.items() if {**known, **found}[key] == _YES)


def _settling(log: Log, policy: LifecyclePolicy) -> LogEvent | None:
    """Return the event whose arrival settles the packet: the verdict, or a submission that needs no verdict."""
    said, state = judging(log), fold(log)
    if said is not None and settles_by_landing(state, policy):
        return said[0]
    return _last_submission(log) if ends_unjudged(state, policy) else None


def _last_submission(log: Log) -> LogEvent | None:
    return next((event for event in reversed(log.events) if event.type == "submitted"), None)


def _is_here(repository: Repository, log: Log) -> bool:
    said = judging(log)
    last = _last_submission(log)
    commit = said[1] if said is not None else (last.text("commit") or "") if last is not None else ""
    return bool(commit) and resolved(repository, f"{commit}^{{commit}}") is not None


def _arrivals(repository: Repository, tip: str, paths: Mapping[str, str]) -> dict[str, str]:
    """Return, by packet, the commit in the first-parent history that added its verdict."""
    wanted = tuple(paths) if len(paths) <= _FEW else (LOG_FOLDER,)
    found: dict[str, str] = {}
    for commit, changes in changes_before(repository, tip, *wanted, options=FIRST_PARENTS, form="%H"):
        for change in changes:
            if change.letter == "A" and change.path in paths:
                found.setdefault(paths[change.path], commit)
    return found


def passed_verdicts(logs: Mapping[str, Log]) -> dict[str, str]:
    """Return the packets whose last verdict is PASS, by the path of that verdict."""
    return {said[0].path: name for name, log in logs.items() if (said := judging(log)) is not None}


def landing_faults(
    repository: Repository, tip: str, passed: Mapping[str, str], policy: LifecyclePolicy, most: int = _MOST
) -> dict[str, list[Uncovered]]:
    """Return, by the commit in the first-parent history that added a verdict (newest first, at most `most`), the
    changes in it that no packet covered at that time, or that were not judged. `passed` are the packets by the path of
    the verdict (see `passed_verdicts`).
    """
    if not passed or not tip:
        return {}
    arrived = _arrivals(repository, tip, passed)
    with trial_merges(repository) as trials:
        commits = list(dict.fromkeys(arrived.values()))[:most]
        return {commit: _faults(repository, trials, commit, policy) for commit in commits}


def merge_faults(repository: Repository, tip: str, log: Log, policy: LifecyclePolicy) -> list[Problem]:
    """Return why the commit that brought this packet's work cannot be recorded as its merge: it differs from what was
    judged."""
    said = judging(log)
    arrived = _arrivals(repository, tip, {said[0].path: log.packet}) if said is not None else {}
    if said is None or not arrived:
        return []
    verdict, commit = said[0], arrived[log.packet]
    with trial_merges(repository) as trials:
        landing = _landing_of(repository, tip, commit, log.submission_before(verdict))
        faults = _faults(repository, trials, landing, policy)
        if landing != commit:
            faults += _landed_otherwise(repository, trials, tip, said[1], log.packet)
    return [
        Problem(one.code, one.message, Location(one.path), f"workpacket packet reopen {log.packet} --reason TEXT")
        for one in dict.fromkeys(faults)
        if one.packet == log.packet and one.code in _OTHERWISE
    ]


def _landing_of(repository: Repository, tip: str, arrived: str, submitted: LogEvent | None) -> str:
    """Return the commit that added the work: the commit with the verdict or, if the verdict was merged first, the next
    one that changes the same paths.
    """
    changed = submitted.texts("changed")[:_FEW] if submitted is not None else ()
    if not changed:
        return arrived
    line = changes_before(repository, tip, *changed, options=(*FIRST_PARENTS, f"^{arrived}^1"), form="%H")
    return next(reversed([commit for commit, _ in line]), arrived)


def _decide(repository: Repository, trials: TrialMerges, commit: str, event: LogEvent, policy: LifecyclePolicy) -> str:
    """Decide whether the merge contains only changes that a packet covered at that time."""
    if event.type == "submitted":
        return _YES if _as_submitted(repository, trials, commit, event) else _NO
    return _NO if _faults(repository, trials, commit, policy) else _YES


def _as_submitted(repository: Repository, trials: TrialMerges, landing: str, event: LogEvent) -> bool:
    """Whether, at the paths that the work changes, the merge has the result of merging the submitted commit into the
    preceding commit.
    """
    commit, changed = event.text("commit") or "", set(event.texts("changed"))
    before = resolved(repository, f"{landing}^1^{{commit}}")
    if before is None:
        return False
    if resolved(repository, f"{commit}^{{commit}}") is None:
        return is_described(repository, event, landing) is True
    trial, anchors = trials.merge(before, commit), Anchors(trials, before)
    # The list in the event is what its writer says: all that git finds counts too.
    work = trials.differences(trials.merge_base(before, commit) or before, commit)
    changed |= {path for path in work if not is_governance(path)}
    differing = changed & trials.differences(trial.tree, landing).keys()
    return all(path in trial.conflicts and anchors.keeps_all(path, (before, commit), landing) for path in differing)


def _faults(repository: Repository, trials: TrialMerges, commit: str, policy: LifecyclePolicy) -> list[Uncovered]:
    before = resolved(repository, f"{commit}^1^{{commit}}")
    if before is None:
        return [Uncovered("landed_otherwise", LOG_FOLDER, "", "it is the first commit, so it has no judged work")]
    changed = trials.differences(before, commit)
    touched = {path.split("/")[2] for path in changed if path.startswith(f"{LOG_FOLDER}/")}
    then = logs_at(repository, commit, touched)
    # The day of the landing: a standing packet that has ended since did cover it then.
    day = landed_at(repository, commit, commit).date()
    found = uncovered_paths(repository, trials, before, commit, then, policy, day)
    for name, log in then.items():
        said = judging(log)
        if said is not None and said[0].path in changed:
            told = {one.path for one in found if (one.code, one.packet) == ("landed_otherwise", name)}
            more = _landed_otherwise(repository, trials, before, said[1], name)
            found += (one for one in more if one.path not in told)
    return found


def _landed_otherwise(
    repository: Repository, trials: TrialMerges, tip: str, judged: str, name: str
) -> Iterator[Uncovered]:
    """Yield differences in work that was merged before `tip`: the paths where the merged content differs from git's
    merge."""
    if resolved(repository, f"{judged}^{{commit}}") is None or not is_ancestor(repository, judged, tip):
        return
    landing = landing_of(repository, tip, judged)
    if landing is None:
        return
    onto = commit_of(repository, f"{landing}^1")
    trial = trials.merge(onto, judged)
    work = trials.differences(trials.merge_base(onto, judged) or onto, judged)
    differing, anchors = trials.differences(trial.tree, landing), Anchors(trials, onto)
    for path in sorted(work.keys() & differing.keys()):
        if anchors.keeps_all(path, (onto, judged), landing):
            continue
        if not is_governance(path) or anchors.rewritten(differing[path]):
            message = f"the judged commit of {name} was merged in {landing[:12]}, which has different content here"
            yield Uncovered("landed_otherwise", path, name, message)
