"""Finding the repository by reading files, because starting git costs more than a whole check of one file.

What is unusual (a GIT_DIR or the like in the environment, `core.worktree`, per-worktree configuration) is left to git
itself, which knows the rules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.git.run import run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.value import Value

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


_SETTINGS = r"^(init\.defaultbranch|user\.name)$"
_STEERING_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CEILING_DIRECTORIES")
_BARE = lazy_pattern(rb"^\s*bare\s*(?:=\s*(?:true|yes|on|1)\s*)?$", re.MULTILINE | re.IGNORECASE)
_UNUSUAL = lazy_pattern(rb"^\s*(?:worktree\s*=|worktreeconfig|\[include)", re.MULTILINE | re.IGNORECASE)


class Repository(Value):
    """The top of the work tree, the git directory of this work tree, and the one that all work trees share."""

    root: Path
    git_dir: Path
    common_dir: Path

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """What git's configuration says of the settings that concern us, asked for together: by name in lower case."""
        answer = run_git(self.root, "config", "-z", "--get-regexp", _SETTINGS, check=False)
        rows = (row.partition("\n") for row in answer.text.split("\0"))
        return {name: value for name, _, value in rows}

    def git_path(self, name: str) -> Path:
        """Where git keeps a file that belongs to this work tree alone, as `git rev-parse --git-path` says."""
        return self.git_dir / name


def find_repository(start: Path, environ: Mapping[str, str] = os.environ) -> Repository:
    """The repository around `start`; WorkpacketError if there is none, or one without a work tree."""
    if any(environ.get(name) for name in _STEERING_VARIABLES):
        return _ask_git(start)
    try:
        return _read_files(start.resolve(strict=True), start)
    except OSError as error:
        raise WorkpacketError(
            "repository_unreadable", f"{error.filename}: {error.strerror}", path=str(error.filename or start)
        ) from error


def _read_files(folder: Path, start: Path) -> Repository:
    device = folder.stat().st_dev
    for candidate in (folder, *folder.parents):
        if candidate.stat().st_dev != device:
            break  # git does not cross file systems either
        git_dir = _git_dir_at(candidate)
        if git_dir is not None:
            return _with_work_tree(candidate, git_dir, start)
        if _is_git_dir(candidate):
            # Inside a git directory: a bare repository, or somebody stands in .git itself.
            raise _no_work_tree(candidate)
    raise WorkpacketError(
        "no_repository",
        "it is not in a git repository",
        hint="Go to your repository, or make one here: git init",
        path=str(start),
    )


def _git_dir_at(folder: Path) -> Path | None:
    dot_git = folder / ".git"
    if dot_git.is_file():
        first = dot_git.read_text("utf-8", "surrogateescape").rstrip("\r\n")
        if not first.startswith("gitdir: "):
            raise WorkpacketError(
                "repository_broken", f"{dot_git} does not say where the git directory is", path=str(dot_git)
            )
        git_dir = folder / first.removeprefix("gitdir: ")
        if not _is_git_dir(git_dir):
            raise WorkpacketError(
                "repository_broken",
                f"{dot_git} points at {git_dir}, which is not a git directory",
                hint="Repair the work tree: git worktree repair",
                path=str(dot_git),
            )
        return git_dir.resolve()
    return dot_git.resolve() if _is_git_dir(dot_git) else None


def _is_git_dir(folder: Path) -> bool:
    if not (folder / "HEAD").is_file():
        return False
    common = _common_dir(folder)
    return (common / "objects").is_dir() and (common / "refs").is_dir()


def _common_dir(git_dir: Path) -> Path:
    pointer = git_dir / "commondir"
    if not pointer.is_file():
        return git_dir
    return (git_dir / pointer.read_text("utf-8", "surrogateescape").rstrip("\r\n")).resolve()


def _with_work_tree(root: Path, git_dir: Path, start: Path) -> Repository:
    common = _common_dir(git_dir)
    config = common / "config"
    settings = config.read_bytes() if config.is_file() else b""
    if _UNUSUAL.search(settings):
        return _ask_git(start)
    if git_dir == common and _BARE.search(settings):
        raise _no_work_tree(root)
    return Repository(root, git_dir, common)


def _ask_git(start: Path) -> Repository:
    answer = run_git(start, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", check=False)
    if answer.status == 0:
        root, git_dir, common = answer.text.splitlines()
        return Repository(Path(root), Path(git_dir), (start / common).resolve())
    git_dir = run_git(start, "rev-parse", "--absolute-git-dir", check=False).text.rstrip("\n")
    if git_dir:
        raise _no_work_tree(Path(git_dir))
    raise WorkpacketError("no_repository", f"it is not in a git repository: {answer.complaint}", path=str(start))


def _no_work_tree(place: Path) -> WorkpacketError:
    return WorkpacketError(
        "repository_bare",
        f"{place} is a git repository without a work tree here",
        hint="Work in a clone of it, or add a work tree: git worktree add <folder>",
        path=str(place),
    )
