"""Making a commit, and finding one again by what its message says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.git.run import run_git

# Hooks of the user run inside `git commit`: linters, tests.
_HOOKS_SECONDS = 1800.0


class Commit(NamedTuple):
    """`trailers` are the values of the one trailer that was asked for, as git itself reads them."""

    commit: str
    tree: str
    trailers: tuple[str, ...]
    message: str


def commit_paths(repository: Repository, message: str, paths: Sequence[str]) -> None:
    """Commit these paths as they are in the work tree, and nothing else that may be staged. Hooks run as ever."""
    listed = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    named = ("--pathspec-from-file=-", "--pathspec-file-nul")
    run_git(repository.root, "add", "--all", *named, stdin=listed)
    run_git(
        repository.root, "commit", "--quiet", "--only", f"--message={message}", *named,
        stdin=listed, timeout=_HOOKS_SECONDS,
    )  # fmt: skip


def commit_with_staged(repository: Repository, message: str, paths: Sequence[str]) -> str:
    """Commit these paths, deletions included, together with what is staged; the new commit. Hooks run as ever."""
    if paths:
        run_git(repository.root, "add", "--all", "--", *paths)
    run_git(
        repository.root, "commit", "--quiet", "--cleanup=verbatim", "--file=-",
        stdin=message.encode("utf-8", "surrogateescape"), timeout=_HOOKS_SECONDS,
    )  # fmt: skip
    return commit_of(repository, "HEAD")


def commits_before(repository: Repository, head: str, *, trailer: str, saying: str = "") -> Iterator[Commit]:
    """`head` and its ancestors, the newest first; with `saying`, those whose message holds this text."""
    chosen = (f"--grep={saying}", "--fixed-strings") if saying else ()
    answer = run_git(
        repository.root, "log", "-z", "--no-decorate", "--no-show-signature",
        f"--format=%H%n%T%n%(trailers:key={trailer},valueonly,separator=%x2C)%n%B", *chosen, head, "--",
    )  # fmt: skip
    for record in answer.text.split("\0"):
        if record:
            commit, tree, trailers, message = record.split("\n", 3)
            yield Commit(commit, tree, tuple(filter(None, trailers.split(","))), message)


def commit_with_trailer(repository: Repository, head: str, trailer: str, value: str) -> Commit | None:
    """The newest commit of this history that carries the trailer; a message that only quotes it does not."""
    found = commits_before(repository, head, trailer=trailer, saying=f"{trailer}: {value}")
    return next((commit for commit in found if value in commit.trailers), None)
