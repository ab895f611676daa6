"""A quick check of the index for the fast path to cached output: it imports nothing and never starts git."""

from __future__ import annotations

import os

PLAIN = b"DIRC\x00\x00\x00\x02"
ASSUME_UNCHANGED = 0x80
# The minimum distance between the beginnings of two paths: times, device, inode, mode, owner, size, object id, flags.
BEFORE_PATH = 62


def may_hide(git_dir: str | None, folder: str) -> bool:
    """Return False if the index has the plain form and no path below the folder has flags."""
    if git_dir is None:
        return False
    try:
        if os.environ.get("GIT_INDEX_FILE") or any(name.startswith("sharedindex.") for name in os.listdir(git_dir)):
            return True
        with open(os.path.join(git_dir, "index"), "rb") as file:
            data = file.read()
    except OSError:
        return _has_commits(git_dir)
    if not data.startswith(PLAIN):
        return True
    start = f"{folder}/".encode()
    position = data.find(start)
    while position >= 0:
        if data[position - 2] & ASSUME_UNCHANGED:
            return True
        position = data.find(start, position + BEFORE_PATH)
    return _is_entry(data, folder.encode())


def _is_entry(data: bytes, folder: bytes) -> bool:
    """Whether the folder itself is in the index, as a submodule is."""
    position = data.find(folder + b"\0")
    while position >= 0:
        # An entry gives the length of its path. The names of trees, which git stores after the entries, do not: after
        # each commit the folder is one of them.
        if int.from_bytes(data[position - 2 : position], "big") & 0xFFF == len(folder):
            return True
        position = data.find(folder + b"\0", position + 1)
    return False


def _has_commits(git_dir: str) -> bool:
    """Whether there may be a commit whose index is missing."""
    if any(os.path.exists(os.path.join(git_dir, name)) for name in ("commondir", "packed-refs", "reftable")):
        return True
    try:
        return bool(os.listdir(os.path.join(git_dir, "refs", "heads")))
    except OSError:
        return False
