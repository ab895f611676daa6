"""The two places that a transaction writes in: the work tree, and the git directory with its journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from workpacket.git.repository import Repository
from workpacket.shell.journal import Journal
from workpacket.shell.safe_paths import Tree
from workpacket.shell.storage import Storage


@dataclass(frozen=True, slots=True)
class Workspace:
    work_tree: Tree
    git_dir: Tree

    @property
    def journal(self) -> Journal:
        return Journal(self.git_dir)


@contextmanager
def open_workspace(repository: Repository, storage: Storage) -> Iterator[Workspace]:
    with (
        Tree(storage, storage.open_top(repository.root)) as work_tree,
        Tree(storage, storage.open_top(repository.git_dir)) as git_dir,
    ):
        yield Workspace(work_tree, git_dir)
