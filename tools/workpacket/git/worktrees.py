"""Branches and linked work trees.

Git itself is asked what it ignores: the rules are in several files and in the user's settings.
"""

from __future__ import annotations

from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.git.run import git_failure, run_git
from workpacket.value import Value


def is_ignored(repository: Repository, path: str) -> bool:
    """Whether git ignores `path`. It need not exist; a committed one is not ignored."""
    # check-ignore refuses literal pathspecs, which `run_git` sets.
    answer = run_git(
        repository.root, "--no-literal-pathspecs", "check-ignore", "--quiet", "--", f"./{path}", check=False
    )
    if answer.status not in (0, 1):
        raise git_failure("check-ignore", answer)
    return answer.status == 0


class Worktree(Value):
    """A work tree of the repository. `branch` is the short name, '' for a detached HEAD."""

    path: Path
    commit: str
    branch: str
    locked: bool
    prunable: bool


def branch_names(repository: Repository) -> dict[str, str]:
    """Return the local branches: short name to commit."""
    answer = run_git(repository.root, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads/")
    rows = (row.split(" ", 1) for row in answer.text.splitlines())
    return {name: commit for commit, name in rows}


def require_branch_name(repository: Repository, name: str) -> None:
    """Raise WorkpacketError `branch_name_invalid` if git would not accept the name."""
    answer = run_git(repository.root, "check-ref-format", "--branch", name, check=False)
    if answer.status != 0 or answer.text.rstrip("\n") != name:
        raise WorkpacketError("branch_name_invalid", f"{name!r} is not a valid branch name")


def add_branch(repository: Repository, name: str, start: str) -> None:
    """Create a branch at the commit `start`; an existing one is an error, never moved."""
    require_branch_name(repository, name)
    if name in branch_names(repository):
        raise WorkpacketError("branch_exists", f"the branch {name} already exists")
    run_git(repository.root, "branch", "--no-track", "--end-of-options", name, start)


def add_worktree(repository: Repository, path: Path, branch: str) -> None:
    """Check the existing `branch` out in a new work tree at `path`."""
    require_branch_name(repository, branch)
    if path.exists():
        raise WorkpacketError("worktree_exists", "a file or folder of that name already exists", path=str(path))
    for other in list_worktrees(repository):
        if other.branch == branch:
            raise WorkpacketError(
                "branch_checked_out", f"{branch} is checked out in {other.path}", path=str(other.path)
            )
    run_git(repository.root, "worktree", "add", "--quiet", "--end-of-options", str(path), branch)


def list_worktrees(repository: Repository) -> list[Worktree]:
    """Return all work trees, the main one first."""
    answer = run_git(repository.root, "worktree", "list", "--porcelain", "-z")
    found = []
    for block in answer.text.split("\0\0")[:-1]:
        fields = dict(_field(row) for row in block.split("\0"))
        if "bare" in fields:
            continue
        found.append(
            Worktree(
                path=Path(fields["worktree"]),
                commit=fields.get("HEAD", ""),
                branch=fields.get("branch", "").removeprefix("refs/heads/"),
                locked="locked" in fields,
                prunable="prunable" in fields,
            )
        )
    return found


def _field(row: str) -> tuple[str, str]:
    name, _, value = row.partition(" ")
    return name, value
