"""Whether a history that no longer holds a commit still holds what it changed: after rebase, squash or cherry-pick."""

from __future__ import annotations

import re

from workpacket.git.changes import changed_paths, patch_id
from workpacket.git.repository import Repository
from workpacket.git.revisions import merge_base
from workpacket.git.run import run_git
from workpacket.lazy_pattern import lazy_pattern

_REVERTED = lazy_pattern(r"^This reverts commit ([0-9a-f]{40,64})\.?$", re.MULTILINE)
# A command line has room for so many names; the commits looked at are those that touch any of them.
_PATHS = 200


def tree_of(repository: Repository, commit: str) -> str:
    """The id of the tree of a commit: equal trees are equal contents."""
    return run_git(repository.root, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").text.strip()


def trees_before(repository: Repository, head: str, beside: str = "") -> set[str]:
    """The trees of `head` and its ancestors, as far as they are not ancestors of the commit `beside` too."""
    excluded = [f"^{beside}"] if beside else []
    return set(run_git(repository.root, "log", "--format=%T", head, *excluded, "--").text.split())


def holds_changes_of(repository: Repository, commit: str, head: str) -> bool:
    """Whether each change up to `commit` that `head` does not have is in `head` as another commit, or all as one."""
    base = merge_base(repository, commit, head)
    if base is None or base == head:
        return False
    present = set(_patch_ids(repository, base, head))
    wanted = _patch_ids(repository, base, commit)
    return bool(wanted) and (set(wanted) <= present or patch_id(repository, base, commit) in present)


def taken_back(repository: Repository, commit: str, head: str) -> bool:
    """Whether the last word on the change of `commit`, an ancestor of `head`, is that it was undone: by a commit with
    the opposite change, or one that says that it reverts this one."""
    parent = _resolved(repository, f"{commit}^")
    if parent is None:
        return False
    paths = [changed.path for changed in changed_paths(repository, parent, commit)][:_PATHS]
    forwards, backwards = patch_id(repository, parent, commit), patch_id(repository, commit, parent)
    log = run_git(
        repository.root, "log", "-z", "--reverse", "--no-merges", "--format=%H%n%B", f"{commit}..{head}", "--", *paths
    )
    standing = {commit}  # commits whose change is in force: this one, and those that brought it again
    for record in filter(None, log.text.split("\0")):
        later, _, message = record.partition("\n")
        change = patch_id(repository, f"{later}^", later)
        reverted = next((one for one in _REVERTED.findall(message)), "")
        if change == backwards or reverted in standing:
            standing.clear()
        elif change == forwards or (reverted and not standing):
            standing.add(later)
    return not standing


def _resolved(repository: Repository, name: str) -> str | None:
    answer = run_git(repository.root, "rev-parse", "--verify", "--quiet", "--end-of-options", name, check=False)
    return answer.text.strip() if answer.status == 0 else None


def _patch_ids(repository: Repository, base: str, head: str) -> list[str]:
    """The patch ids of the commits after `base` up to `head`; merges have none."""
    commits = run_git(repository.root, "rev-list", "--no-merges", "--end-of-options", f"{base}..{head}").output
    patches = run_git(
        repository.root, "diff-tree", "--stdin", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff",
        "--no-textconv", stdin=commits,
    )  # fmt: skip
    answer = run_git(repository.root, "patch-id", "--stable", stdin=patches.output)
    return [row.split(" ", 1)[0] for row in answer.text.splitlines()]
