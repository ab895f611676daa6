"""Check that the log, the attestations and the checkpoints of the base are present and unchanged, or that the landing
that added them was reverted as a whole.

Nothing is ever deleted from the log except by reverting the whole landing that added it: its events, its envelopes and
its code. The events that a change removes, or restores, identify the landings; the rest of the change is then judged
against the base without these landings, so a partial revert is just a difference from that base. Rejections and
revocations among the envelopes stay forever, so that no revert restores a key; so does a signed amendment or a signed
FAIL while what it decided about stays, so that no revert brings back a contract or work that a person refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from workpacket.approvals.envelope import EnvelopeFile
from workpacket.git.merging import TrialMerges, trial_merges
from workpacket.git.objects import (
    FIRST_PARENTS,
    blob_id,
    changed_paths,
    changes_before,
    read_blobs,
    tree_of,
)
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit, is_ancestor, merge_base, resolved
from workpacket.ledger.log import fault, read_logs
from workpacket.ledger.verify import verify_append_only
from workpacket.lifecycle.change_checks import dropped_decisions
from workpacket.model.layout import (
    APPEND_ONLY_FOLDERS,
    ATTESTATIONS_FOLDER,
    GOVERNANCE_FOLDER,
    LOG_FOLDER,
)
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.model.wording import counted
from workpacket.problem import Location, Problem
from workpacket.shell.base import tree_at
from workpacket.shell.governed_files import append_only_paths, committed_ids, read_logged
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
        fault("log_second_genesis", folder, "the base has a different packet with this id")
        for folder in sorted(twins)
        if folder.startswith(f"{LOG_FOLDER}/")
    ]
    reason = CHANGE_BY_CODE["base_not_merged"]
    message = f"the base has {counted(len(later), 'file')} of the log that were merged after this branch began"
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
        what = f"the merge {landing[:12]} is reverted as a whole, with the events that it added"
        yield Problem(reason.code, what, Location(GOVERNANCE_FOLDER), reason.remedy, severity=reason.severity)
