"""What lies around the database file: the folder, the file system, the write lock, and the anchor.

The lock is `flock` on a side file. SQLite's own locking lets writers fail in bursts when several begin at once; in
front of it stands this queue, and the kernel empties it when a process dies.

The anchor is the place of the last acknowledged event, written into the same side file after the commit and without a
sync of its own. It can never be ahead of what is durable, so a database that is *behind* it has lost something: a
deleted or damaged write-ahead log, or an old copy put in its place. Behind the anchor stands, for each stream, how far
it had come: which tells what was lost.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import hashlib
import os
import struct
import sys
import threading
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from workpacket.runtime.errors import StorageFailed, StoreUnavailable
from workpacket.runtime.stores.sqlite.rows import LARGEST_VERSION, STREAM_SHIFT

# Locks or durability of these are not what the store rests on.
UNSUITABLE = frozenset(
    {
        "9p", "afs", "afpfs", "ceph", "cifs", "coda", "davfs", "fuse.curlftpfs", "fuse.davfs2",
        "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4",
        "ocfs2", "orangefs", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "webdav",
    }
)  # fmt: skip
_MOUNTS = Path("/proc/self/mountinfo")


def file_system_of(folder: Path) -> str:
    """The type of the file system that holds `folder`; '' where the system does not say."""
    try:
        mounts = _MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split()[2] == wanted:
            return rest.split()[0]
    return ""


def prepare_folder(folder: Path) -> None:
    """Make the folder and sync every new entry on the way to it; refuse a file system that cannot keep a store."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for made in missing:
            sync_folder(made.parent)
    except OSError as error:
        raise StoreUnavailable(f"{folder}: {error.strerror}", code="store_read_only") from None
    kind = file_system_of(folder)
    if kind in UNSUITABLE:
        raise StoreUnavailable(
            f"{folder} is on {kind}, where locks and fsync are not reliable", code="storage_unsuitable"
        )


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Whereabouts:
    """The files of an open store as they were found at their paths: the same ones have to be there ever after.

    What is written to a file that was removed or replaced meanwhile reaches nobody, and SQLite does not notice. The
    paths are looked at, not the open files: a second handle on a database, once closed, gives up SQLite's locks on it.

    Whatever happens to an entry of a folder changes the folder's time of change. So where that is the same as at the
    last look at each file, and was not so young then that a later change could have the same (`_is_past`), one look is
    enough.
    """

    def __init__(self, database: Path, side: Path) -> None:
        real = os.path.realpath(database)  # SQLite follows links before it names the files beside the database
        shown = os.path.abspath(database)  # the program may change its folder
        paths = (shown, f"{real}-wal", f"{real}-shm", os.path.abspath(side))
        self._folder = os.fsencode(os.path.dirname(shown))
        self._in_one_folder = shown == real
        self._files = tuple((path, found.st_dev, found.st_ino) for path in paths for found in [os.stat(path)])
        self._seen: tuple[int, int, int] | None = None  # of the folder: time of change, inode, device

    def missing(self) -> str:
        """Which of them is not at its path any more, and what is there instead; '' if all are."""
        try:
            folder = os.stat(self._folder)
        except OSError as error:
            return f"{os.fsdecode(self._folder)}: {error.strerror}"
        present = (folder.st_ctime_ns, folder.st_ino, folder.st_dev)
        if present == self._seen:
            return ""
        past = self._in_one_folder and _is_past(folder.st_ctime_ns)  # asked first: the files are looked at later
        missing = next(filter(None, (_moved(*file) for file in self._files)), "")
        if past and not missing:
            self._seen = present
        return missing


# How far apart two changes are, in nanoseconds, that certainly have different times: of file systems that keep parts
# of a second, and of those that do not.
_FINE, _COARSE = 25_000_000, 3_000_000_000
# CLOCK_REALTIME_COARSE, which the module `time` does not name: from it Linux takes the times of files.
_COARSE_CLOCK = 5 if sys.platform == "linux" else None


def _is_past(changed: int) -> bool:
    """Whether a change that happens from now on certainly has a later time than this one, or another."""
    # A file system that cuts its times off, as exFAT does to 10 ms, shows no parts of a microsecond.
    if changed % 1000 and _COARSE_CLOCK is not None and time.clock_gettime_ns(_COARSE_CLOCK) > changed:
        return True
    return abs(time.time_ns() - changed) > (_FINE if changed % 1_000_000_000 else _COARSE)


def _moved(path: str, device: int, number: int) -> str:
    try:
        found = os.stat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    same = found.st_ino == number and found.st_dev == device and found.st_nlink > 0
    return "" if same else f"{path} is another file"


class _Turn(threading.Thread):
    """Waits in the kernel's own queue, which is fair, and for a limited time, which the kernel does not offer.

    The holder of the lock may be a stopped process; then this thread waits on, and gives the lock back if it gets it.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="workpacket-turn", daemon=True)
        self._descriptor = descriptor
        self._decision = threading.Lock()
        self._came = threading.Event()
        self._abandoned = False

    def came_within(self, timeout: float) -> bool:
        self.start()
        self._came.wait(timeout)
        with self._decision:
            self._abandoned = not self._came.is_set()
            return not self._abandoned

    def run(self) -> None:
        with suppress(OSError):  # the file was closed meanwhile
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._decision:
            if self._abandoned:
                with suppress(OSError):
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            else:
                self._came.set()


class Reached(NamedTuple):
    """How far a stream had come, and the hash of its name."""

    version: int
    name: bytes


# A slot holds a version and the hash of a name, each with its CRC: the one changes without the other being known.
_FIRST_SLOT, _SLOT, _NAME_PLACE = 64, 32, 12
_VERSION, _CRC = struct.Struct("<Q"), struct.Struct("<I")


def _checked(stored: bytes) -> bytes:
    """The record, if it was written and is whole."""
    record, check = stored[: -_CRC.size], stored[-_CRC.size :]
    return record if any(stored) and check == _CRC.pack(zlib.crc32(record)) else b""


@functools.lru_cache(maxsize=64)
def name_digest(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16]


class SideFile:
    """The lock and the anchor of one database, as seen by one handle of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"{path}: {error.strerror}", code="store_read_only") from None

    def lock(self, timeout: float) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in {errno.EWOULDBLOCK, errno.EINTR}:
                raise StorageFailed(f"{self.path}: {error.strerror}") from None
            self._wait(timeout)

    def unlock(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _wait(self, timeout: float) -> None:
        turn = _Turn(self._descriptor)
        if not turn.came_within(timeout):
            raise StoreUnavailable(f"{self.path} was locked for {timeout:g} s", code="store_busy")

    def anchor(self) -> int | None:
        """The place of the last event that was acknowledged; None if it was never written or is torn."""
        number, _, check = os.pread(self._descriptor, 64, 0).partition(b" ")
        if not number.isdigit() or check[:8] != b"%08x" % zlib.crc32(number):
            return None
        return int(number)

    def set_anchor(self, position: int) -> None:
        number = b"%020d" % position
        try:
            os.pwrite(self._descriptor, b"%b %08x\n" % (number, zlib.crc32(number)), 0)
        except OSError:
            return  # the event is durable already; an anchor that stays behind only knows less

    def acknowledge(self, stream: int, version: int, name: str, *, first: bool) -> None:
        """The event of this stream is durable. Called under the lock, so that nothing is overwritten unseen.

        `first`: another stream may have been the last. How far that one had come is kept before the anchor moves on.
        """
        if first:
            with suppress(OSError):  # like an anchor that stays behind
                before = self.anchor() or 0
                self._put(before >> STREAM_SHIFT, 0, _VERSION.pack(before & LARGEST_VERSION))
                self._put(stream, _NAME_PLACE, name_digest(name))
        self.set_anchor(stream << STREAM_SHIFT | version)

    def _put(self, stream: int, place: int, record: bytes) -> None:
        checked = record + _CRC.pack(zlib.crc32(record))
        os.pwrite(self._descriptor, checked, _FIRST_SLOT + stream * _SLOT + place)

    def reached(self) -> dict[int, Reached]:
        """How far each stream had come, by its number; without those that were never written or are torn."""
        found: dict[int, Reached] = {}
        slots = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, _FIRST_SLOT)
        for number, place in enumerate(range(0, len(slots), _SLOT)):
            version = _checked(slots[place : place + _NAME_PLACE])
            name = _checked(slots[place + _NAME_PLACE : place + _SLOT])
            if version or name:
                found[number] = Reached(_VERSION.unpack(version)[0] if version else 0, name)
        anchor = self.anchor() or 0
        number, last = anchor >> STREAM_SHIFT, anchor & LARGEST_VERSION
        before = found.get(number, Reached(0, b""))
        found[number] = before._replace(version=max(before.version, last))
        return found

    def forget_streams(self) -> None:
        if os.fstat(self._descriptor).st_size > _FIRST_SLOT:
            os.ftruncate(self._descriptor, _FIRST_SLOT)

    def close(self) -> None:
        """Closing twice is closing once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
