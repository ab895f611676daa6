"""Whether anything below a folder has changed since it was looked at, without listing it again.

A log of ten thousand packets is ten thousand folders, and to list them takes four times as long as to ask for the
state of each file that was there. So a folder is described once, with the state of itself and of all below it, and is
the same as long as each of these states is: what was added, removed or renamed shows in the times of the folder that
it lies in, what was edited in those of the file. That the time of a change (`st_ctime`) moves with every one of them,
and cannot be set back, is what a POSIX file system promises; where the system is another, the folder is listed again.
"""

from __future__ import annotations

import os

# Between records, since no name may hold it. A record is a state, a blank and a path below the folder.
_BETWEEN = "\0"
_HAS_POSIX_TIMES = os.name == "posix" and os.stat in os.supports_dir_fd


class Described:
    """`text` is what `unchanged` compares; `newest` is when anything changed last, in nanoseconds."""

    __slots__ = ("newest", "text")

    def __init__(self, text: str, newest: int) -> None:
        self.text = text
        self.newest = newest


def describe(root: str, folder: str) -> Described:
    """The folder and all below it, through no link; '' for one that is not there or that is no folder."""
    top = os.path.join(root, folder)
    records: list[str] = []
    newest = 0
    waiting = ["."]
    while waiting:
        current = waiting.pop()
        try:
            # A folder's own state comes first: what changes while it is listed then shows in it.
            status = os.lstat(os.path.join(top, current)) if current != "." else os.stat(top)
            records.append(f"{_state(status)} {current}")
            newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
            with os.scandir(os.path.join(top, current)) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            path = entry.name if current == "." else f"{current}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            records.append(f"{_state(status)} {path}")
            newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
    text = _BETWEEN.join(records)
    return Described(text.encode("utf-8", "backslashreplace").decode("utf-8"), newest)


def unchanged(root: str, folder: str, text: str) -> bool:
    """Whether the folder is as it was when `describe` gave this text."""
    if not _HAS_POSIX_TIMES:
        return describe(root, folder).text == text
    try:
        top = os.open(os.path.join(root, folder), os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return text == ""
    try:
        lstat = os.lstat
        for record in text.split(_BETWEEN):
            state, _, path = record.partition(" ")
            if _state(lstat(path, dir_fd=top)) != state:
                return False
    except OSError:
        return False
    finally:
        os.close(top)
    return True


def _state(status: os.stat_result) -> str:
    return f"{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}.{status.st_ino}"
