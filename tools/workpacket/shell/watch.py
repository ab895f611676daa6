"""Detect that a repository has changed: by a command here or elsewhere, by git, or in an editor.

Nothing is read: a check looks only at the times of files that git and the journal of commands write and, less often, at
those of each governed document and of each folder of the log. How long a check took determines how often it can be
repeated.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Sequence
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
PAUSE: Final = 0.3
_OF_GIT: Final = ("HEAD", "index", "MERGE_HEAD", "logs/HEAD")
_OF_ALL_WORK_TREES: Final = ("packed-refs", "config")
_FITS: Final = 2**63 - 1  # a file can have any time at all


class Watched:
    """One repository. `also` are other files that matter, such as the run store."""

    def __init__(self, repository: Repository, also: tuple[str, ...] = ()) -> None:
        root, git_dir, common = map(str, (repository.root, repository.git_dir, repository.common_dir))
        self._few = (
            *(f"{git_dir}/{name}" for name in _OF_GIT),
            *(f"{common}/{name}" for name in _OF_ALL_WORK_TREES),
            "/".join((git_dir, *JOURNAL_FOLDER)),
            *also,
        )
        self._references = f"{common}/refs"
        self._slow = [
            _Slow([f"{root}/{folder}" for folder in ROOTS], f"{root}/{LOG_FOLDER}", _OF_DOCUMENTS),
            _Slow([f"{root}/{LOG_FOLDER}"], "", _OF_LOG),
        ]

    def look(self) -> str:
        """Return a digest that changes once something in the repository has changed."""
        few = array("q")
        for path in self._few:
            _add(path, few)
        _add_below([self._references], few)
        return blake2b(few.tobytes() + b"".join(each.look() for each in self._slow), digest_size=16).hexdigest()


class _Slow:
    """Folders with many files, except what is below `but`."""

    def __init__(self, folders: Sequence[str], but: str, share: float) -> None:
        self._folders, self._but, self._share = folders, but, share
        self._seen = b""
        self._due = 0.0

    def look(self) -> bytes:
        """Return the last result, or check again if that is due."""
        if time.monotonic() >= self._due:
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
