"""The surroundings of the database file: the folder, the file system, the write lock, and the anchor.

The lock is `flock` on a side file. With SQLite's own locking, writers fail in bursts when several begin at the same
time. This lock queues them first, and the kernel releases it when a process dies.

The anchor is the position of the last acknowledged event, written to the same side file after the commit, without a
separate sync. It can never be ahead of what is durable, so a database *behind* it has lost something: its write-ahead
log was deleted or damaged, or an old copy was put in its place. After the anchor, the side file records how far each
stream had come, which shows what was lost.
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

# The store cannot rely on the locks or the durability of these.
UNSUITABLE = frozenset(
    {
        "9p", "afs", "afpfs", "ceph", "cifs", "coda", "davfs", "fuse.curlftpfs", "fuse.davfs2",
        "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4",
        "ocfs2", "orangefs", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "webdav",
    }
)  # fmt: skip
_MOUNTS, _LOCKS = Path("/proc/self/mountinfo"), Path("/proc/locks")


def file_system_of(folder: Path) -> str:
    """Return the type of the file system that contains `folder`; '' if the system does not report it."""
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
    """Create the folder and sync every new entry on its path; refuse a file system that is unsuitable for a store."""
    # Found before they are created: the name of each is durable only once the folder above it is synced.
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
    """The files of an open store, which must remain at the paths where they were found.

    Writes to a file that was removed or replaced are lost, and SQLite does not detect that. The paths are checked, not
    the open files, because closing a second handle on a database drops SQLite's locks on it.

    Any change to an entry of a folder updates the folder's change time. If that time is the same as when the files were
    last checked, and was not so recent then that a later change could share it (`_is_past`), checking the folder is
    sufficient.
    """

    def __init__(self, database: Path, side: Path) -> None:
        real = os.path.realpath(database)  # SQLite resolves links before it names the files next to the database
        shown = os.path.abspath(database)  # the program may change its working directory
        paths = (shown, f"{real}-wal", f"{real}-shm", os.path.abspath(side))
        self._folder = os.fsencode(os.path.dirname(shown))
        self._in_one_folder = shown == real
        self._files = tuple((path, found.st_dev, found.st_ino) for path in paths for found in [os.stat(path)])
        self._seen: tuple[int, int, int] | None = None  # of the folder: change time, inode, device

    def missing(self) -> str:
        """Return which file is no longer at its path, and what is there instead; '' if all files are in place."""
        try:
            folder = os.stat(self._folder)
        except OSError as error:
            return f"{os.fsdecode(self._folder)}: {error.strerror}"
        present = (folder.st_ctime_ns, folder.st_ino, folder.st_dev)
        if present == self._seen:
            return ""
        past = self._in_one_folder and _is_past(folder.st_ctime_ns)  # read first: the files are checked later
        missing = next(filter(None, (_moved(*file) for file in self._files)), "")
        if past and not missing:
            self._seen = present
        return missing


# How far apart two changes must be, in nanoseconds, to have different times: on file systems that store fractions of a
# second, and on those that do not.
_FINE, _COARSE = 25_000_000, 3_000_000_000
# CLOCK_REALTIME_COARSE, which the module `time` does not name: Linux takes file times from it.
_COARSE_CLOCK = 5 if sys.platform == "linux" else None


def _is_past(changed: int) -> bool:
    """Whether every later change is certain to get a time other than this one."""
    # A file system that truncates times, as exFAT does to 10 ms, shows no fractions of a microsecond.
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


_WAL_HEADER, _WAL_FRAME = struct.Struct(">8I"), struct.Struct(">6I")


def damaged_frame(log: Path) -> str:
    """Return which page of a write-ahead log is damaged, if SQLite ignores later pages because of it; otherwise ''.

    A log that was cut off, or begun again, ends with pages of an older log or with nothing, which does not count as
    damage.
    """
    try:
        content = log.read_bytes()
    except OSError:
        return ""
    if len(content) < _WAL_HEADER.size:
        return ""
    magic, _, page, _, *salts, _, _ = _WAL_HEADER.unpack_from(content)
    sums = _wal_sums((0, 0), content[: _WAL_HEADER.size - 8], magic)
    size = _WAL_FRAME.size + page
    bad = 0
    for number, place in enumerate(range(_WAL_HEADER.size, len(content) - size + 1, size), start=1):
        _, _, *frame_salts, first, second = _WAL_FRAME.unpack_from(content, place)
        if bad and frame_salts == salts:
            return f"page {bad} of {log.name} is damaged, so the pages after it cannot be used"
        if not bad:
            frame = content[place : place + size]
            sums = _wal_sums(_wal_sums(sums, frame[:8], magic), frame[_WAL_FRAME.size :], magic)
            bad = number if sums != (first, second) or frame_salts != salts else 0
    return ""


def _wal_sums(sums: tuple[int, int], data: bytes, magic: int) -> tuple[int, int]:
    """Continue SQLite's checksum over the data, in the byte order stated in the log."""
    one, two = sums
    words = struct.unpack(f"{'>' if magic & 1 else '<'}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two


class _Turn(threading.Thread):
    """Waits in the kernel's own queue, which is fair, but adds a timeout, which the kernel does not offer. If the lock
    holder is a stopped process, this thread continues to wait, and releases the lock as soon as it gets it.
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
        with suppress(OSError):  # the file was closed in the meantime
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._decision:
            if self._abandoned:
                with suppress(OSError):
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            else:
                self._came.set()


class Reached(NamedTuple):
    """The progress of a stream, and the hash of its name."""

    version: int
    name: bytes


# A slot holds a version and the hash of a name, each with its CRC: one changes without reading the other.
_FIRST_SLOT, _SLOT, _NAME_PLACE = 64, 32, 12
_VERSION, _CRC = struct.Struct("<Q"), struct.Struct("<I")


def _checked(stored: bytes) -> bytes:
    """Return the record if it exists and is intact."""
    record, check = stored[: -_CRC.size], stored[-_CRC.size :]
    return record if any(stored) and check == _CRC.pack(zlib.crc32(record)) else b""


@functools.lru_cache(maxsize=64)
def name_digest(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16]


class SideFile:
    """The lock and the anchor of one database, as seen by one handle in one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A link in place of the lock would make two stores share it, or write into any file of the user.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"{path}: {error.strerror}", code="store_read_only") from None

    def lock(self, timeout: float) -> None:
        try:
            # Nearly always free; only a writer that has to wait starts a thread.
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
            pid = self._locked_by()
            by, hint = "", ""
            if pid:
                by = f" by process {pid}"
                hint = (
                    f"wait for process {pid} or end it (kill {pid}), then start the program again: nothing was written"
                )
            raise StoreUnavailable(f"{self.path} was locked for {timeout:g} s{by}", code="store_busy", hint=hint)

    def _locked_by(self) -> int:
        """Return the process that holds the lock; 0 if the system does not say."""
        status = os.fstat(self._descriptor)
        file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        try:
            rows = _LOCKS.read_text("ascii").splitlines()
        except OSError:
            return 0
        # As in `7: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`; a process that waits has an arrow after the number.
        held = [words for words in map(str.split, rows) if words[1:2] == ["FLOCK"] and words[5:6] == [file]]
        return max(int(held[0][4]), 0) if held else 0

    def anchor(self) -> int | None:
        """Return the position of the last acknowledged event; None if it was never written or is incomplete."""
        number, _, check = os.pread(self._descriptor, 64, 0).partition(b" ")
        if not number.isdigit() or check[:8] != b"%08x" % zlib.crc32(number):
            return None
        return int(number)

    def set_anchor(self, position: int) -> None:
        # Of fixed length: a torn write never leaves the end of an older, longer number behind.
        number = b"%020d" % position
        try:
            os.pwrite(self._descriptor, b"%b %08x\n" % (number, zlib.crc32(number)), 0)
        except OSError:
            return  # the event is already durable; an anchor that lags behind only knows less

    def acknowledge(self, stream: int, version: int, name: str, *, first: bool) -> None:
        """Record that the event in this stream is durable. Called under the lock, so that no other record is
        overwritten. `first` means that the last event may belong to a different stream; that stream's progress is
        recorded before the anchor moves on.
        """
        if first:
            with suppress(OSError):  # as with an anchor that lags behind
                before = self.anchor() or 0
                self._put(before >> STREAM_SHIFT, 0, _VERSION.pack(before & LARGEST_VERSION))
                self._put(stream, _NAME_PLACE, name_digest(name))
        self.set_anchor(stream << STREAM_SHIFT | version)

    def _put(self, stream: int, place: int, record: bytes) -> None:
        checked = record + _CRC.pack(zlib.crc32(record))
        os.pwrite(self._descriptor, checked, _FIRST_SLOT + stream * _SLOT + place)

    def reached(self) -> dict[int, Reached]:
        """Return the progress of each stream, by number; streams without a complete record are left out."""
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
        """Close the file; closing it twice is harmless."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
