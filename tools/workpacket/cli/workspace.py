"""Where a command works: the repository, its cache, and how to name files in it."""

from __future__ import annotations

import os

from workpacket.errors import WorkpacketError

GOVERNANCE_FOLDER = ".GOV"


class Workspace:
    """`root` is the top of the work tree; `git_dir` is its own folder of git, `common_dir` the one that all work trees
    share, each None without git."""

    __slots__ = ("common_dir", "git_dir", "here", "root")

    def __init__(self, root: str, git_dir: str | None, common_dir: str | None, here: str) -> None:
        self.root = root
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.here = here

    @property
    def fingerprint(self) -> str:
        from workpacket.shell.fingerprint import package_fingerprint

        return package_fingerprint()

    @property
    def is_partial(self) -> bool:
        """Whether git leaves governed files out of the work tree, so that what is shown may not be all there is."""
        from workpacket.git.index_flags import may_hide

        if not may_hide(self.git_dir, GOVERNANCE_FOLDER):
            return False
        from workpacket.shell.held import hidden

        return hidden(self.root) is not None

    def relative(self, word: str) -> str:
        """A path as given on the command line, relative to the repository; '' for the repository itself."""
        full = os.path.join(self.here, word)
        path = _below(self.root, full)
        if path is None:
            # An editor names files by the way that its user went, which may lead over a link to the repository.
            folder, name = (full, "") if os.path.isdir(full) else os.path.split(full)
            path = _below(os.path.realpath(self.root), os.path.join(os.path.realpath(folder), name))
        if path is None:
            raise WorkpacketError(
                "path_outside_repository",
                f"{word!r} lies outside the repository",
                hint=f"the repository is {self.root}",
            )
        return path


def _below(root: str, full: str) -> str | None:
    """The path relative to `root`, '' for itself; None if it lies elsewhere."""
    path = os.path.relpath(full, root).replace(os.sep, "/")
    if path == ".." or path.startswith("../") or os.path.isabs(path):
        return None
    return "" if path == "." else path


def open_workspace() -> Workspace:
    """The repository around the current folder; outside of git, the nearest folder with governance documents."""
    here = os.getcwd()
    folder = here
    while True:
        git = os.path.join(folder, ".git")
        if os.path.exists(git):
            git_dir = _git_dir(git)
            return Workspace(folder, git_dir, _common_dir(git_dir), here)
        if os.path.isdir(os.path.join(folder, GOVERNANCE_FOLDER)):
            return Workspace(folder, None, None, here)
        parent = os.path.dirname(folder)
        if parent == folder:
            raise WorkpacketError(
                "no_repository",
                f"{here} lies in no git repository, and no folder above it holds {GOVERNANCE_FOLDER}",
                hint="change into the repository, or make one with `git init`",
            )
        folder = parent


def _git_dir(git: str) -> str | None:
    """In a linked work tree `.git` is a file that points to it."""
    if not os.path.isfile(git):
        return git
    with open(git, encoding="utf-8", errors="surrogateescape") as stream:
        pointer = stream.read(4096).strip()
    if not pointer.startswith("gitdir:"):
        return None
    return os.path.join(os.path.dirname(git), pointer[len("gitdir:") :].strip())


def _common_dir(git_dir: str | None) -> str | None:
    if git_dir is None:
        return None
    try:
        with open(os.path.join(git_dir, "commondir"), encoding="utf-8", errors="surrogateescape") as stream:
            return os.path.normpath(os.path.join(git_dir, stream.read(4096).strip()))
    except OSError:
        return git_dir if os.path.isdir(git_dir) else None
