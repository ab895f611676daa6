"""Find the commits that git is merging while it calls a merge driver, and the files in the result. Git gives a driver
three versions of one file, but no commits. A merge names the other side in the environment (`GITHEAD_<id>`); a rebase,
a cherry-pick and a stash do not, but each of them applies the change of one commit, which can be identified by the
versions before and after it. The result is verified: the commits must contain these versions at this path.

Trial merges: the tree that two commits would produce, without a branch, an index or a work tree. Their objects are
stored in a temporary folder, so that a check leaves nothing behind and works in a read-only repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from workpacket.git.objects import AS_COMMITTED, blob_id, list_tree, read_objects
from workpacket.git.repository import Repository, head_commit, merge_base
from workpacket.git.run import Answer, git_failure, run_git
from workpacket.problem import WorkpacketError
from workpacket.value import NOTHING, Value

_OTHER_SIDE = "GITHEAD_"
# `git merge-file` exits with the number of conflicts, up to this; anything above is a failure.
_MOST_CONFLICTS = 127

# A person's settings must not affect the result of a merge.
_SETTINGS: Final = (
    "-c", "merge.renames=true",
    "-c", "merge.directoryRenames=false",
    "-c", "merge.renormalize=false",
    "-c", "merge.conflictStyle=merge",
    "-c", f"core.attributesFile={os.devnull}",
)  # fmt: skip
_NOBODY: Final = "workpacket <> 0 +0000"
# git's message about an unknown option.
_USAGE: Final = 129


class Sides(Value):
    """The merged commits: the common ancestor ('' if none), ours, theirs, and the untracked files of a stash."""

    base: str
    ours: str
    theirs: str
    untracked: str = ""


def find_sides(
    repository: Repository, path: str, versions: tuple[bytes, bytes, bytes], environment: Mapping[str, str]
) -> Sides | None:
    """Return the commits that have these versions (base, ours, theirs) of `path`; None if they cannot be determined."""
    ours = head_commit(repository)
    if ours is None:
        return None
    was, mine, other = (blob_id(data, ours) for data in versions)
    if _held(repository, ours, path) != mine:
        return None  # git is merging something else, for example the ancestors of a criss-cross merge
    for name in environment:
        commit = name.removeprefix(_OTHER_SIDE)
        if commit != name and len(commit) == len(ours) and _held(repository, commit, path) == other:
            return Sides(merge_base(repository, ours, commit) or "", ours, commit)
    before = {was} if versions[0] else {was, "0" * len(ours)}
    picked = next((commit for old, new, commit in _changes(repository, path) if new == other and old in before), None)
    return None if picked is None else Sides(f"{picked}^1", ours, picked, _untracked(repository, picked))


def merged_files(repository: Repository, sides: Sides, *folders: str) -> tuple[dict[str, str], frozenset[str]]:
    """Return the ids of the files below `folders` in the result of the merge, by path, and the paths that differ. For a
    file that both sides changed, the id is theirs; the relevant files are written once and never changed.
    """
    base, ours, theirs, untracked = (
        {entry.path: entry.object_id for entry in list_tree(repository, commit, *folders)} if commit else {}
        for commit in (sides.base, sides.ours, sides.theirs, sides.untracked)
    )
    theirs |= untracked
    moved = {path for path in base.keys() | theirs.keys() if base.get(path) != theirs.get(path)}
    merged = {path: identity for path, identity in ours.items() if path not in moved or path in theirs}
    merged |= {path: theirs[path] for path in moved if path in theirs}
    differing = moved | {path for path in base.keys() | ours.keys() if base.get(path) != ours.get(path)}
    return merged, frozenset(differing)


def merge_texts(
    repository: Repository, files: tuple[str, str, str], *, keep_both: bool, marker: int
) -> tuple[bytes, bool]:
    """Return git's text merge of three files (base, ours, theirs), and whether they conflict. `keep_both`: conflicts
    are resolved by taking the lines of both sides.
    """
    base, ours, theirs = files
    labels = ("-L", "ours", "-L", "base", "-L", "theirs")
    union = ("--union",) if keep_both else ()
    size = f"--marker-size={marker}"
    answer = run_git(repository.root, "merge-file", "-p", "-q", *union, size, *labels, ours, base, theirs, check=False)
    if answer.status > _MOST_CONFLICTS:
        raise git_failure("merge-file", answer)
    return answer.output, answer.status != 0


def _held(repository: Repository, commit: str, path: str) -> str:
    """Return the id of the file in the commit; '' if the file or the commit does not exist."""
    name = f"{commit}:{path}"
    return run_git(
        repository.root, "rev-parse", "--verify", "--quiet", "--end-of-options", name, check=False
    ).text.strip()


def _untracked(repository: Repository, commit: str) -> str:
    """Return the commit, without a history, in which `git stash` keeps untracked files: the third parent of the
    stash.
    """
    parents = run_git(repository.root, "rev-list", "--no-walk", "--parents", "--end-of-options", commit).text.split()
    if len(parents) != len(("itself", "where it was made", "its index", "untracked files")):
        return ""
    above = run_git(repository.root, "rev-list", "--no-walk", "--parents", "--end-of-options", parents[-1]).text.split()
    return parents[-1] if len(above) == 1 else ""


def _changes(repository: Repository, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield every change to the file in this clone: the ids before and after, and the commit that changed it."""
    log = run_git(
        repository.root, "log", "--all", "--reflog", "--raw", "--no-abbrev", "--no-renames",
        "--diff-merges=first-parent", "--format=%x01%H", "--end-of-options", "--", path,
    ).text  # fmt: skip
    for block in log.split("\x01")[1:]:
        commit, _, rows = block.partition("\n")
        for row in rows.split("\n"):
            if row.startswith(":"):
                _, _, old, new, _ = row.split("\t")[0].split(" ")
                yield old, new, commit


class TriedMerge(Value):
    """The tree produced by a merge. Conflicted paths contain both sides between markers."""

    tree: str
    conflicts: frozenset[str] = frozenset()


class Difference(Value):
    """The mode and id of a path in each of two trees; '' where the path does not exist."""

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

    def _git(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        check: bool = True,
        environment: Mapping[str, str] = NOTHING,
    ) -> Answer:
        environment = {**self._environment, **environment}
        return run_git(self._repository.root, *arguments, stdin=stdin, check=check, environment=environment)

    def merge(self, ours: str, theirs: str) -> TriedMerge:
        """Merge `theirs` into `ours` as git itself would."""
        answer = self._git(
            *_SETTINGS, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages",
            "--allow-unrelated-histories", ours, theirs, check=False,
        )  # fmt: skip
        if answer.status == _USAGE:
            raise WorkpacketError(
                "tool_missing",
                "this version of git cannot compute trial merges, so it is unknown whether the merged work is "
                "the judged work",
                hint="Install git 2.38 or newer",
            )
        # A status of 1 means conflicts, but also a missing commit: then no tree is printed.
        if answer.status not in (0, 1) or not answer.output:
            raise git_failure("merge-tree", answer)
        tree, *conflicts = answer.text.split("\0")[:-1]
        return TriedMerge(tree.strip(), frozenset(filter(None, conflicts)))

    def commit(self, tree: str, *parents: str) -> str:
        """Return a commit with this tree and history, for further trial merges."""
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {_NOBODY}"]
        text = "\n".join((*lines, f"committer {_NOBODY}", "", "trial", ""))
        return self._git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode()).text.strip()

    def merge_base(self, one: str, other: str) -> str:
        """Return a best common ancestor; '' if there is none."""
        return self._git("merge-base", "--end-of-options", one, other, check=False).text.partition("\n")[0]

    def differences(self, old: str, new: str) -> dict[str, Difference]:
        """Return the differences between two trees (or the trees of two commits), by path. A rename is two
        differences."""
        return differences(self._repository, old, new, self._environment)

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of objects by name, including objects made by a trial merge."""
        return read_objects(self._repository, names, self._environment)

    def overlaid(self, commit: str, entries: Mapping[str, str]) -> str:
        """Return the tree of the commit with different entries (mode and id; '' to leave one out) at these paths."""
        index = {"GIT_INDEX_FILE": os.path.join(self._environment["GIT_OBJECT_DIRECTORY"], "index")}
        self._git("read-tree", f"{commit}^{{tree}}", environment=index)
        nothing = f"0 {'0' * len(commit)}"
        # Deletions come first: a folder may replace a file.
        rows = sorted((entries[path] != "", path) for path in entries)
        lines = "".join(f"{entries[path] or nothing}\t{path}\0" for _, path in rows)
        given = lines.encode("utf-8", "surrogateescape")
        self._git("update-index", "-z", "--index-info", stdin=given, environment=index)
        return self._git("write-tree", environment=index).text.strip()


def differences(
    repository: Repository, old: str, new: str, environment: Mapping[str, str] = NOTHING
) -> dict[str, Difference]:
    """Return the differences between two trees (or the trees of two commits), by path. A rename is two differences."""
    answer = run_git(
        repository.root, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", *AS_COMMITTED,
        "--end-of-options", old, new, "--", environment=environment,
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
    import tempfile  # with what it imports, it takes longer than most checks that need no trial merge

    with tempfile.TemporaryDirectory(prefix="workpacket-") as scratch:
        yield TrialMerges(repository, scratch)
