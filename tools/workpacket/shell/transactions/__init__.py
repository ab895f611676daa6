"""Changing governed files: all of a plan or nothing of it, under one lock, by one door to the disk.

What is here is asked by every command that only looks, so it imports next to nothing.
"""

from __future__ import annotations

import os

# Below the git directory of a work tree.
JOURNAL_FOLDER = ("workpacket", "tx")


def left_between_files(git_dir: str | None) -> bool:
    """Whether a command has died between files, or is at work now. A draft alone has changed nothing."""
    if git_dir is None:
        return False
    try:
        return any(not name.endswith(".draft") for name in os.listdir(os.path.join(git_dir, *JOURNAL_FOLDER)))
    except OSError:
        return False
