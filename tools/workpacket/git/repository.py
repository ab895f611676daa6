"""The git repository of a command, and the git operation in progress, if any, as read from git's files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from workpacket.git.discovery import locate
from workpacket.git.run import Answer, run_git
from workpacket.value import Value

# Git's marker file in the git directory of the work tree, and its meaning.
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
    """Return 'merge', 'rebase', 'cherry-pick', 'revert' or 'am' while one is in progress, otherwise ''."""
    return next((name for mark, name in _MARKS if repository.git_path(mark).exists()), "")


# The full id of an object, which never refers to anything else.
FULL_ID: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")

_SETTINGS = r"^(init\.defaultbranch|user\.name|remote\..*\.fetch|branch\..*\.(remote|merge))$"


class Repository(Value):
    """The top of the work tree, the git directory of this work tree, and the one that all work trees share."""

    root: Path
    git_dir: Path
    common_dir: Path

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Return the git settings that concern us, read together, by name in lower case."""
        answer = run_git(self.root, "config", "-z", "--get-regexp", _SETTINGS, check=False)
        rows = (row.partition("\n") for row in answer.text.split("\0"))
        return {name: value for name, _, value in rows}

    @cached_property
    def _answers(self) -> dict[tuple[str, ...], Answer]:
        return {}

    def ask_once(self, *arguments: str, check: bool = True) -> Answer:
        """Return git's answer to a question about objects by their full ids, cached because several parts of one
        command ask the same.
        """
        answer = self._answers.get(arguments)
        if answer is None:
            answer = run_git(self.root, *arguments, check=check)
            if answer.status == 0:
                self._answers[arguments] = answer
        return answer

    def git_path(self, name: str) -> Path:
        """Return the path of a git file that belongs only to this work tree, as from `git rev-parse --git-path`."""
        return self.git_dir / name


def find_repository(start: Path, environ: Mapping[str, str] = os.environ) -> Repository:
    """Return the repository around `start`; raise WorkpacketError if there is none, or one without a work tree."""
    found = locate(str(start), environ)
    return Repository(Path(found.root), Path(found.git_dir), Path(found.common_dir))
