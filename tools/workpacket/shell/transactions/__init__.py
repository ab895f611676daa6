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
    if git_dir is None:
        return False
    try:
        return any(not name.endswith(".draft") for name in os.listdir(os.path.join(git_dir, *JOURNAL_FOLDER)))
    except OSError:
        return False
