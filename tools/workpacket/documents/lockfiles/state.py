"""The lock files and manifests of one moment: of a commit, or of the work tree."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.documents.lockfiles.dependencies import LOCKFILE, Dependencies
from workpacket.documents.lockfiles.formats import format_of, read_dependencies
from workpacket.text.fault import Fault
from workpacket.text.source import Source
from workpacket.value import Value


class Unreadable(Value):
    """A file that says nothing that may be believed. `at` tells in which of the two states it stands."""

    path: str
    at: str
    line: int
    column: int
    message: str


class State:
    """`files` gives each path its bytes, or a sentence that says why it has none. Each file is read once.

    `label` is what a person calls this moment.
    """

    def __init__(self, label: str, files: Mapping[str, bytes | str]) -> None:
        self.label = label
        self.files = files
        self._read: dict[str, Dependencies | Unreadable] = {}
        self._sources: dict[str, Source] = {}

    def __contains__(self, path: str) -> bool:
        return path in self.files

    def source(self, path: str) -> Source:
        if path not in self._sources:
            data = self.files.get(path, b"")
            self._sources[path] = Source.from_bytes(path, data if isinstance(data, bytes) else b"")
        return self._sources[path]

    def read(self, path: str) -> Dependencies | Unreadable:
        """What the file says; of one that is not there, nothing."""
        if path not in self._read:
            self._read[path] = self._examined(path)
        return self._read[path]

    def asked_below(self, folder: str, names: tuple[str, ...]) -> Mapping[str, str] | Unreadable | None:
        """What the manifests of these names at and below `folder` ask for, parts of a workspace too. None: no one."""
        found: dict[str, str] = {}
        any_there = False
        for path in sorted(self.files):
            inside, _, name = path.rpartition("/")
            if (
                name not in names
                or format_of(path) is None
                or not f"{inside}/".startswith(f"{folder}/" if folder else "")
            ):
                continue
            read = self.read(path)
            if isinstance(read, Unreadable):
                return read
            any_there = True
            for asked, requirement in (read.direct or {}).items():
                found[asked] = " | ".join(dict.fromkeys(filter(None, (found.get(asked), requirement))))
        return found if any_there else None

    def _examined(self, path: str) -> Dependencies | Unreadable:
        if path not in self.files:
            return Dependencies(direct={})
        data = self.files[path]
        if isinstance(data, str):
            return Unreadable(path, self.label, 0, 0, data)
        if len(data) > LOCKFILE.size:
            return Unreadable(path, self.label, 0, 0, LOCKFILE.size_fault(0).message)
        known = format_of(path)
        assert known is not None, f"{path} is of no known format"
        read = read_dependencies(self.source(path), known)
        if isinstance(read, Fault):
            line, column = self.source(path).line_and_column(min(read.start, len(self.source(path).text)))
            return Unreadable(path, self.label, line, column, read.message)
        return read
