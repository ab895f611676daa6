"""Change governed files: all of a plan or none of it, under one lock, through one interface to the disk.

Every read-only command calls this module, so it imports almost nothing.
"""

from __future__ import annotations

import os

# Below the git directory of a work tree.
JOURNAL_FOLDER = ("workpacket", "tx")


def left_between_files(git_dir: str | None) -> bool:
    """Whether a command died while replacing files, or is running now.

    A journal that is only a draft has changed nothing.
    """
    return any(not name.endswith(".draft") for name in _journals(git_dir))


def left_before_writing(git_dir: str | None) -> bool:
    """Whether a command died before it changed anything, or is running now. It may have left temporary files."""
    return any(name.endswith(".draft") for name in _journals(git_dir))


def _journals(git_dir: str | None) -> list[str]:
    try:
        return os.listdir(os.path.join(git_dir, *JOURNAL_FOLDER)) if git_dir is not None else []
    except OSError:
        return []
