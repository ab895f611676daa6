"""Every disk operation of a transaction, one method each, and the ways in which it can fail.

Nothing is decided here: at this interface, the tests kill the process, fill the disk and cut the power. A folder is
kept open by a descriptor, and its contents are named relative to it, so that no path component is looked up twice;
below the starting folder, no link is ever followed.

Windows has no such descriptors and uses `storage_windows`, with the same methods.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from workpacket.errors import WorkpacketError
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
        from workpacket.shell.transactions.storage_windows import WindowsStorage

        return WindowsStorage()
    return PosixStorage()


def _flush(handle: int) -> None:
    """Make written data durable. On macOS, fsync leaves it in the drive's cache; only F_FULLFSYNC flushes that."""
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
    """Return the operating system's message, with the file concerned."""
    words = os.strerror(error.errno) if error.errno else str(error)
    return f"{error.filename}: {words}" if error.filename else words


def _code(error: OSError) -> str:
    if error.errno in _NO_ROOM:
        return "no_space_left"
    return "permission_denied" if error.errno in _FORBIDDEN else "disk_failed"
