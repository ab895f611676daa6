"""The lock that lets one writer at a time change governed files.

The lock is a file in the git directory that all work trees of a clone share, and covers only that clone. The operating
system holds the lock, so it cannot outlive its process; the text of the file only tells others who holds it. The file
is never deleted, because then two processes could hold the lock. (`fcntl` costs 0.15 ms to import, the `filelock`
package 26 ms.)
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository

WAIT: Final = 30.0

# The system has no lock with a time limit, so it is asked again, at growing intervals.
_FIRST_PAUSE: Final = 0.002
_LONGEST_PAUSE: Final = 0.05
# What systems report for a lock that someone else holds: EAGAIN on Linux and macOS, the others on Windows.
_HELD: Final = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
# The byte that Windows locks: far behind the text, because nothing can read the locked part.
_FAR: Final = 2**30


@contextmanager
def writer_lock(repository: Repository, command: str, *, wait: float = WAIT) -> Iterator[None]:
    """Become the only writer. If the lock is not free within `wait` seconds, raise WorkpacketError `lock_held`, which
    names its holder.
    """
    path = _lock_path(repository)
    with _opened(path) as file:
        _acquire(file, path, wait)
        _say(file, _who(command))
        try:
            yield
        finally:
            # While the lock is still held, so that the name of the next holder is not erased.
            _say(file, b"")
            with suppress(OSError):  # closing the file releases it too, as does the end of the process
                _release(file)


def writer_at_work(repository: Repository) -> bool:
    """Whether the lock is held now."""
    path = _lock_path(repository)
    if not path.exists():
        return False
    with _opened(path) as file:
        return not _try(file, path)


def _lock_path(repository: Repository) -> Path:
    return repository.common_dir / "workpacket" / "lock"


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        path.parent.mkdir(exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise WorkpacketError(
            "lock_unavailable",
            f"the lock {path} cannot be opened: {error.strerror}",
            hint="Commands that change governed files need write permission for the git directory",
            path=str(path),
        ) from error
    try:
        yield file
    finally:
        # Closing releases the lock even if it fails, and must not hide the error of the command.
        with suppress(OSError):
            os.close(file)


def _acquire(file: int, path: Path, wait: float) -> None:
    until = time.monotonic() + wait
    pause = _FIRST_PAUSE
    while not _try(file, path):
        if time.monotonic() >= until:
            raise WorkpacketError(
                "lock_held",
                f"another command is writing: {_holder(file)}",
                hint="Wait for it to finish, or stop it; its lock is released when the process exits",
                path=str(path),
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _who(command: str) -> bytes:
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    who = {"pid": os.getpid(), "host": _host(), "command": command, "since": since}
    return json.dumps(who).encode()


def _say(file: int, text: bytes) -> None:
    """Record who holds the lock. On a full disk, the lock is held without a record."""
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, text)


def _holder(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    try:
        who = json.loads(os.read(file, 4096))
        return f"{who['command']} (process {who['pid']} on {who['host']}, since {who['since']})"
    except (ValueError, KeyError, TypeError):
        return "an unknown process"


if sys.platform == "win32":
    import msvcrt

    def _try(file: int, path: Path) -> bool:
        os.lseek(file, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            return _refused(error, path)
        return True

    def _host() -> str:
        return os.environ.get("COMPUTERNAME", "this computer")

    def _release(file: int) -> None:
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(file: int, path: Path) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return _refused(error, path)
        return True

    def _host() -> str:
        return os.uname().nodename

    def _release(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


def _refused(error: OSError, path: Path) -> bool:
    if error.errno in _HELD:
        return False
    raise WorkpacketError(
        "unsuitable_file_system",
        f"the file system of {path} cannot lock files: {error.strerror}",
        hint="Clone the repository to a local disk",
        path=str(path),
    ) from error
