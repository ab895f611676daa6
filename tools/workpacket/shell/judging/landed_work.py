"""Judged work that is done because it landed as it was judged, though no event records its merge.

This is decided once, for the first commit of the target branch that holds the verdict PASS, and later changes do not
undo it. Only the line of the given commit counts: no other branch, and no reference. Decisions are cached in the
person's own folder, like the claims of envelopes.
"""

from __future__ import annotations

from collections.abc import Mapping

from workpacket import __version__
from workpacket.git.merging import TrialMerges, trial_merges
from workpacket.git.objects import FIRST_PARENTS, changes_before
from workpacket.git.repository import Repository
from workpacket.git.revisions import resolved
from workpacket.ledger.fold import fold
from workpacket.ledger.log import Log, join_events
from workpacket.lifecycle.coverage import judging
from workpacket.lifecycle.gates import settles_by_landing
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.events import LogEvent
from workpacket.model.layout import LOG_FOLDER
from workpacket.shell.base import landed_at, root_commit, settings_folder, tree_at
from workpacket.shell.cache import Cache
from workpacket.shell.judging.coverage import uncovered_paths

# A command line has room for this many paths; beyond that, all events are read.
_FEW = 200
_YES, _NO = "landed", "not as it was judged"


def landed(repository: Repository, tip: str, logs: Mapping[str, Log], policy: LifecyclePolicy) -> frozenset[str]:
    """Return the packets waiting for their merge whose work is on the line that ends at `tip`, as it was judged."""
    verdicts: dict[str, LogEvent] = {}
    for name, log in logs.items():
        said = judging(log)
        if said is not None and settles_by_landing(fold(log), policy):
            verdicts[name] = said[0]
    if not verdicts or not tip:
        return frozenset()
    arrived = _arrivals(repository, tip, {event.path: name for name, event in verdicts.items()})
    keys = {name: f"{commit} {verdicts[name].id}" for name, commit in arrived.items()}
    memory = Cache(str(settings_folder()), __version__, ("landings", root_commit(repository, tip)))
    try:
        known = memory.recall("landed", keys.values())
        with trial_merges(repository) as trials:
            found = {
                key: _decide(repository, trials, arrived[name], logs, policy)
                for name, key in keys.items()
                if key not in known
            }
        memory.keep("landed", found.items())
    finally:
        memory.close()
    return frozenset(name for name, key in keys.items() if {**known, **found}[key] == _YES)


def _arrivals(repository: Repository, tip: str, paths: Mapping[str, str]) -> dict[str, str]:
    """Return by packet the commit of the line that brought its verdict."""
    wanted = tuple(paths) if len(paths) <= _FEW else (LOG_FOLDER,)
    found: dict[str, str] = {}
    for commit, changes in changes_before(repository, tip, *wanted, options=FIRST_PARENTS, form="%H"):
        for change in changes:
            if change.letter == "A" and change.path in paths:
                found.setdefault(paths[change.path], commit)
    return found


def _decide(
    repository: Repository, trials: TrialMerges, commit: str, logs: Mapping[str, Log], policy: LifecyclePolicy
) -> str:
    """Decide. The landing must not contain anything that no packet covered at the time."""
    before = resolved(repository, f"{commit}^1^{{commit}}")
    if before is None:
        return _NO
    touched = {path.split("/")[2] for path in trials.differences(before, commit) if path.startswith(f"{LOG_FOLDER}/")}
    then: dict[str, Log] = {}
    for name in touched & logs.keys():
        there = tree_at(repository, commit, f"{LOG_FOLDER}/{name}")
        then[name] = join_events(name, [event for event in logs[name].events if event.path in there])
    # The day of the landing: a standing packet that ended since did answer then.
    day = landed_at(repository, commit, commit).date()
    return _NO if uncovered_paths(repository, trials, before, commit, then, policy, day) else _YES
