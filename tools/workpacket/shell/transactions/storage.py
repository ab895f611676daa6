"""Every disk operation of a transaction, one method each, the ways in which it can fail, and how files below one folder
are reached, component by component, without following a link.

Nothing is decided here: at this interface, the tests kill the process, fill the disk and cut the power. A folder is
kept open by a descriptor, and its contents are named relative to it, so that no path component is looked up twice;
below the starting folder, no link is ever followed. The tree keeps every opened folder until it is closed: the folder
that was checked is the one that is used.

Windows has no such descriptors: folders are named by path there, and cannot be flushed. The guarantees are weaker, as
`doctor` reports: a power failure may lose the last transaction (but never half of a recovered one), and a link created
between check and use would be followed.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol

from workpacket.problem import WorkpacketError
from workpacket.value import Value

# Constants that are missing on Windows are never used there.
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_RDONLY
# Opening a named pipe would block; with O_NONBLOCK it opens, and is then refused as not a regular file.
_READ: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_RDONLY
# O_EXCL refuses whatever has the name already, links included.
_CREATE: Final = getattr(os, "O_NOFOLLOW", 0) | os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Folder(Value):
    """An open folder: its descriptor (-1 where the platform has none) and its path, for messages."""

    handle: int
    path: str


class Contents(Value):
    """A regular file as it was read."""

    data: bytes
    mode: int


class NotRegular(OSError):
    """Raised if a name belongs to something other than a regular file."""


class Storage(Protocol):
    """The disk operations that a transaction requires. A missing file is FileNotFoundError; all other failures are
    OSError.
    """

    def open_top(self, path: Path) -> Folder: ...
    def open_folder(self, parent: Folder, name: str) -> Folder: ...
    def close_folder(self, folder: Folder) -> None: ...
    def make_folder(self, parent: Folder, name: str) -> None: ...
    def remove_folder(self, parent: Folder, name: str) -> None: ...
    def sync_folder(self, folder: Folder) -> None: ...
    def names(self, folder: Folder) -> list[str]: ...
    def read(self, folder: Folder, name: str) -> Contents: ...
    def create(self, folder: Folder, name: str) -> int: ...
    def write(self, file: int, data: bytes) -> int: ...
    def set_mode(self, file: int, mode: int) -> None: ...
    def sync(self, file: int) -> None: ...
    def close(self, file: int) -> None: ...
    def replace(self, folder: Folder, name: str, new_name: str) -> None: ...
    def remove(self, folder: Folder, name: str) -> None: ...


class PosixStorage:
    """The disk on Linux and macOS. Python repeats interrupted calls itself (PEP 475)."""

    def open_top(self, path: Path) -> Folder:
        # Links above the repository are the user's own choice, so this path may contain them.
        return Folder(os.open(path, os.O_RDONLY | os.O_DIRECTORY), str(path))

    def open_folder(self, parent: Folder, name: str) -> Folder:
        return Folder(os.open(name, _FOLDER, dir_fd=parent.handle), f"{parent.path}/{name}")

    def close_folder(self, folder: Folder) -> None:
        os.close(folder.handle)

    def make_folder(self, parent: Folder, name: str) -> None:
        os.mkdir(name, dir_fd=parent.handle)

    def remove_folder(self, parent: Folder, name: str) -> None:
        os.rmdir(name, dir_fd=parent.handle)

    def sync_folder(self, folder: Folder) -> None:
        _flush(folder.handle)

    def names(self, folder: Folder) -> list[str]:
        with os.scandir(folder.handle) as entries:
            return [entry.name for entry in entries]

    def read(self, folder: Folder, name: str) -> Contents:
        file = os.open(name, _READ, dir_fd=folder.handle)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise NotRegular(f"{folder.path}/{name}")
            pieces = []
            while piece := os.read(file, max(found.st_size + 1, 4096)):
                pieces.append(piece)
            return Contents(b"".join(pieces), stat.S_IMODE(found.st_mode))
        finally:
            os.close(file)

    def create(self, folder: Folder, name: str) -> int:
        return os.open(name, _CREATE, 0o666, dir_fd=folder.handle)

    def write(self, file: int, data: bytes) -> int:
        return os.write(file, data)

    def set_mode(self, file: int, mode: int) -> None:
        os.fchmod(file, mode)

    def sync(self, file: int) -> None:
        _flush(file)

    def close(self, file: int) -> None:
        os.close(file)

    def replace(self, folder: Folder, name: str, new_name: str) -> None:
        os.replace(name, new_name, src_dir_fd=folder.handle, dst_dir_fd=folder.handle)

    def remove(self, folder: Folder, name: str) -> None:
        os.unlink(name, dir_fd=folder.handle)


def platform_storage() -> Storage:
    if sys.platform == "win32":
        return WindowsStorage()
    return PosixStorage()


def _flush(handle: int) -> None:
    """Make written data durable. On macOS, fsync leaves the data in the drive's cache; only F_FULLFSYNC flushes it."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        except OSError:
            os.fsync(handle)  # some file systems do not support F_FULLFSYNC
        return
    os.fsync(handle)


# EDQUOT: the disk has room, but the quota of this user is used up.
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_REMEDIES: Final = {
    "no_space_left": "Free some disk space, then run the command again",
    "permission_denied": "Make sure that you have write permission, then run the command again",
    "disk_failed": "Check the disk, then run the command again",
}


def nothing_changed(error: OSError) -> WorkpacketError:
    """Return the error for a disk operation that failed before anything changed."""
    code = _code(error)
    message = f"{said(error)}; nothing was changed"
    return WorkpacketError(code, message, hint=_REMEDIES[code], path=str(error.filename or ""))


@contextmanager
def changing_nothing() -> Iterator[None]:
    """Wrap code that only reads or prepares: a disk failure there leaves everything unchanged."""
    try:
        yield
    except OSError as error:
        raise nothing_changed(error) from error


def changed_meanwhile(path: str) -> WorkpacketError:
    """Return the error for a file that someone else changed first; nothing is written."""
    return WorkpacketError(
        "changed_meanwhile",
        f"{path} was changed by someone else after it was read; nothing was written",
        hint="Review the change, then run the command again",
        path=path,
    )


def unfinished(command: str, tx: str, error: Exception) -> WorkpacketError:
    """Return the error for a disk that failed after the commit and again while the change was being undone. The journal
    records how to continue.
    """
    reason = said(error) if isinstance(error, OSError) else str(error)
    return WorkpacketError(
        "transaction_unfinished",
        f"{command} ({tx}) is committed but could not be finished: {reason}",
        hint="The next command that writes completes it; or choose: workpacket log recover --forward|--back",
    )


def said(error: OSError) -> str:
    """Return the operating system's message, with the file that it concerns."""
    words = os.strerror(error.errno) if error.errno else str(error)
    return f"{error.filename}: {words}" if error.filename else words


def _code(error: OSError) -> str:
    if error.errno in _NO_ROOM:
        return "no_space_left"
    return "permission_denied" if error.errno in _FORBIDDEN else "disk_failed"


_LINKS: Final = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
# Control characters, and what Windows treats as a separator or a stream.
_NEVER_IN_NAMES: Final = frozenset(map(chr, range(32))) | set("\x7f\\:")


def split_path(path: str) -> tuple[str, ...]:
    """Return the components of a path below the repository; raise WorkpacketError `path_unsafe` if the path is
    unsafe."""
    parts = tuple(path.split("/"))
    for part in parts:
        # On a file system that ignores case, `.GIT` is the git directory, too.
        if part in ("", ".", "..") or part.casefold() == ".git" or not _NEVER_IN_NAMES.isdisjoint(part):
            message = f"{path!r} is not a path that can be written to"
            raise WorkpacketError("path_unsafe", message, path=path)
    return parts


# Many systems allow a process 256 or 1,024 open files, and a repository can have ten thousand packets.
_MOST_READ = 64


class Tree:
    """The folders below `top`, opened as needed. Use this in a `with` block."""

    def __init__(self, storage: Storage, top: Folder) -> None:
        self.storage = storage
        self._open: dict[tuple[str, ...], Folder] = {(): top}
        # Folders that were opened only to read from them, the oldest first. Others may still be in use by the caller.
        self._read: dict[tuple[str, ...], None] = {}

    def __enter__(self) -> Tree:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            self._close(self._open.popitem()[1])

    def folder(self, parts: tuple[str, ...]) -> Folder:
        """Return the folder at `parts`. Raises FileNotFoundError if it is missing, or WorkpacketError if its path
        contains a link.
        """
        self._read.pop(parts, None)
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
        """Return the missing folders on the path to `parts`, including `parts`, outermost first."""
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
        """Remove the folder if it is empty."""
        opened = self._open.pop(parts, None)
        if opened is not None:
            self._close(opened)
        try:
            self.storage.remove_folder(self.folder(parts[:-1]), parts[-1])
        except OSError as error:
            # Someone has put a file into it; some systems say so with EEXIST.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise

    def _folder_to_read(self, parts: tuple[str, ...]) -> Folder:
        """Like `folder`, for a caller that does not use the folder after its next call."""
        unused = parts in self._read or parts not in self._open
        opened = self.folder(parts)
        if unused:
            self._read[parts] = None
            if len(self._read) > _MOST_READ:
                oldest = next(iter(self._read))
                del self._read[oldest]
                self._close(self._open.pop(oldest))
        return opened

    def _close(self, folder: Folder) -> None:
        with suppress(OSError):  # nothing was written through it that closing could lose
            self.storage.close_folder(folder)

    def read(self, path: str) -> Contents | None:
        """Return the regular file at `path`; None if the file or a folder on its path is missing."""
        *folders, name = split_path(path)
        try:
            return self.storage.read(self._folder_to_read(tuple(folders)), name)
        except FileNotFoundError:
            return None
        except NotRegular as error:
            raise _not_regular(path) from error
        except OSError as error:
            if error.errno in _LINKS:
                raise _not_regular(path) from error
            raise

    def as_stored(self, path: str, data: bytes) -> bytes:
        """Return the bytes of the file at `path` with the line endings that git would store."""
        if b"\r\n" not in data:
            return data
        from workpacket.git.index import as_stored  # few files have CRLF

        return as_stored(self._open[()].path, path, data)

    def names(self, path: str) -> frozenset[str]:
        """Return the names in the folder at `path`; none if it is missing."""
        try:
            return frozenset(self.storage.names(self._folder_to_read(split_path(path))))
        except FileNotFoundError:
            return frozenset()


def _no_folder(error: OSError, path: str) -> OSError | WorkpacketError:
    if error.errno in _LINKS:
        return WorkpacketError(
            "path_is_link",
            f"{path} is a link, or is not a folder; nothing is written through it",
            hint=f"replace {path} with a folder",
            path=path,
        )
    return error


def _not_regular(path: str) -> WorkpacketError:
    return WorkpacketError("path_not_a_file", f"{path} is a link, a folder or a device, not a file", path=path)


# A virus scanner or an indexer may keep a file open for a moment; replacing the file fails until then.
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class WindowsStorage:
    def open_top(self, path: Path) -> Folder:
        if not path.is_dir():
            raise NotADirectoryError(str(path))
        return Folder(-1, str(path))

    def open_folder(self, parent: Folder, name: str) -> Folder:
        path = Path(parent.path, name)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or _is_link(found):
            raise NotADirectoryError(str(path))
        return Folder(-1, str(path))

    def close_folder(self, folder: Folder) -> None:
        pass

    def make_folder(self, parent: Folder, name: str) -> None:
        Path(parent.path, name).mkdir()

    def remove_folder(self, parent: Folder, name: str) -> None:
        Path(parent.path, name).rmdir()

    def sync_folder(self, folder: Folder) -> None:
        pass

    def names(self, folder: Folder) -> list[str]:
        return [entry.name for entry in Path(folder.path).iterdir()]

    def read(self, folder: Folder, name: str) -> Contents:
        path = Path(folder.path, name)
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or _is_link(found):
            raise NotRegular(str(path))
        return Contents(path.read_bytes(), stat.S_IMODE(found.st_mode))

    def create(self, folder: Folder, name: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
        return os.open(Path(folder.path, name), flags, 0o666)

    def write(self, file: int, data: bytes) -> int:
        return os.write(file, data)

    def set_mode(self, file: int, mode: int) -> None:
        pass

    def sync(self, file: int) -> None:
        os.fsync(file)

    def close(self, file: int) -> None:
        os.close(file)

    def replace(self, folder: Folder, name: str, new_name: str) -> None:
        old, new = Path(folder.path, name), Path(folder.path, new_name)
        for pause in _PAUSES:
            try:
                old.replace(new)
            except PermissionError:
                time.sleep(pause)
            else:
                return
        old.replace(new)

    def remove(self, folder: Folder, name: str) -> None:
        Path(folder.path, name).unlink()


def _is_link(found: os.stat_result) -> bool:
    """Whether the path is a symbolic link or a junction; the attribute exists only on Windows."""
    reparse_point = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400)
    return bool(getattr(found, "st_file_attributes", 0) & reparse_point)
