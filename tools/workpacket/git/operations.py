"""Whether git itself is in the middle of something, read from its own marks without starting it."""

from __future__ import annotations

from typing import Final

from workpacket.git.repository import Repository

# Git's mark in the git directory of the work tree, and what it means.
_MARKS: Final = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
)


def operation_in_progress(repository: Repository) -> str:
    """'merge', 'rebase', 'cherry-pick', 'revert' or 'am' while one waits to be finished or aborted, else ''."""
    return next((name for mark, name in _MARKS if repository.git_path(mark).exists()), "")
