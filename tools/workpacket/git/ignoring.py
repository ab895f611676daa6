"""What git ignores, asked of git itself: its rules stand in several files and in the user's own settings."""

from __future__ import annotations

from workpacket.git.repository import Repository
from workpacket.git.run import git_failure, run_git


def is_ignored(repository: Repository, path: str) -> bool:
    """Whether git leaves `path` out. It need not exist; one that is committed already is not ignored."""
    # check-ignore refuses to work where paths are taken literally, as `run_git` has them taken.
    answer = run_git(
        repository.root, "--no-literal-pathspecs", "check-ignore", "--quiet", "--", f"./{path}", check=False
    )
    if answer.status not in (0, 1):
        raise git_failure("check-ignore", answer)
    return answer.status == 0
