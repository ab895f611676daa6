"""Landings that a change reverts or restores as a whole. An event may only be deleted from the log by reverting the
whole landing that added it, including its code. The events that a change removes, or restores, identify the landings;
the rest of the change is then judged against the base without these landings. A partial revert is then just a
difference from that base.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.git.merging import TrialMerges
from workpacket.git.objects import FIRST_PARENTS, changed_paths, changes_before, tree_of
from workpacket.git.repository import Repository
from workpacket.git.revisions import resolved
from workpacket.model.layout import LOG_FOLDER
from workpacket.value import Value

# A command line has room for this many paths; beyond that, all events are read.
_FEW = 200


class Revert(Value):
    """The reverted landings, newest first, and a commit with the base without them."""

    landings: tuple[str, ...]
    commit: str


def reverted(repository: Repository, trials: TrialMerges, base: str, head: str) -> Revert | None:
    """Return what the change from `base` to `head` reverts of the base's own line; None if it reverts nothing."""
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
