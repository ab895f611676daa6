"""Trial merges: the tree that two commits would produce, without a branch, an index or a work tree. Their objects are
stored in a temporary folder, so that a check leaves nothing behind and works in a read-only repository.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.git.run import Answer, git_failure, run_git
from workpacket.value import Value

# The settings of a person must not decide what a merge comes to.
_SETTINGS: Final = (
    "-c", "merge.renames=true",
    "-c", "merge.directoryRenames=false",
    "-c", "merge.renormalize=false",
    "-c", "merge.conflictStyle=merge",
    "-c", f"core.attributesFile={os.devnull}",
)  # fmt: skip
_NOBODY: Final = "workpacket <> 0 +0000"
# What git answers to an option that it does not know.
_USAGE: Final = 129


class TriedMerge(Value):
    """The tree produced by a merge. Conflicted paths contain both sides between markers."""

    tree: str
    conflicts: frozenset[str] = frozenset()


class Difference(Value):
    """Mode and id of a path in two trees; '' if it does not exist."""

    path: str
    old: str
    new: str


class TrialMerges:
    def __init__(self, repository: Repository, scratch: str) -> None:
        self._repository = repository
        objects = os.environ.get("GIT_OBJECT_DIRECTORY") or str(repository.common_dir / "objects")
        others = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "")
        self._environment = {
            "GIT_OBJECT_DIRECTORY": scratch,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(filter(None, (objects, others))),
        }

    def _git(self, *arguments: str, stdin: bytes | None = None, check: bool = True) -> Answer:
        return run_git(self._repository.root, *arguments, stdin=stdin, check=check, environment=self._environment)

    def merge(self, ours: str, theirs: str) -> TriedMerge:
        """`theirs` merged into `ours`, as git does it by itself."""
        answer = self._git(
            *_SETTINGS, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages",
            "--allow-unrelated-histories", ours, theirs, check=False,
        )  # fmt: skip
        if answer.status == _USAGE:
            raise WorkpacketError(
                "tool_missing",
                "this git cannot tell what a merge would come to, so whether what landed was judged is not known",
                hint="Install git 2.38 or newer",
            )
        # A status of 1 means conflicts, but also a commit that is not there: then no tree is printed.
        if answer.status not in (0, 1) or not answer.output:
            raise git_failure("merge-tree", answer)
        tree, *conflicts = answer.text.split("\0")[:-1]
        return TriedMerge(tree.strip(), frozenset(filter(None, conflicts)))

    def commit(self, tree: str, *parents: str) -> str:
        """A commit with this tree and history, for further trials."""
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {_NOBODY}"]
        text = "\n".join((*lines, f"committer {_NOBODY}", "", "trial", ""))
        return self._git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode()).text.strip()

    def merge_base(self, one: str, other: str) -> str:
        """A best common ancestor, '' if the two have none."""
        return self._git("merge-base", "--end-of-options", one, other, check=False).text.partition("\n")[0]

    def differences(self, old: str, new: str) -> dict[str, Difference]:
        """The differences between two trees (or those of two commits), by path. A rename is two differences."""
        answer = self._git(
            "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv",
            "--end-of-options", old, new, "--",
        )  # fmt: skip
        fields = answer.text.split("\0")[:-1]
        return {path: _difference(path, row) for row, path in zip(fields[::2], fields[1::2], strict=True)}


def _difference(path: str, row: str) -> Difference:
    old_mode, new_mode, old, new, _letter = row.removeprefix(":").split(" ")
    return Difference(
        path, f"{old_mode} {old}" if old.strip("0") else "", f"{new_mode} {new}" if new.strip("0") else ""
    )


@contextmanager
def trial_merges(repository: Repository) -> Iterator[TrialMerges]:
    with tempfile.TemporaryDirectory(prefix="workpacket-") as scratch:
        yield TrialMerges(repository, scratch)
