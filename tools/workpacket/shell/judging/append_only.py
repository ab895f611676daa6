"""Check that the log, the attestations and the checkpoints of the base are present and unchanged, or that the landing
that added them was reverted as a whole.

A landing is reverted with everything that it added: its events, its envelopes and its code. Rejections and revocations
among the envelopes stay forever, so that no revert restores a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from workpacket.approvals.envelope import EnvelopeFile
from workpacket.git.merging import TrialMerges, trial_merges
from workpacket.git.objects import blob_id, read_blobs
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit, is_ancestor, merge_base
from workpacket.ledger.verify import APPEND_ONLY_FOLDERS, verify_append_only
from workpacket.model.layout import ATTESTATIONS_FOLDER, GOVERNANCE_FOLDER
from workpacket.model.reason_tables.integrity import CHANGE_BY_CODE
from workpacket.problem import Location, Problem
from workpacket.shell.judging.reverts import Revert, reverted
from workpacket.shell.log_files import append_only_paths, committed_ids, read_logged

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
    found = verify_append_only(there, ids)
    head = head_commit(repository)
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


def _taken_back(repository: Repository, trials: TrialMerges, change: tuple[str, str], revert: Revert) -> Iterator[str]:
    """Yield the write-once files that were reverted as a whole; nothing if any part of their landings is left here."""
    before, head = change
    undone, left = trials.differences(before, revert.commit), trials.differences(revert.commit, head)
    removed = {path: undone[path].old for path in undone if path.startswith(_WRITE_ONCE) and not undone[path].new}
    kept = [path for path in undone.keys() & left.keys() if path in removed or not _is_governed(path)]
    if kept or any(_says_no(repository, removed)):
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


def _told(revert: Revert) -> Iterable[Problem]:
    reason = CHANGE_BY_CODE["landing_reverted"]
    for landing in revert.landings:
        what = f"the landing {landing[:12]} is reverted as a whole, with the events that it added"
        yield Problem(reason.code, what, Location(GOVERNANCE_FOLDER), reason.remedy, severity=reason.severity)
