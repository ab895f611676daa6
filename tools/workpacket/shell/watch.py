"""Detect that a repository has changed: by a command here or elsewhere, by git, or in an editor.

Nothing is read: a check looks only at the times of files that git and the journal of commands write and, less often, at
those of each governed document and of each folder of the log. How long a check took determines how often it can be
repeated. On Linux, the system also tells when something in these folders was written (inotify), so that the check is
made at once; the regular ones go on, because a file system that other machines write to tells nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Final

from workpacket.documents.places import ROOTS
from workpacket.git.repository import Repository
from workpacket.model.layout import LOG_FOLDER
from workpacket.shell.transactions import JOURNAL_FOLDER

# Looking at these costs at most this share of one processor. The log has less: git and the journal tell of every event
# that git or a command brings.
_OF_DOCUMENTS: Final = 0.018
_OF_LOG: Final = 0.004
# How often to look at the few files that commands and git always touch.
_PAUSE: Final = 0.2
# Where the system tells of changes, looking is needed less often.
_CALMER: Final = 2
# How long to wait after a notice, because most changes consist of several writes.
SETTLED: Final = 0.05
# Two looks are never closer than this.
SPACED: Final = 0.15
_OF_GIT: Final = ("HEAD", "index", "MERGE_HEAD", "logs/HEAD")
_OF_ALL_WORK_TREES: Final = ("packed-refs", "config")
_FITS: Final = 2**63 - 1  # a file can have any time at all


class Watched:
    """One repository. `also` are other files that matter, such as the run store."""

    def __init__(self, repository: Repository, also: tuple[str, ...] = ()) -> None:
        root, git_dir, common = map(str, (repository.root, repository.git_dir, repository.common_dir))
        journal = "/".join((git_dir, *JOURNAL_FOLDER))
        self._few = (
            *(f"{git_dir}/{name}" for name in _OF_GIT),
            *(f"{common}/{name}" for name in _OF_ALL_WORK_TREES),
            journal,
            *also,
        )
        self._references = f"{common}/refs"
        self._documents = tuple(f"{root}/{folder}" for folder in ROOTS)
        self.notices = Notices([git_dir, f"{git_dir}/logs", common, journal], [self._references, *self._documents])
        less = _CALMER if self.notices.is_complete else 1
        self.pause = _PAUSE * less
        self._slow = [
            _Slow(self._documents, f"{root}/{LOG_FOLDER}", _OF_DOCUMENTS / less),
            _Slow([f"{root}/{LOG_FOLDER}"], "", _OF_LOG / less),
        ]

    def hear(self) -> bool:
        """Whether something may have changed since the last call. Then the next look is at everything concerned."""
        folders = self.notices.heard()
        if any(path.startswith(self._documents) for path in folders):
            for each in self._slow:
                each.is_due = True
        return bool(folders)

    def look(self) -> str:
        """Return a digest that changes once something in the repository has changed."""
        few = array("q")
        for path in self._few:
            _add(path, few)
        _add_below([self._references], few)
        return blake2b(few.tobytes() + b"".join(each.look() for each in self._slow), digest_size=16).hexdigest()


# From <sys/inotify.h>: IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE.
_WRITTEN: Final = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200
_ONLY_FOLDERS: Final = 0x01000000  # IN_ONLYDIR
_OVERFLOW, _IS_FOLDER, _COMES = 0x4000, 0x40000000, 0x100 | 0x80
_NONBLOCKING: Final = os.O_NONBLOCK | os.O_CLOEXEC if sys.platform == "linux" else 0
_HEAD: Final = struct.Struct("iIII")


class Notices:
    """What the system tells about writes in some folders, and in some others with everything below them. `descriptor`
    becomes readable with each notice; it is -1 where the system tells nothing. `is_complete`: the system tells about
    every folder; it may limit their number.
    """

    def __init__(self, folders: Iterable[str], trees: Iterable[str]) -> None:
        self.descriptor = -1
        self.is_complete = False
        self._paths: dict[int, str] = {}
        self._trees = tuple(trees)
        if sys.platform != "linux":
            return
        with suppress(OSError, AttributeError):
            self._library = ctypes.CDLL(None, use_errno=True)
            self.descriptor = self._library.inotify_init1(_NONBLOCKING)
            self.is_complete = self.descriptor >= 0
            for folder in folders:
                self._add(folder)
            for tree in self._trees:
                self._add_tree(tree)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1

    def heard(self) -> frozenset[str]:
        """Return the folders that were written to since the last call."""
        found: set[str] = set()
        for number, mask, name in self._events():
            folder = self._paths.get(number, "")
            if mask & _OVERFLOW:  # some notices were lost
                found.update(self._paths.values())
            elif folder and not name.endswith(".lock"):  # git's next version of a file, which is renamed when complete
                found.add(folder)
                if mask & _IS_FOLDER and mask & _COMES and folder.startswith(self._trees):
                    self._add_tree(f"{folder}/{name}")
        return frozenset(found)

    def _events(self) -> Iterator[tuple[int, int, str]]:
        while self.descriptor >= 0:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except OSError:
                return
            at = 0
            while at < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size + length
                yield number, mask, os.fsdecode(data[at - length : at].rstrip(b"\0"))

    def _add(self, folder: str) -> bool:
        number: int = self._library.inotify_add_watch(
            self.descriptor, os.fsencode(folder), ctypes.c_uint32(_WRITTEN | _ONLY_FOLDERS)
        )
        if number >= 0:
            self._paths[number] = folder
        elif ctypes.get_errno() not in (errno.ENOENT, errno.ENOTDIR):
            self.is_complete = False
        return number >= 0

    def _add_tree(self, top: str) -> None:
        """Add a folder and all below it, until the system allows no more."""
        waiting = [top]
        while waiting:
            current = waiting.pop()
            if not self._add(current):
                continue
            with suppress(OSError), os.scandir(current) as entries:
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


class _Slow:
    """Folders with many files, except what is below `but`."""

    def __init__(self, folders: Sequence[str], but: str, share: float) -> None:
        self._folders, self._but, self._share = folders, but, share
        self._seen = b""
        self._due = 0.0
        self.is_due = True

    def look(self) -> bytes:
        """Return the last result, or check again if that is due."""
        if self.is_due or time.monotonic() >= self._due:
            self.is_due = False
            began = time.thread_time()
            times = array("q")
            _add_below(self._folders, times, self._but)
            self._seen = times.tobytes()
            self._due = time.monotonic() + (time.thread_time() - began) / self._share
        return self._seen


def _add(path: str, times: array[int]) -> None:
    try:
        status = os.stat(path)
    except OSError:
        times.append(0)
        return
    times.extend((status.st_ctime_ns & _FITS, (status.st_mtime_ns ^ status.st_size) & _FITS))


def _add_below(folders: Sequence[str], times: array[int], but: str = "") -> None:
    """Add the times of everything below some folders, without following links. In the log, only folders are examined:
    adding or removing an event changes the time of its folder.
    """
    waiting = [*folders]
    while waiting:
        current = waiting.pop()
        if current == but:
            continue
        _add(current, times)
        in_log = current.endswith(f"/{LOG_FOLDER}")
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if not in_log and entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        status = entry.stat(follow_symlinks=False)
                        times.append((status.st_ctime_ns ^ status.st_mtime_ns << 1) & _FITS)
        except OSError as error:
            times.append(error.errno or 0)
