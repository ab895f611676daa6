"""Making a commit of chosen paths and of what is staged, and finding one again by its trailer."""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.git.run import run_git

# Hooks run the tests of a repository; that takes as long as it takes.
_PATIENCE = 1800.0


def commit(repository: Repository, message: str, paths: Sequence[str]) -> str:
    """Commit what `paths` hold now, deletions included, together with what is staged; the new commit.

    The repository's own hooks run, and may refuse.
    """
    if paths:
        run_git(repository.root, "add", "--all", "--", *paths)
    run_git(
        repository.root, "commit", "--quiet", "--cleanup=verbatim", "--file=-",
        stdin=message.encode("utf-8", "surrogateescape"), timeout=_PATIENCE,
    )  # fmt: skip
    return commit_of(repository, "HEAD")


def commit_with_trailer(repository: Repository, key: str, value: str) -> str | None:
    """The newest commit before HEAD that has this trailer; a message that only quotes it does not count."""
    answer = run_git(
        repository.root, "log", "-z", f"--format=%H %(trailers:key={key},valueonly,separator=%x20)",
        "--fixed-strings", f"--grep={key}: {value}", "HEAD", "--", check=False,
    )  # fmt: skip
    for row in answer.text.split("\0"):
        found, _, values = row.partition(" ")
        if value in values.split():
            return found
    return None
