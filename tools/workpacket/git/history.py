"""What each commit of a history changed, by one call of git: many times quicker than asking for file after file.

Git is asked for the raw form, in which a path always follows the row that describes it. In a list of names alone, a
path that holds a line end and a control character could pass for the header of another commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workpacket.git.repository import Repository
from workpacket.git.run import run_git

FIRST_PARENTS = ("--first-parent", "--diff-merges=first-parent")
_MARK = "\x01"
_CONTENTS = ("100644", "100755", "120000")


class Change(NamedTuple):
    """A path that a commit changed: A added, D deleted, M modified, T another type. `blob` is '' where none is left."""

    letter: str
    blob: str
    path: str


def changes_before(
    repository: Repository, commit: str, *paths: str, options: tuple[str, ...] = (), form: str = "%H %ct"
) -> Iterator[tuple[str, list[Change]]]:
    """The commits that changed these paths, the newest first: what `form` says of each, and its changes."""
    answer = run_git(
        repository.root, "log", *options, "--no-renames", "--raw", "--no-abbrev", "-z", f"--format={_MARK}{form}",
        "--end-of-options", commit, "--", *paths,
    )  # fmt: skip
    header, changes = "", list[Change]()
    parts = iter(answer.text.split("\0"))
    for part in parts:
        if part.startswith(_MARK):
            if header:
                yield header, changes
            header, changes = part.removeprefix(_MARK), []
        elif part:
            _, mode, _, blob, letter = part.lstrip("\n").split(" ")
            changes.append(Change(letter, blob if mode in _CONTENTS else "", next(parts)))
    if header:
        yield header, changes


def line_times(repository: Repository, commit: str) -> Iterator[tuple[str, int]]:
    """The commits that lead to `commit` along first parents, the oldest first, each with its time."""
    answer = run_git(
        repository.root, "rev-list", "--first-parent", "--reverse", "--timestamp", "--end-of-options", commit
    )
    for row in answer.text.splitlines():
        time, identity = row.split(" ")
        yield identity, int(time)
