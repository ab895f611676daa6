"""Find the repository according to git's own rules, by reading files: starting git takes longer than a whole check of
one file.

Unusual cases (a variable such as GIT_DIR in the environment, `core.worktree`, an included configuration) are left to
git itself. This module imports nothing large, because a check with a cached answer begins by importing it. For the same
reason, `may_hide` looks at the index without starting git.
"""

from __future__ import annotations

import os

from workpacket.problem import WorkpacketError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


STEERING_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)
_TRUE = (b"", b"true", b"yes", b"on", b"1")

PLAIN = b"DIRC\x00\x00\x00\x02"
ASSUME_UNCHANGED = 0x80


class RepositoryPaths:
    """The top of the work tree, the work tree's own git directory, and the git directory that all work trees share."""

    __slots__ = ("common_dir", "git_dir", "root")

    def __init__(self, root: str, git_dir: str, common_dir: str) -> None:
        self.root = root
        self.git_dir = git_dir
        self.common_dir = common_dir


def locate(start: str, environ: Mapping[str, str] = os.environ) -> RepositoryPaths:
    """Return the repository that contains `start`; raise WorkpacketError if there is none, or if it has no work
    tree."""
    if any(environ.get(name) for name in STEERING_VARIABLES):
        return _ask_git(start)
    try:
        return _read_files(os.path.realpath(start, strict=True), start)
    except OSError as error:
        raise WorkpacketError(
            "repository_unreadable", f"{error.filename}: {error.strerror}", path=str(error.filename or start)
        ) from error


def _read_files(folder: str, start: str) -> RepositoryPaths:
    device = os.stat(folder).st_dev
    for candidate in _upwards(folder):
        if os.stat(candidate).st_dev != device:
            break  # git does not cross file systems either
        git_dir = _git_dir_at(candidate)
        if git_dir is not None:
            return _with_work_tree(candidate, git_dir, start)
        if _is_git_dir(candidate):
            # Inside a git directory: a bare repository, or the current folder is .git itself.
            raise _no_work_tree(candidate)
    raise WorkpacketError(
        "no_repository",
        "it is not in a git repository",
        hint="Go to your repository, or create one here: git init",
        path=start,
    )


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        yield parent
        folder = parent


def _git_dir_at(folder: str) -> str | None:
    dot_git = os.path.join(folder, ".git")
    # In a linked work tree and in a submodule, `.git` is a file that names the git directory.
    if os.path.isfile(dot_git):
        first = _text(dot_git)
        if not first.startswith("gitdir: "):
            raise WorkpacketError(
                "repository_broken", f"{dot_git} does not say where the git directory is", path=dot_git
            )
        git_dir = os.path.join(folder, first.removeprefix("gitdir: "))
        if not _is_git_dir(git_dir):
            raise WorkpacketError(
                "repository_broken",
                f"{dot_git} points to {git_dir}, which is not a git directory",
                hint="Repair the work tree: git worktree repair",
                path=dot_git,
            )
        return os.path.realpath(git_dir)
    return os.path.realpath(dot_git) if _is_git_dir(dot_git) else None


def _is_git_dir(folder: str) -> bool:
    if not os.path.isfile(os.path.join(folder, "HEAD")):
        return False
    common = _common_dir(folder)
    return os.path.isdir(os.path.join(common, "objects")) and os.path.isdir(os.path.join(common, "refs"))


def _common_dir(git_dir: str) -> str:
    pointer = os.path.join(git_dir, "commondir")
    return os.path.realpath(os.path.join(git_dir, _text(pointer))) if os.path.isfile(pointer) else git_dir


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().rstrip("\r\n")


def _with_work_tree(root: str, git_dir: str, start: str) -> RepositoryPaths:
    common = _common_dir(git_dir)
    settings = [*_settings(os.path.join(common, "config"))]
    # Settings of this work tree alone are then in a second file.
    if any(name == b"worktreeconfig" for name, _ in settings):
        settings += _settings(os.path.join(git_dir, "config.worktree"))
    # An included file could set core.worktree; git finds out.
    if any(name == b"worktree" or name.startswith(b"[include") for name, _ in settings):
        return _ask_git(start)
    # A linked work tree can be used even if its main repository is bare.
    if git_dir == common and any(name == b"bare" and value in _TRUE for name, value in settings):
        raise _no_work_tree(root)
    return RepositoryPaths(root, git_dir, common)


def _settings(path: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the lines of a configuration file as name and value, in lower case; a section header is a name too."""
    try:
        with open(path, "rb") as file:
            # Names of sections and settings ignore case.
            lines = file.read().lower().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        rest = line.strip()
        if rest.startswith(b"["):
            header, _, rest = rest.partition(b"]")
            yield header, b""
        name, _, value = rest.partition(b"=")
        yield name.strip(), value.strip()


def _ask_git(start: str) -> RepositoryPaths:
    from pathlib import Path

    from workpacket.git.run import run_git

    folder = Path(start)
    answer = run_git(folder, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", check=False)
    if answer.status == 0:
        root, git_dir, common = answer.text.splitlines()
        return RepositoryPaths(root, git_dir, os.path.realpath(os.path.join(start, common)))
    git_dir = run_git(folder, "rev-parse", "--absolute-git-dir", check=False).text.rstrip("\n")
    if git_dir:
        raise _no_work_tree(git_dir)
    raise WorkpacketError("no_repository", f"it is not in a git repository: {answer.complaint}", path=start)


def _no_work_tree(place: str) -> WorkpacketError:
    return WorkpacketError(
        "repository_bare",
        f"{place} is a git repository without a work tree here",
        hint="Work in a clone of it, or add a work tree: git worktree add <folder>",
        path=place,
    )


def may_hide(git_dir: str | None, folder: str) -> bool:
    """Return False if the index is in the plain form and no path below the folder has flags."""
    if git_dir is None:
        return False
    try:
        if os.environ.get("GIT_INDEX_FILE") or any(name.startswith("sharedindex.") for name in os.listdir(git_dir)):
            return True
        with open(os.path.join(git_dir, "index"), "rb") as file:
            data = file.read()
    except OSError:
        # Before the first commit there is no index. Later, a missing index means that git regards every file as
        # deleted.
        return _has_commits(git_dir)
    if not data.startswith(PLAIN):
        return True
    return may_be_flagged(data, f"{folder}/".encode()) or _is_entry(data, folder.encode())


def may_be_flagged(index: bytes, start: bytes) -> bool:
    """Return False if no path in a plain index that begins with `start` has flags. Splitting the index takes a quarter
    of the time that looking for ten thousand paths, one after the other, does.
    """
    flags = {piece[-2:-1] for piece in index.split(start)[:-1]}
    return any(flag and flag[0] & ASSUME_UNCHANGED for flag in flags)


def _is_entry(data: bytes, folder: bytes) -> bool:
    """Whether the folder itself is in the index, as a submodule is."""
    position = data.find(folder + b"\0")
    while position >= 0:
        # An entry gives the length of its path. The names of trees, which git stores after the entries, do not: after
        # each commit, the folder is one of them.
        if int.from_bytes(data[position - 2 : position], "big") & 0xFFF == len(folder):
            return True
        position = data.find(folder + b"\0", position + 1)
    return False


def _has_commits(git_dir: str) -> bool:
    """Whether HEAD may have a commit even though the index is missing."""
    if any(os.path.exists(os.path.join(git_dir, name)) for name in ("commondir", "packed-refs", "reftable")):
        return True
    try:
        return bool(os.listdir(os.path.join(git_dir, "refs", "heads")))
    except OSError:
        return False
