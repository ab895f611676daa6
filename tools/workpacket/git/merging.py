"""Which commits git is merging while it calls a merge driver, and the files in the result. Git gives a driver three
versions of one file and no commits. A merge names the other side in the environment (`GITHEAD_<id>`); a rebase, a
cherry-pick and a stash do not, but they apply the change of one commit, and the commit that changed one version into
the other can be found. The result is verified: the commits must contain these versions at this path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workpacket.git.objects import blob_id, list_tree
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit, merge_base
from workpacket.git.run import git_failure, run_git
from workpacket.value import Value

_OTHER_SIDE = "GITHEAD_"
# `git merge-file` ends with the number of conflicts, up to this; what is above is a failure.
_MOST_CONFLICTS = 127


class Sides(Value):
    """The commits: the common ancestor ('' if none), ours, theirs, and the untracked files of a stash."""

    base: str
    ours: str
    theirs: str
    untracked: str = ""


def find_sides(
    repository: Repository, path: str, versions: tuple[bytes, bytes, bytes], environment: Mapping[str, str]
) -> Sides | None:
    """The commits that hold these versions (base, ours, theirs) of `path`; None if they cannot be determined."""
    ours = head_commit(repository)
    if ours is None:
        return None
    was, mine, other = (blob_id(data, ours) for data in versions)
    if _held(repository, ours, path) != mine:
        return None  # git is merging something else, the ancestors of a criss-cross merge for instance
    for name in environment:
        commit = name.removeprefix(_OTHER_SIDE)
        if commit != name and len(commit) == len(ours) and _held(repository, commit, path) == other:
            return Sides(merge_base(repository, ours, commit) or "", ours, commit)
    before = {was} if versions[0] else {was, "0" * len(ours)}
    picked = next((commit for old, new, commit in _changes(repository, path) if new == other and old in before), None)
    return None if picked is None else Sides(f"{picked}^1", ours, picked, _untracked(repository, picked))


def merged_files(repository: Repository, sides: Sides, *folders: str) -> tuple[dict[str, str], frozenset[str]]:
    """The ids of the files below `folders` in the result of the merge, by path, and the paths that differ. For a file
    that both sides changed the id is theirs; relevant files are written once and never changed.
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
    """Git's text merge of three files (base, ours, theirs), and whether they conflict. `keep_both`: conflicts are
    resolved by taking the lines of both sides.
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
    """The id of the file in the commit; '' if the file or the commit does not exist."""
    name = f"{commit}:{path}"
    return run_git(
        repository.root, "rev-parse", "--verify", "--quiet", "--end-of-options", name, check=False
    ).text.strip()


def _untracked(repository: Repository, commit: str) -> str:
    """The commit, without a history, in which `git stash` keeps untracked files: the third parent of the stash."""
    parents = run_git(repository.root, "rev-list", "--no-walk", "--parents", "--end-of-options", commit).text.split()
    if len(parents) != len(("itself", "where it was made", "its index", "untracked files")):
        return ""
    above = run_git(repository.root, "rev-list", "--no-walk", "--parents", "--end-of-options", parents[-1]).text.split()
    return parents[-1] if len(above) == 1 else ""


def _changes(repository: Repository, path: str) -> Iterator[tuple[str, str, str]]:
    """Every change of the file in this clone: its id before, after, and the commit that changed it."""
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
