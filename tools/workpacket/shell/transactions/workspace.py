"""The two places that a transaction writes in: the work tree, and the git directory with its journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workpacket.git.repository import Repository
from workpacket.shell.transactions.failures import changing_nothing
from workpacket.shell.transactions.journal import Journal
from workpacket.shell.transactions.safe_paths import Tree
from workpacket.shell.transactions.storage import Folder, Storage
from workpacket.value import Value


class TransactionFolders(Value):
    work_tree: Tree
    git_dir: Tree

    @property
    def journal(self) -> Journal:
        return Journal(self.git_dir)


@contextmanager
def open_workspace(repository: Repository, storage: Storage) -> Iterator[TransactionFolders]:
    with (
        Tree(storage, _top(storage, repository.root)) as work_tree,
        Tree(storage, _top(storage, repository.git_dir)) as git_dir,
    ):
        yield TransactionFolders(work_tree, git_dir)


def _top(storage: Storage, path: Path) -> Folder:
    with changing_nothing():
        return storage.open_top(path)
