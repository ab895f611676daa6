"""A disk in memory that can be killed, filled up and cut from power at any call.

It keeps apart what a running system sees and what would survive a loss of power: contents of a file survive once it is
synced, names once their folder is. Nothing is assumed about anything else: of the names not yet durable any subset may
survive, of contents not yet durable all, half, zeros or nothing. That is harsher than any real file system.

`test_simulated_disk.py` runs one contract over this disk and the real one.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from workpacket.shell.transactions.storage import Contents, Folder, NotRegular


class Killed(BaseException):
    """The process is gone. Not an Exception: nothing in the program may handle it."""


@dataclass(eq=False)
class File:
    content: bytes = b""
    durable: bytes | None = None
    mode: int = 0o644


@dataclass(eq=False)
class Directory:
    entries: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    pending: list[tuple[tuple[str, Node | None], ...]] = field(default_factory=list)

    def change(self, *names: tuple[str, Node | None]) -> None:
        """One atomic change of names; None takes a name away."""
        _apply(self.entries, names)
        self.pending.append(names)


_UNDISTURBED = nullcontext()
Node: TypeAlias = "File | Directory"
Data: TypeAlias = Literal["kept", "lost", "half", "zeroed"]
Fault: TypeAlias = "Literal['kill before', 'kill after', 'kill within'] | int"
Faults: TypeAlias = "Callable[[int, str], Fault | None]"


class SimulatedDisk:
    """`faults(n, method)` says what happens at the n-th call: an errno, a kill, or nothing. `deaf_to` is for controls:
    calls named there report success and make nothing durable."""

    def __init__(self, top: Directory | None = None, *, deaf_to: frozenset[str] = frozenset()) -> None:
        self.top = top if top is not None else Directory()
        self.calls: list[str] = []
        self.faults: Faults = lambda _number, _method: None
        self.largest_write: int | None = None
        self._dead = False
        self._deaf_to = deaf_to
        self._open: dict[int, Node] = {}

    # --- what a test does with the disk ---

    @classmethod
    def holding(cls, files: dict[str, bytes], *folders: str, deaf_to: frozenset[str] = frozenset()) -> SimulatedDisk:
        """A disk on which these files and folders are durable."""
        disk = cls(deaf_to=deaf_to)
        for path in folders:
            disk._folder_at(path.split("/"))
        for path, content in files.items():
            *folder, name = path.split("/")
            disk._folder_at(folder).entries[name] = File(content, content)
        _settle(disk.top)
        return disk

    def files(self, below: str) -> dict[str, bytes | None]:
        """Everything below a folder: path to contents, None for a folder."""
        return dict(_listing(self._folder_at(below.split("/")), ""))

    def after_kill(self) -> SimulatedDisk:
        """The disk as the next process finds it: all that was written is seen, durable or not."""
        return SimulatedDisk(self.top, deaf_to=self._deaf_to)

    def after_power_loss(self, seed: int, samples: int = 6) -> Iterator[SimulatedDisk]:
        """Disks that may be found after a loss of power now."""
        changes = sum(len(folder.pending) for folder in _folders(self.top))
        chance = random.Random(seed)
        kept: list[frozenset[int]] = [frozenset(), frozenset(range(changes))]
        kept += [frozenset(range(changes)) - {one} for one in range(changes)]
        kept += [frozenset({one}) for one in range(changes)]
        kept += [frozenset(n for n in range(changes) if chance.random() < 0.5) for _ in range(samples)]
        dirty = any(
            isinstance(n, File) and n.content != n.durable for f in _folders(self.top) for n in f.entries.values()
        )
        treatments: tuple[Data, ...] = ("kept", "lost", "half", "zeroed") if dirty else ("kept",)
        for which in dict.fromkeys(kept):
            for data in treatments:
                yield SimulatedDisk(_survivor(self.top, which, data), deaf_to=self._deaf_to)

    def _folder_at(self, parts: list[str]) -> Directory:
        here = self.top
        for part in parts:
            found = here.entries.setdefault(part, Directory())
            assert isinstance(found, Directory)
            here = found
        return here

    # --- what the program does with it: see `workpacket.shell.transactions.storage` ---

    def open_top(self, path: Path) -> Folder:
        with self._call("open_top"):
            return self._handle(self._folder_at([path.name]), path.name)

    def open_folder(self, parent: Folder, name: str) -> Folder:
        with self._call("open_folder"):
            found = self._look_up(parent, name)
            if not isinstance(found, Directory):
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
            return self._handle(found, f"{parent.path}/{name}")

    def close_folder(self, folder: Folder) -> None:
        with self._call("close_folder"):
            del self._open[folder.handle]

    def make_folder(self, parent: Folder, name: str) -> None:
        with self._call("make_folder"):
            if name in self._directory(parent).entries:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            self._directory(parent).change((name, Directory()))

    def remove_folder(self, parent: Folder, name: str) -> None:
        with self._call("remove_folder"):
            found = self._look_up(parent, name)
            if isinstance(found, Directory) and found.entries:
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), name)
            self._directory(parent).change((name, None))

    def sync_folder(self, folder: Folder) -> None:
        with self._call("sync_folder"):
            if "sync_folder" not in self._deaf_to:
                directory = self._directory(folder)
                directory.durable = dict(directory.entries)
                directory.pending.clear()

    def names(self, folder: Folder) -> list[str]:
        with self._call("names"):
            return list(self._directory(folder).entries)

    def read(self, folder: Folder, name: str) -> Contents:
        with self._call("read"):
            found = self._look_up(folder, name)
            if not isinstance(found, File):
                raise NotRegular(name)
            return Contents(found.content, found.mode)

    def create(self, folder: Folder, name: str) -> int:
        with self._call("create"):
            directory = self._directory(folder)
            if name in directory.entries:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            directory.change((name, File()))
            return self._handle(directory.entries[name], name).handle

    def write(self, file: int, data: bytes) -> int:
        opened = self._file(file)
        taken = data[: self.largest_write]
        with self._call("write", within=lambda: self._append(opened, taken[: len(taken) // 2])):
            self._append(opened, taken)
            return len(taken)

    def set_mode(self, file: int, mode: int) -> None:
        with self._call("set_mode"):
            self._file(file).mode = mode

    def sync(self, file: int) -> None:
        with self._call("sync"):
            if "sync" not in self._deaf_to:
                self._file(file).durable = self._file(file).content

    def close(self, file: int) -> None:
        with self._call("close"):
            del self._open[file]

    def replace(self, folder: Folder, name: str, new_name: str) -> None:
        with self._call("replace"):
            node = self._look_up(folder, name)
            self._directory(folder).change((name, None), (new_name, node))

    def remove(self, folder: Folder, name: str) -> None:
        with self._call("remove"):
            self._look_up(folder, name)
            self._directory(folder).change((name, None))

    # --- inside ---

    def _call(self, method: str, within: Callable[[], None] = lambda: None) -> AbstractContextManager[None]:
        if self._dead:
            raise Killed
        self.calls.append(method)
        fault = self.faults(len(self.calls), method)
        return _UNDISTURBED if fault is None else _Call(self, fault, within)

    def kill(self) -> Killed:
        self._dead = True
        return Killed()

    def _handle(self, node: Node, path: str) -> Folder:
        handle = max(self._open, default=2) + 1
        self._open[handle] = node
        return Folder(handle, path)

    def _directory(self, folder: Folder) -> Directory:
        found = self._open[folder.handle]
        assert isinstance(found, Directory)
        return found

    def _file(self, handle: int) -> File:
        if self._dead:
            raise Killed
        found = self._open[handle]
        assert isinstance(found, File)
        return found

    def _look_up(self, folder: Folder, name: str) -> Node:
        found = self._directory(folder).entries.get(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return found

    @staticmethod
    def _append(file: File, data: bytes) -> None:
        file.content += data


class _Call(AbstractContextManager[None]):
    """One call: fails or dies before it, does its work, or dies after it."""

    def __init__(self, disk: SimulatedDisk, fault: Fault, within: Callable[[], None]) -> None:
        self._disk = disk
        self._fault = fault
        self._within = within

    def __enter__(self) -> None:
        if isinstance(self._fault, int):
            raise OSError(self._fault, os.strerror(self._fault))
        if self._fault == "kill before":
            raise self._disk.kill()
        if self._fault == "kill within":
            self._within()
            raise self._disk.kill()

    def __exit__(self, *_error: object) -> None:
        if self._fault == "kill after":
            raise self._disk.kill()


def _apply(entries: dict[str, Node], names: tuple[tuple[str, Node | None], ...]) -> None:
    for name, node in names:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _settle(folder: Directory) -> None:
    folder.durable = dict(folder.entries)
    folder.pending.clear()
    for node in folder.entries.values():
        if isinstance(node, Directory):
            _settle(node)


def _listing(folder: Directory, prefix: str) -> Iterator[tuple[str, bytes | None]]:
    for name, node in folder.entries.items():
        if isinstance(node, Directory):
            yield prefix + name, None
            yield from _listing(node, f"{prefix}{name}/")
        else:
            yield prefix + name, node.content


def _folders(folder: Directory) -> Iterator[Directory]:
    """Every folder that is seen or might survive, each once, in an order that does not change."""
    seen: dict[int, Directory] = {}
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen[id(here)] = here
        nodes = [*here.entries.values(), *here.durable.values(), *(n for names in here.pending for _, n in names if n)]
        waiting.extend(node for node in nodes if isinstance(node, Directory))
    yield from seen.values()


def _survivor(top: Directory, kept: frozenset[int], data: Data) -> Directory:
    """What is left of the disk when of the pending changes of names, numbered over all folders, these were kept."""
    names: dict[int, dict[str, Node]] = {}
    number = 0
    for folder in _folders(top):
        entries = dict(folder.durable)
        for change in folder.pending:
            if number in kept:
                _apply(entries, change)
            number += 1
        names[id(folder)] = entries
    survivor = _copy(top, names, data)
    assert isinstance(survivor, Directory)
    _settle(survivor)
    return survivor


def _copy(node: Node, names: dict[int, dict[str, Node]], data: Data) -> Node:
    if isinstance(node, Directory):
        return Directory({name: _copy(child, names, data) for name, child in names[id(node)].items()})
    content = node.content
    if content != node.durable:
        left = {"kept": content, "lost": node.durable or b"", "half": content[: len(content) // 2]}
        content = left.get(data, bytes(len(content)))
    return File(content, content, node.mode)
