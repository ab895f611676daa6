"""Carry out or undo a journalled transaction, from any mixture of old and new files.

Both directions may be interrupted anywhere and repeated. Each file is replaced by renaming a complete and durable
temporary file; a file that is already in the wanted state is left alone; the names become durable before the journal is
removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, TypeAlias

from workpacket.shell.transactions.journal import Record, write_file
from workpacket.shell.transactions.safe_paths import Tree, split_path
from workpacket.value import Value

Wanted: TypeAlias = Literal["old", "new"]


class Stranger(Value):
    """A file that is in neither its old nor its new state. `data` is None if it is gone."""

    path: str
    data: bytes | None


class ThirdState(Exception):
    """Someone else changed files of the transaction; a person decides which version to keep."""

    def __init__(self, strangers: tuple[Stranger, ...]) -> None:
        super().__init__(", ".join(stranger.path for stranger in strangers))
        self.strangers = strangers


def stage(tree: Tree, record: Record) -> None:
    """Write every new file, complete and durable, next to the one it will replace.

    A full disk or a read-only folder shows here, before anything governed has changed. A deletion stages an empty file,
    to test its folder.
    """
    for folder in record.new_folders:
        with _naming(folder):
            tree.make_folder(split_path(folder))
    for index, entry in enumerate(record.entries):
        _write_temporary(tree, record, index, entry.new or b"")


def strangers(tree: Tree, record: Record) -> tuple[Stranger, ...]:
    found = ((entry, _data(tree, entry.path)) for entry in record.entries)
    return tuple(Stranger(entry.path, data) for entry, data in found if data not in (entry.old, entry.new))


def roll(tree: Tree, record: Record, wanted: Wanted, *, staged: bool = False, overwrite: bool = False) -> None:
    """Bring every file to the `wanted` state; ThirdState, with nothing changed, if one is neither old nor new.

    `staged`: this process created the temporary files. Those of another are created again, because it is unknown
    whether they became durable. `overwrite`: a person has decided about the files in a third state.
    """
    found = () if overwrite else strangers(tree, record)
    if found:
        raise ThirdState(found)
    for index, entry in enumerate(record.entries):
        goal = entry.new if wanted == "new" else entry.old
        with _naming(entry.path):
            if _data(tree, entry.path) == goal:
                _discard(tree, record, index)
            elif goal is None:
                _remove(tree, entry.path)
                _discard(tree, record, index)
            else:
                if not staged:
                    _write_temporary(tree, record, index, goal)
                *folder, name = split_path(entry.path)
                tree.storage.replace(tree.folder(tuple(folder)), record.temporary(index), name)
    if wanted == "new":
        _sync(tree, record)
    else:
        clear(tree, record)


def clear(tree: Tree, record: Record) -> None:
    """Remove what the transaction put next to the governed files: temporary files, and folders still empty."""
    for index in range(len(record.entries)):
        _discard(tree, record, index)
    _sync(tree, record)
    for folder in reversed(record.new_folders):
        parts = split_path(folder)
        if not tree.missing_folders(parts):
            tree.remove_folder_if_empty(parts)
            tree.storage.sync_folder(tree.folder(parts[:-1]))


def _data(tree: Tree, path: str) -> bytes | None:
    contents = tree.read(path)
    return None if contents is None else contents.data


def _write_temporary(tree: Tree, record: Record, index: int, data: bytes) -> None:
    entry = record.entries[index]
    with _naming(entry.path):
        folder = split_path(entry.path)[:-1]
        for missing in tree.missing_folders(folder):
            tree.make_folder(missing)
        _discard(tree, record, index)
        write_file(tree, folder, record.temporary(index), data, entry.mode)


def _discard(tree: Tree, record: Record, index: int) -> None:
    *folder, _name = record.entries[index].path.split("/")
    _remove(tree, "/".join((*folder, record.temporary(index))))


def _remove(tree: Tree, path: str) -> None:
    *folder, name = split_path(path)
    with suppress(FileNotFoundError):
        tree.storage.remove(tree.folder(tuple(folder)), name)


def _sync(tree: Tree, record: Record) -> None:
    """Make the names durable: in every folder that contains a file of the transaction or a folder it created."""
    folders = {split_path(entry.path)[:-1] for entry in record.entries}
    folders |= {split_path(folder)[:-1] for folder in record.new_folders}
    for folder in sorted(folders):
        if not tree.missing_folders(folder):
            tree.storage.sync_folder(tree.folder(folder))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Make a failure of the disk name the governed file, not its temporary file."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise
