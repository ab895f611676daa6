"""Check that the log, the attestations and the checkpoints of the base are present and unchanged, or that the landing
that added them was reverted as a whole.

Nothing is ever deleted from the log except by reverting the whole landing that added it: its events, its envelopes and
its code. The events that a change removes, or restores, identify the landings; the rest of the change is then judged
against the base without these landings, so a partial revert is just a difference from that base. Rejections and
revocations among the envelopes stay forever, so that no revert restores a key; so does a signed amendment or a signed
FAIL while what it decided about stays, so that no revert brings back a contract or work that a person refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from workpacket.approvals.envelope import EnvelopeFile
from workpacket.git.merging import TrialMerges, trial_merges
from workpacket.git.objects import (
    FIRST_PARENTS,
    blob_id,
    changed_paths,
    changes_before,
    list_tree,
    read_blobs,
    read_objects,
    tree_of,
)
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit, is_ancestor, merge_base, reference_tips, resolved
from workpacket.git.run import run_git
from workpacket.ledger.log import fault, is_event_name, read_logs
from workpacket.ledger.verify import verify_append_only
from workpacket.lifecycle.change_checks import dropped_decisions
from workpacket.model.layout import (
    APPEND_ONLY_FOLDERS,
    ATTESTATIONS_FOLDER,
    ENVELOPE_SUFFIX,
    GOVERNANCE_FOLDER,
    LOG_FOLDER,
)
from workpacket.model.plan import FileChange, Moment, Plan, digest
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.model.wording import counted
from workpacket.problem import Location, Problem
from workpacket.shell.base import tree_at
from workpacket.shell.governed_files import append_only_paths, committed_ids, read_logged
from workpacket.shell.transactions.transaction import writing
from workpacket.value import Value

# A command line has room for this many paths; beyond that, all events are read.
_FEW = 200


class Revert(Value):
    """The reverted landings, newest first, and a commit with the base without them."""

    landings: tuple[str, ...]
    commit: str


def reverted(repository: Repository, trials: TrialMerges, base: str, head: str) -> Revert | None:
    """Return what the change from `base` to `head` reverts of the base's own line; None if nothing."""
    undone = {landing: resolved(repository, f"{landing}^1^{{commit}}") for landing in _undone(repository, base, head)}
    # The first commit cannot be reverted: there is nothing before it.
    landings = {landing: before for landing, before in undone.items() if before is not None}
    if not landings:
        return None
    commit = base
    for landing, before in landings.items():
        # Merging a commit that follows the landing and has the tree from before it has the same effect as `git revert`.
        opposite = trials.commit(tree_of(repository, before), landing)
        commit = trials.commit(trials.merge(commit, opposite).tree, commit)
    return Revert(tuple(landings), commit)


def _undone(repository: Repository, base: str, head: str) -> Iterator[str]:
    """Yield the first-parent commits of the base that last added or removed an event and that `head` undoes,
    newest first.
    """
    changes = {change.path: change.letter for change in changed_paths(repository, base, head, LOG_FOLDER)}
    wanted = {path: "A" if letter == "D" else "D" for path, letter in changes.items() if letter in "AD"}
    if not wanted:
        return
    paths = tuple(wanted) if len(wanted) <= _FEW else (LOG_FOLDER,)
    for identity, commit_changes in changes_before(repository, base, *paths, options=FIRST_PARENTS, form="%H"):
        undone = [change.path for change in commit_changes if wanted.get(change.path) == change.letter]
        for path in undone:
            del wanted[path]
        if undone:
            yield identity


_WRITE_ONCE = tuple(f"{folder}/" for folder in APPEND_ONLY_FOLDERS)


def judge_append_only(
    repository: Repository, base: str, ids: Mapping[str, str] | None = None, *, worktree: bool = False
) -> list[Problem]:
    """Return the write-once files of the base that are lost or changed. `ids` are the git ids of those in the work
    tree, if already known; with `worktree`, reverts are not searched for, because they would not be committed yet.
    """
    there, root = committed_ids(repository, base), str(repository.root)
    if ids is None:
        ids = {path: blob_id(read_logged(root, path), base) for path in append_only_paths(root)}
    found, head = verify_append_only(there, ids), head_commit(repository)
    if head is not None and any(each.code == "log_file_deleted" for each in found):
        found = _without_later(repository, (base, head), (there, ids), found)
    if worktree or head is None or not any(each.code == "log_file_deleted" for each in found):
        return found
    with trial_merges(repository) as trials:
        begun = base if is_ancestor(repository, base, head) else merge_base(repository, base, head) or base
        revert = reverted(repository, trials, begun, head)
        if revert is None:
            return found
        taken = frozenset(_taken_back(repository, trials, (begun, head), revert))
    rest = [each for each in found if each.path not in taken]
    return [*rest, *_told(revert)] if taken else found


def _without_later(
    repository: Repository,
    change: tuple[str, str],
    files: tuple[Mapping[str, str], Mapping[str, str]],
    found: list[Problem],
) -> list[Problem]:
    """Report once what landed on the base after the branch of HEAD began, instead of each file as deleted; and packets
    of both that have the same id.
    """
    base, head = change
    begun = merge_base(repository, base, head)
    if begun is None:
        return found
    before, (there, here) = committed_ids(repository, begun), files
    later = {each.path for each in found if each.code == "log_file_deleted" and each.path not in before}
    if not later:
        return found
    known = {path.rpartition("/")[0] for path in there.keys() & here.keys()}
    twins = ({path.rpartition("/")[0] for path in later} & {path.rpartition("/")[0] for path in here}) - known
    taken = [
        fault("log_second_genesis", folder, "the base has another packet with this id")
        for folder in sorted(twins)
        if folder.startswith(f"{LOG_FOLDER}/")
    ]
    reason = CHANGE_BY_CODE["base_not_merged"]
    message = f"the base has {counted(len(later), 'file')} of the log that landed after this branch began"
    ahead = Problem(reason.code, message, Location(GOVERNANCE_FOLDER), reason.remedy, severity=reason.severity)
    return [*(each for each in found if each.path not in later), *taken, ahead]


def _taken_back(repository: Repository, trials: TrialMerges, change: tuple[str, str], revert: Revert) -> Iterator[str]:
    """Yield the write-once files that were reverted as a whole; nothing if any part of their landings is left here."""
    before, head = change
    undone, left = trials.differences(before, revert.commit), trials.differences(revert.commit, head)
    removed = {path: undone[path].old for path in undone if path.startswith(_WRITE_ONCE) and not undone[path].new}
    kept = [path for path in undone.keys() & left.keys() if path in removed or not _is_governed(path)]
    if kept or any(_says_no(repository, removed)) or any(_drops(repository, before, removed)):
        return
    yield from removed


def _is_governed(path: str) -> bool:
    """Whether the path is governed. Board, registry and packets change after a landing, so a revert's version of them
    is generated from the log.
    """
    return path.startswith(f"{GOVERNANCE_FOLDER}/")


def _says_no(repository: Repository, removed: Mapping[str, str]) -> Iterator[bool]:
    """Yield, for each envelope, whether it is unreadable or something other than an approval."""
    folder = f"{ATTESTATIONS_FOLDER}/"
    names = {
        path.removeprefix(folder): row.rpartition(" ")[2] for path, row in removed.items() if path.startswith(folder)
    }
    contents = read_blobs(repository, names.values())
    for name, identity in names.items():
        claim = EnvelopeFile(name, contents[identity]).claim
        yield claim is None or claim.decision != "approve"


def _drops(repository: Repository, before: str, removed: Iterable[str]) -> Iterator[bool]:
    """Yield true for each signed decision among the removed events that would go without what it decided about."""
    events = {path.rpartition("/")[2].removesuffix(".json") for path in removed}
    names = {path.split("/")[2] for path in removed}
    there = {path: blob for name in names for path, blob in tree_at(repository, before, f"{LOG_FOLDER}/{name}").items()}
    contents = read_blobs(repository, there.values())
    logs, _ = read_logs({path: contents[blob] for path, blob in there.items()})
    yield from (True for log in logs.values() for _ in dropped_decisions(log, events))


def _told(revert: Revert) -> Iterable[Problem]:
    reason = CHANGE_BY_CODE["landing_reverted"]
    for landing in revert.landings:
        what = f"the landing {landing[:12]} is reverted as a whole, with the events that it added"
        yield Problem(reason.code, what, Location(GOVERNANCE_FOLDER), reason.remedy, severity=reason.severity)


_EVERY_SIDE = ("--full-history", "-m")
# Git looks at every object that nothing refers to.
_PATIENCE = 1800.0
_AT_ONCE = 500


class LostEvent(Value):
    """A write-once file that is missing or damaged here: its bytes, a name for where git has it, and why it counts as
    lost.
    """

    path: str
    data: bytes
    where: str
    why: str


class _Added(Value):
    """Where a file was added: its blob and the commit."""

    blob: str
    commit: str


def lost_events(repository: Repository, packets: Collection[str] = ()) -> list[LostEvent]:
    """Return the events that are not here although HEAD's history has them, an event here follows them, or no branch
    has them; and the envelopes lost in the same way. With `packets`, only the events of these.
    """
    root = str(repository.root)
    files = {path: read_logged(root, path) for path in append_only_paths(root)}
    here = {path: data for path, data in files.items() if _is_whole(path, data)}
    head = head_commit(repository)
    passed = dict(_added(repository, head)) if head is not None else {}
    known = {**dict(_dangling(repository)), **dict(_added(repository, "", "--all", "--reflog")), **passed}
    elsewhere = _on_branches(repository)
    wanted = {
        path: "HEAD's history has it" if path in passed else "no branch has it"
        for path in known
        if path not in here and (path in passed or path not in elsewhere)
    }
    contents = _contents(repository, known, [path for path in known if path not in here])
    waiting = [*here.values(), *(contents[path] for path in wanted if path in contents)]
    by_name = {path.rpartition("/")[2]: path for path in contents}
    while waiting:
        for parent in _parents(waiting.pop()):
            path = by_name.get(f"{parent}.json", "")
            if path and path not in wanted:
                wanted[path] = "an event here follows it"
                waiting.append(contents[path])
    names = _names_of_commits(repository)
    return [
        LostEvent(
            path, contents[path], names.get(known[path].commit, f"dangling commit {known[path].commit[:12]}"), why
        )
        for path, why in sorted(wanted.items())
        if path in contents and (not packets or path.split("/")[2] in packets)
    ]


def bring_back(repository: Repository, lost: Sequence[LostEvent], moment: Moment) -> tuple[str, ...]:
    """Write the events as git has them, in place of damaged ones too, and return their paths."""
    with writing(repository, "recover") as transaction:
        root = str(repository.root)
        here = frozenset(append_only_paths(root))
        changes = (
            FileChange(each.path, digest(read_logged(root, each.path)) if each.path in here else None, each.data)
            for each in lost
        )
        return transaction.apply(Plan("recover", moment.tx, restored=tuple(changes)))


def _is_whole(path: str, data: bytes) -> bool:
    """Whether the file's name is its digest. A path that no file can be written to, from a forged tree, has none."""
    folder, _, name = path.rpartition("/")
    written_once = (is_event_name(name) or name.endswith(ENVELOPE_SUFFIX)) and ".." not in folder.split("/")
    return written_once and name.startswith(hashlib.sha256(data).hexdigest())


def _added(repository: Repository, commit: str, *options: str) -> Iterator[tuple[str, _Added]]:
    """Yield each write-once file that these commits or their ancestors added or changed."""
    start = commit or next(iter(reference_tips(repository)), "")
    if not start:
        return
    history = changes_before(repository, start, *APPEND_ONLY_FOLDERS, options=(*_EVERY_SIDE, *options), form="%H")
    for identity, changes in history:
        yield from ((change.path, _Added(change.blob, identity)) for change in changes if change.blob)


def _dangling(repository: Repository) -> Iterator[tuple[str, _Added]]:
    """Yield the files added by commits that nothing refers to, until git removes them for good."""
    options = ("--unreachable", "--connectivity-only", "--no-progress")
    answer = run_git(repository.root, "fsck", *options, check=False, timeout=_PATIENCE)
    commits = [row.split(" ")[2] for row in answer.text.splitlines() if row.startswith("unreachable commit ")]
    for start in range(0, len(commits), _AT_ONCE):
        first, *others = commits[start : start + _AT_ONCE]
        yield from _added(repository, first, *others)


def _on_branches(repository: Repository) -> frozenset[str]:
    """Return the write-once files at the tips of all branches and tags."""
    tips = (commit for commit, name in reference_tips(repository).items() if name != "refs/stash")
    return frozenset(entry.path for tip in tips for entry in list_tree(repository, tip, *APPEND_ONLY_FOLDERS))


def _contents(repository: Repository, known: Mapping[str, _Added], paths: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes of those files whose name is their digest; others were damaged in the commit already."""
    found = {path: known[path].blob for path in paths}
    read = read_objects(repository, found.values())
    return {path: read[blob] for path, blob in found.items() if blob in read and _is_whole(path, read[blob])}


def _parents(data: bytes) -> Iterator[str]:
    # A damaged file has no parents that could be trusted; it is reported as damaged elsewhere.
    with suppress(ValueError):
        value = json.loads(data)
        parents = value.get("parents") if isinstance(value, dict) else None
        yield from map(str, parents if isinstance(parents, list) else ())


def _names_of_commits(repository: Repository) -> dict[str, str]:
    """Return a name to show for each commit that a branch, the stash or the reflog leads to."""
    names: dict[str, str] = {}
    for options in (("--all", "--reflog"), ("refs/stash",)):
        answer = run_git(repository.root, "rev-list", *options, check=False)
        label = "refs/stash" if options == ("refs/stash",) else "commit {}"
        names.update((commit, label.format(commit[:12])) for commit in answer.text.split())
    reflog = run_git(repository.root, "log", "--walk-reflogs", "--all", "--format=%H %gD", check=False)
    for row in reversed(reflog.text.splitlines()):
        commit, _, name = row.partition(" ")
        if not name.startswith("refs/stash"):
            names[commit] = name
    listed = run_git(repository.root, "rev-list", "--branches", "--remotes", "--tags", check=False)
    names.update((commit, f"commit {commit[:12]}") for commit in listed.text.split())
    return names
