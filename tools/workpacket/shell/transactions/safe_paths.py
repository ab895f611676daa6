"""Reach files below one folder, component by component, without following a link.

The tree keeps every opened folder until it is closed: each folder is resolved once, so the folder that was checked is
the one that is used.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from types import TracebackType
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.shell.transactions.storage import Contents, Folder, NotRegular, Storage

_LINKS: Final = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
# Control characters, and what Windows treats as a separator or a stream.
_FORBIDDEN: Final = frozenset(map(chr, range(32))) | set("\x7f\\:")


def split_path(path: str) -> tuple[str, ...]:
    """Return the components of a path below the repository; raise WorkpacketError `path_unsafe` for an unsafe one."""
    parts = tuple(path.split("/"))
    for part in parts:
        # On a file system that ignores case, `.GIT` is the git directory, too.
        if part in ("", ".", "..") or part.casefold() == ".git" or not _FORBIDDEN.isdisjoint(part):
            message = f"{path!r} is not a path that may be written"
            raise WorkpacketError("path_unsafe", message, path=path)
    return parts


class Tree:
    """The folders below `top`, opened as needed. Use this in a `with`."""

    def __init__(self, storage: Storage, top: Folder) -> None:
        self.storage = storage
        self._open: dict[tuple[str, ...], Folder] = {(): top}

    def __enter__(self) -> Tree:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            self._close(self._open.popitem()[1])

    def folder(self, parts: tuple[str, ...]) -> Folder:
        """Return the folder at `parts`. Raises FileNotFoundError if it is missing, WorkpacketError if a link is on the
        way.
        """
        opened = self._open.get(parts)
        if opened is None:
            parent = self.folder(parts[:-1])
            try:
                opened = self.storage.open_folder(parent, parts[-1])
            except OSError as error:
                raise _no_folder(error, "/".join(parts)) from error
            self._open[parts] = opened
        return opened

    def missing_folders(self, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the missing folders on the way to `parts`, including `parts`, outermost first."""
        for depth in range(1, len(parts) + 1):
            try:
                self.folder(parts[:depth])
            except FileNotFoundError:
                return [parts[:length] for length in range(depth, len(parts) + 1)]
        return []

    def make_folder(self, parts: tuple[str, ...]) -> None:
        """Create the folder if it is missing, and make its name survive a power failure."""
        parent = self.folder(parts[:-1])
        try:
            self.storage.make_folder(parent, parts[-1])
        # Opening it proves that it is a folder and not a link.
        except FileExistsError:
            self.folder(parts)
        self.storage.sync_folder(parent)

    def remove_folder_if_empty(self, parts: tuple[str, ...]) -> None:
        """Remove the folder, unless it contains something."""
        opened = self._open.pop(parts, None)
        if opened is not None:
            self._close(opened)
        try:
            self.storage.remove_folder(self.folder(parts[:-1]), parts[-1])
        except OSError as error:
            # Someone has put a file into it; some systems say so with EEXIST.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise

    def _close(self, folder: Folder) -> None:
        with suppress(OSError):  # nothing was written through it that closing could lose
            self.storage.close_folder(folder)

    def read(self, path: str) -> Contents | None:
        """Return the regular file at `path`; None if the file or a folder on the way to it is missing."""
        *folders, name = split_path(path)
        try:
            return self.storage.read(self.folder(tuple(folders)), name)
        except FileNotFoundError:
            return None
        except NotRegular as error:
            raise _not_regular(path) from error
        except OSError as error:
            if error.errno in _LINKS:
                raise _not_regular(path) from error
            raise

    def as_stored(self, path: str, data: bytes) -> bytes:
        """Return the bytes of the file at `path` with the line ends that git would store."""
        if b"\r\n" not in data:
            return data
        from workpacket.git.index import as_stored  # few files have CRLF

        return as_stored(self._open[()].path, path, data)

    def names(self, path: str) -> frozenset[str]:
        """Return the names in the folder at `path`; none if it is missing."""
        try:
            return frozenset(self.storage.names(self.folder(split_path(path))))
        except FileNotFoundError:
            return frozenset()


def _no_folder(error: OSError, path: str) -> OSError | WorkpacketError:
    if error.errno in _LINKS:
        return WorkpacketError(
            "path_is_link",
            f"{path} is a link or not a folder; nothing is written through it",
            hint=f"replace {path} with a folder",
            path=path,
        )
    return error


def _not_regular(path: str) -> WorkpacketError:
    return WorkpacketError("path_not_a_file", f"{path} is a link, a folder or a device, not a file", path=path)
