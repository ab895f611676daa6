"""The journal of one transaction: one file that contains every change, with the bytes before and after.

Because it is one file, only one thing must be made durable, and its name shows how far the transaction has come:

    <tx>.draft    being prepared; nothing governed has changed
    <tx>.intent   committed; it will be carried out, if necessary by the next command
    <tx>.back     being undone; it will be completed, if necessary by the next command

It is in the git directory of the work tree, out of reach of `git clean`. The first line contains the digest of
everything that follows, so a journal is trusted in full or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from workpacket.digests import sha256
from workpacket.git.repository import Repository
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.layout import TEMPORARY_PREFIX
from workpacket.problem import WorkpacketError
from workpacket.shell.transactions import JOURNAL_FOLDER
from workpacket.shell.transactions.storage import Folder, Storage, Tree, changing_nothing
from workpacket.value import Value

Stage: TypeAlias = Literal["draft", "intent", "back"]
_STAGES: Final[dict[str, Stage]] = {"draft": "draft", "intent": "intent", "back": "back"}
# Other names in the folder, such as copies that someone made, are left alone.
_NAME: Final = lazy_pattern(r"([0-9a-f-]{36})\.(draft|intent|back)")
# Part of what the digest is compared with, so a journal of a later format is refused as damaged and not misread.
_MAGIC: Final = b"workpacket-journal 1 "


class Entry(Value):
    """One file: its bytes before and after (None: no file), and the permission bits it had."""

    path: str
    old: bytes | None
    new: bytes | None
    mode: int | None


class Record(Value):
    """A transaction as stored in the journal. `new_folders` are the folders that it creates, outermost first."""

    tx: str
    command: str
    entries: tuple[Entry, ...]
    new_folders: tuple[str, ...]

    def temporary(self, index: int) -> str:
        """Return the temporary name of the new file for entry `index`, before it replaces the old one."""
        return f"{TEMPORARY_PREFIX}{self.tx}-{index}.tmp"


class JournalDamaged(ValueError):
    """Raised if the bytes are not a journal."""


class Journal:
    """The journal's folder, in the git directory at the top of `tree`."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def prepare(self) -> None:
        """Create the folder. This is repeated every time: a process that died may have created the folder without
        making it durable.
        """
        for depth in range(1, len(JOURNAL_FOLDER) + 1):
            self._tree.make_folder(JOURNAL_FOLDER[:depth])

    def pending(self) -> list[tuple[str, Stage]]:
        """Return the unfinished transactions, oldest first, each with its stage."""
        names = self._tree.names("/".join(JOURNAL_FOLDER))
        # Ids are version 7 UUIDs, which sort by time.
        found = [match.groups() for name in sorted(names) if (match := _NAME.fullmatch(name))]
        return [(tx, _STAGES[stage]) for tx, stage in found]

    def read(self, tx: str, stage: Stage) -> Record:
        """Read a record; raise JournalDamaged if the file is not intact."""
        contents = self._tree.read("/".join((*JOURNAL_FOLDER, f"{tx}.{stage}")))
        return decode(contents.data if contents is not None else b"", tx)

    def write_draft(self, record: Record) -> None:
        """Write the draft durably before anything is staged, so that staged files can always be removed."""
        write_file(self._tree, JOURNAL_FOLDER, f"{record.tx}.draft", encode(record))
        self.confirm()

    def turn(self, tx: str, here: Stage, there: Stage) -> None:
        """Rename the journal. Renaming a draft to an intent is the commit: from then on, the transaction will be
        completed.
        """
        self._tree.storage.replace(self._tree.folder(JOURNAL_FOLDER), f"{tx}.{here}", f"{tx}.{there}")
        self.confirm()

    def confirm(self) -> None:
        """Make the current names durable: the process that wrote them may have died before doing so."""
        self._tree.storage.sync_folder(self._tree.folder(JOURNAL_FOLDER))

    def remove(self, tx: str, stage: Stage) -> None:
        self._tree.storage.remove(self._tree.folder(JOURNAL_FOLDER), f"{tx}.{stage}")
        self.confirm()


def write_file(tree: Tree, folder: tuple[str, ...], name: str, data: bytes, mode: int | None = None) -> None:
    """Write a new file durably; its name becomes durable with its folder."""
    storage = tree.storage
    file = storage.create(tree.folder(folder), name)
    try:
        rest = memoryview(data)
        while rest:
            # A write may accept fewer bytes than it was given, for example when the disk is nearly full.
            rest = rest[storage.write(file, bytes(rest)) :]
        if mode is not None:
            storage.set_mode(file, mode)
        storage.sync(file)
    finally:
        storage.close(file)


def encode(record: Record) -> bytes:
    header: Json = {
        "tx": record.tx,
        "command": record.command,
        "new_folders": list(record.new_folders),
        "entries": [
            {"path": e.path, "old": _described(e.old), "new": _described(e.new), "mode": e.mode} for e in record.entries
        ],
    }
    # The bytes before are included, because git may never have seen them: undoing needs nothing else.
    blobs = b"".join(blob for e in record.entries for blob in (e.old, e.new) if blob is not None)
    body = canonical_bytes(header) + b"\n" + blobs
    return _MAGIC + sha256(body).hexdigest().encode() + b"\n" + body


def decode(data: bytes, tx: str) -> Record:
    first, _, body = data.partition(b"\n")
    if first != _MAGIC + sha256(body).hexdigest().encode():
        raise JournalDamaged(tx)
    line, _, blobs = body.partition(b"\n")
    header = json.loads(line)
    # An intact journal under another name, such as a copy, must not be carried out a second time.
    if header["tx"] != tx:
        raise JournalDamaged(tx)
    entries = []
    position = 0
    for row in header["entries"]:
        old, position = _blob(blobs, position, row["old"])
        new, position = _blob(blobs, position, row["new"])
        entries.append(Entry(row["path"], old, new, row["mode"]))
    return Record(tx, header["command"], tuple(entries), tuple(header["new_folders"]))


def damaged(tx: str, stage: Stage) -> WorkpacketError:
    name = "/".join((*JOURNAL_FOLDER, f"{tx}.{stage}"))
    return WorkpacketError(
        "journal_damaged",
        f"the journal of transaction {tx} is damaged; nothing was changed",
        hint=f"Compare the work tree with git, then remove the file: git rev-parse --git-path {name}",
        path=name,
    )


def _described(blob: bytes | None) -> Json:
    return None if blob is None else {"size": len(blob), "sha256": sha256(blob).hexdigest()}


def _blob(blobs: bytes, position: int, described: dict[str, Any] | None) -> tuple[bytes | None, int]:
    if described is None:
        return None, position
    end = position + described["size"]
    return blobs[position:end], end


class TransactionFolders(Value):
    """The two places to which a transaction writes: the work tree, and the git directory with its journal."""

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
