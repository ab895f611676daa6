"""The storage calls of a program, recorded with strace, and the states in which a crash may leave its files.

After a kill, everything that was written is there. After a loss of power only what was synced is certain; of the rest
the disk may have nothing, all of it, a first part, a random part, half of the last write, or zeros in its place. Names
and contents are kept apart, because a file whose folder was not synced may be missing, and a renamed file whose content
was not synced may be empty. Writes through mmap are not seen.
"""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
SYNCS = ("fsync", "fdatasync", "sync_file_range", "msync")
NAMES = ("unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat")
TRACED = ("openat", "open", "creat", "read", "lseek", "ftruncate", "truncate", *WRITES, *SYNCS, *NAMES)
_LINE = re.compile(r"^\d+ +(?P<call>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_FILE = re.compile(r"^(?P<number>\d+)<(?P<path>[^>]*)>")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Operation(NamedTuple):
    """What happened to a file: create, write, truncate, sync, sync_folder, rename (from the name in `data`), delete. Or
    `told`, what the program wrote to its output.

    `call` is the storage call and `number` says how often the program had made it by then.
    """

    what: str
    file: int = 0
    name: str = ""
    offset: int = 0
    data: bytes = b""
    call: str = ""
    number: int = 0


class Recording:
    """Reads the log of strace; `operations` are those on the files of the folder, in order."""

    def __init__(self, log: str, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.operations: list[Operation] = []
        self._files: dict[str, int] = {}  # the names at this moment
        self._sizes: dict[int, int] = {}
        self._at: dict[str, int] = {}  # the position of each open file
        self._appends: set[str] = set()
        self._durable: set[str] = set()  # files opened so that each write is a sync
        self._counts: dict[str, int] = {}
        with open(log, encoding="ascii", errors="replace") as lines:
            for line in lines:
                match = _LINE.match(line)
                if match is not None:
                    self._counts[match["call"]] = self._counts.get(match["call"], 0) + 1
                    if int(match["result"]) >= 0:
                        self._one(match["call"], match["arguments"], int(match["result"]))

    def _one(self, call: str, arguments: str, result: int) -> None:
        file = _FILE.match(arguments)
        number = file["number"] if file else ""
        path = _decoded(file["path"]) if file else ""
        if call in {"write", "writev"} and number == "1":
            self._add("told", call, data=_data(arguments))
        elif call in {"open", "openat", "creat"}:
            self._opened(call, arguments, str(result))
        elif call in NAMES or call == "truncate":
            self._renamed(call, arguments)
        elif path == self.folder or path.startswith(self.folder + os.sep):
            self._changed(call, arguments, result, number, path[len(self.folder) + 1 :])

    def _opened(self, call: str, arguments: str, number: str) -> None:
        flags = "O_CREAT|O_TRUNC" if call == "creat" else arguments
        path = _decoded(_TEXT.findall(arguments)[0])
        folder = re.match(r"[\w-]+<([^>]*)>", arguments)
        name = self._name(os.path.join(_decoded(folder[1]), path) if folder else path)
        if name is None:
            return
        if name not in self._files and "O_CREAT" in flags:
            self._files[name] = len(self._sizes) + 1
            self._sizes[self._files[name]] = 0
            self._add("create", call, name, self._files[name])
        elif name in self._files and "O_TRUNC" in flags:
            self._sizes[self._files[name]] = 0
            self._add("truncate", call, name, self._files[name])
        self._at[number] = 0
        (self._appends.add if "O_APPEND" in flags else self._appends.discard)(number)
        (self._durable.add if re.search(r"O_D?SYNC", flags) else self._durable.discard)(number)

    def _changed(self, call: str, arguments: str, result: int, number: str, name: str) -> None:
        file = self._files.get(name, 0)
        if call in SYNCS:
            self._add("sync" if file else "sync_folder", call, name, file)
        elif not file:
            return
        elif call == "lseek":
            self._at[number] = result
        elif call == "read":
            self._at[number] = self._at.get(number, 0) + result
        elif call == "ftruncate":
            self._sizes[file] = int(arguments.rsplit(", ", 1)[1])
            self._add("truncate", call, name, file, self._sizes[file])
        elif call in WRITES:
            self._written(call, arguments, result, number, name, file)

    def _written(self, call: str, arguments: str, result: int, number: str, name: str, file: int) -> None:
        data = _data(arguments)[:result]
        if call.startswith("pwrite"):
            offset = int(re.findall(r", (\d+)", arguments)[-1])
        else:
            offset = self._sizes[file] if number in self._appends else self._at.get(number, 0)
            self._at[number] = offset + result
        self._sizes[file] = max(self._sizes[file], offset + result)
        self._add("write", call, name, file, offset, data)
        if number in self._durable:
            self._add("sync", call, name, file)

    def _renamed(self, call: str, arguments: str) -> None:
        names = [self._name(_decoded(text)) for text in _TEXT.findall(arguments)]
        first = names[0]
        if call == "truncate":
            if first in self._files:
                self._sizes[self._files[first]] = int(arguments.rsplit(", ", 1)[1])
                self._add("truncate", call, first, self._files[first], self._sizes[self._files[first]])
            return
        file = 0 if first is None else self._files.get(first, 0)
        if first is None or not file:
            return
        if not call.startswith("link"):
            del self._files[first]
        target = names[1] if len(names) > 1 else None
        if target is None:
            self._add("delete", call, first)
        else:
            self._files[target] = file
            old = b"" if call.startswith("link") else first.encode("utf-8", "surrogateescape")
            self._add("rename", call, target, file, data=old)

    def _name(self, path: str) -> str | None:
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        return path[len(self.folder) + 1 :] if path.startswith(self.folder + os.sep) else None

    def _add(
        self, what: str, call: str, name: str = "", file: int = 0, offset: int = 0, data: bytes = b""
    ) -> None:  # fmt: skip
        self.operations.append(Operation(what, file, name, offset, data, call, self._counts[call]))


def _decoded(text: str) -> str:
    return str(ast.literal_eval(f'b"{text}"').decode("utf-8", "surrogateescape"))


def _data(arguments: str) -> bytes:
    """Return the data of a write: of one text, or of several for `writev`."""
    return b"".join(ast.literal_eval(f'b"{text}"') for text in _TEXT.findall(arguments.partition(">")[2]))


Files = dict[str, bytes]
_OF_NAMES = frozenset({"create", "rename", "delete"})


@dataclass
class Disk:
    """What is on the disk for certain, and the changes since then in order."""

    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    pending: list[Operation] = field(default_factory=list)

    def apply(self, operation: Operation) -> None:
        if operation.what == "sync":
            self._settle(lambda one: one.what in {"write", "truncate"} and one.file == operation.file)
        elif operation.what == "sync_folder":
            self._settle(
                lambda one: one.what in _OF_NAMES and os.path.dirname(one.name) == operation.name
            )  # fmt: skip
        elif operation.what != "told":
            self.pending.append(operation)

    def _settle(self, certain: Callable[[Operation], bool]) -> None:
        done = [one for one in self.pending if certain(one)]
        self.pending = [one for one in self.pending if not certain(one)]
        _perform(self.names, self.contents, done)

    def after_a_kill(self) -> Files:
        return self._with(self.pending)

    def after_a_loss_of_power(self, chance: random.Random) -> Iterator[Files]:
        pending = self.pending
        names = [one for one in pending if one.what in _OF_NAMES]
        contents = [one for one in pending if one.what not in _OF_NAMES]
        yield self._with([])
        yield self._with(pending)
        yield self._with(names)
        yield self._with(contents)
        yield self._with(pending[: chance.randint(0, len(pending))])
        yield self._with([*names, *(one for one in contents if chance.random() < 0.5)])
        if contents and contents[-1].what == "write":
            last = contents[-1]
            rest = [one for one in pending if one is not last]
            yield self._with([*rest, last._replace(data=last.data[: len(last.data) // 2])])
            yield self._with([*rest, last._replace(data=bytes(len(last.data)))])

    def _with(self, operations: list[Operation]) -> Files:
        names, contents = dict(self.names), dict(self.contents)
        _perform(names, contents, operations)
        return {name: contents.get(file, b"") for name, file in names.items()}


def _perform(names: dict[str, int], contents: dict[int, bytes], operations: list[Operation]) -> None:
    for one in operations:
        content = contents.get(one.file, b"")
        if one.what == "create":
            names[one.name] = one.file
        elif one.what == "rename":
            names.pop(one.data.decode("utf-8", "surrogateescape"), None)
            names[one.name] = one.file
        elif one.what == "delete":
            names.pop(one.name, None)
        elif one.what == "truncate":
            contents[one.file] = content[: one.offset].ljust(one.offset, b"\0")
        else:
            content = content.ljust(one.offset, b"\0")
            contents[one.file] = content[: one.offset] + one.data + content[one.offset + len(one.data) :]


def files_in(folder: str) -> Files:
    found: Files = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def put_files(folder: str, files: Files) -> None:
    """Replace whatever is in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
