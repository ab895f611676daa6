"""What differs: work tree against HEAD, one commit against another, and whether two changes are the same change."""

from __future__ import annotations

from workpacket.git.repository import Repository
from workpacket.git.run import run_git
from workpacket.value import Value


class StatusEntry(Value):
    """A path that differs: the two letters of `git status`, for the index and for the work tree; '??' is untracked."""

    path: str
    letters: str

    @property
    def untracked(self) -> bool:
        return self.letters == "??"

    @property
    def unmerged(self) -> bool:
        return "U" in self.letters or self.letters in ("AA", "DD")


class ChangedPath(Value):
    """A path that two commits have differently: A added, D deleted, M modified, T another type."""

    path: str
    letter: str


def status(repository: Repository, *paths: str) -> list[StatusEntry]:
    """Everything that differs from HEAD, every untracked file by its own name; ignored files are left out."""
    answer = run_git(
        repository.root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", *paths
    )
    return [StatusEntry(row[3:], row[:2]) for row in answer.text.split("\0")[:-1]]


def hidden_paths(repository: Repository) -> list[str]:
    """Tracked paths that `status` takes to be unchanged without a look: skip-worktree, as in a sparse checkout, and
    assume-unchanged."""
    answer = run_git(repository.root, "ls-files", "-z", "-v")
    rows = (row for row in answer.text.split("\0")[:-1] if row[0] == "S" or row[0].islower())
    return [row[2:] for row in rows]


def changed_paths(repository: Repository, base: str, head: str, *paths: str) -> list[ChangedPath]:
    """What the tree of `head` has differently from the tree of `base`. A rename is one deletion and one addition."""
    answer = run_git(
        repository.root, "diff-tree", "-r", "-z", "--name-status", "--no-renames", "--no-ext-diff", "--no-textconv",
        "--end-of-options", base, head, "--", *paths,
    )  # fmt: skip
    fields = answer.text.split("\0")[:-1]
    return [ChangedPath(path, letter) for letter, path in zip(fields[::2], fields[1::2], strict=True)]


def patch_id(repository: Repository, base: str, head: str, *paths: str) -> str | None:
    """A digest of the change from `base` to `head` that rebasing and squashing keep; None if nothing changed."""
    patch = run_git(
        repository.root, "diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff",
        "--no-textconv", "--end-of-options", base, head, "--", *paths,
    )  # fmt: skip
    answer = run_git(repository.root, "patch-id", "--stable", stdin=patch.output)
    return answer.text.split(" ", 1)[0] or None


def files_ending(repository: Repository, ending: str) -> list[str]:
    """The files whose name ends so, known to git or not, in any folder; those that git ignores are left out."""
    answer = run_git(repository.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({path for path in answer.text.split("\0")[:-1] if path.endswith(ending)})


def is_in_index(repository: Repository, path: str) -> bool:
    """Whether git knows the file, or a file below the folder, though it may be gone from the work tree."""
    return bool(run_git(repository.root, "--literal-pathspecs", "ls-files", "-z", "--cached", "--", path).output)
