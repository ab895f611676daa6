"""What git says about a checkpoint: whether its commit is part of this history, and whether the work tree has only the
run's own changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.git.objects import commit_with_trailer, holds_changes_of, status, taken_back, tree_of, trees_before
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of, head_commit, is_ancestor
from workpacket.model.canonical import Json
from workpacket.model.checkpoint_commit import TRAILER
from workpacket.model.layout import LOG_FOLDER
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.state import CheckpointRecord
from workpacket.runtime.resume.observe import GitRelation, Observations

# Files that the runtime itself writes into a work tree: they never count as foreign changes and are never committed.
OWN_FOLDERS: Final = (".workpacket", ".runr", LOG_FOLDER)


class GitObserver:
    """Observes git. With `promise`, checkpoints require their commit, and a clean work tree if it is clean when they
    are made.

    `own` lists the folders and files that the run itself writes, relative to the top of the work tree: they are never
    foreign.
    """

    def __init__(self, repository: Repository, *, own: tuple[str, ...] = (), promise: bool = True) -> None:
        self._repository = repository
        self._own = own
        self._promise = promise

    def preconditions(self) -> Mapping[str, Json]:
        if not self._promise:
            return {}
        head = head_commit(self._repository)
        if head is None:
            raise RunBlocked("there is no commit yet that a checkpoint could name", code="check_not_run",
                             hint="commit something with git, then try again")  # fmt: skip
        return {"commit": head, "tree": tree_of(self._repository, head), "clean": not self.foreign_changes()}

    def look(self, seen: Observations, point: CheckpointRecord | None) -> Observations:
        if point is None or "commit" not in point.preconditions:
            return seen
        promised = point.preconditions
        commit, tree, trailer = (str(promised.get(name, "")) for name in ("commit", "tree", "trailer"))
        own = promised.get("own")
        seen = replace(seen, git=self.relation(commit, tree, trailer))
        return replace(seen, foreign_changes=self.foreign_changes(own if isinstance(own, list) else ()))

    def relation(self, commit: str, tree: str = "", trailer: str = "") -> GitRelation:
        """Return how the present history relates to a recorded commit, which may survive only by its tree
        or trailer.
        """
        head = head_commit(self._repository)
        if head is None:
            return "unreachable"
        if head == commit:
            return "exact"
        known = self._exists(commit)
        if known and is_ancestor(self._repository, commit, head):
            return "unreachable" if taken_back(self._repository, commit, head) else "ahead"
        if tree and tree in trees_before(self._repository, head, commit if known else ""):
            return "content_equal"
        if known and holds_changes_of(self._repository, commit, head):
            return "rewritten"
        found = commit_with_trailer(self._repository, head, TRAILER, trailer) if trailer else None
        return "rewritten" if found is not None else "unreachable"

    def foreign_changes(self, own: Iterable[object] = ()) -> tuple[str, ...]:
        """Return the changes that `git status` shows outside the run's own files: those in the observer's list, and
        those in the given `own`.
        """
        folders = (*self._own, *map(str, own))
        return tuple(entry.path for entry in status(self._repository) if not within(entry.path, folders))

    def _exists(self, commit: str) -> bool:
        try:
            commit_of(self._repository, commit)
        except WorkpacketError:
            return False
        return True


def within(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of these files, or below one of these folders; '.' contains everything."""
    return any(own in {".", path} or path.startswith(f"{own.rstrip('/')}/") for own in folders)
