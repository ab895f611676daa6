"""Repositories for one test, whatever git configuration the machine has."""

from __future__ import annotations

import os
import shutil
import subprocess
from io import FileIO
from pathlib import Path

from git.plain_commits import commit_everything
from workpacket.git.repository import Repository, commit_at, find_repository

_DATE = "2026-01-01T00:00:00Z"
# What no test looks at: whether it is time to tidy up (a process for each commit), and the hooks that are samples.
IN_PASSING = ("-c", "maintenance.auto=false", "-c", "gc.auto=0", "-c", "core.fsync=none")
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def git(folder: Path, *arguments: str, check: bool = True, date: str = _DATE) -> str:
    dated = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    done = subprocess.run(
        ["git", *IN_PASSING, *arguments],
        cwd=folder,
        env={**os.environ, **_IDENTITY, **dated},
        capture_output=True,
        text=True,
        check=check,
    )
    return done.stdout.strip()


def commit_all(folder: Path, message: str, date: str = _DATE) -> None:
    """Commit everything in the work tree, by git itself where the commit is not a plain one."""
    if not commit_everything(folder, message, "Ann <ann@example.org>", date):
        git(folder, "add", "--all", date=date)
        git(folder, "commit", "--quiet", "--allow-empty", "--message", message, date=date)


_CACHE = ".git/workpacket/cache/"
# Where and how `git init` makes a repository, if the environment says so.
_ABOUT_INIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_DEFAULT_HASH", "GIT_DEFAULT_REF_FORMAT")
_made_by_git: dict[str, bytes] = {}


def begin_repository(folder: Path) -> None:
    """What `git init` makes; git itself is asked once, since an empty repository is like any other."""
    folder.mkdir(parents=True, exist_ok=True)
    here = folder / ".git"
    usual = not here.exists() and not any(name in os.environ for name in _ABOUT_INIT)
    if not usual or not _made_by_git:
        git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
        if usual:
            _made_by_git.update({path.name: path.read_bytes() for path in here.iterdir() if path.is_file()})
        return
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (here / name).mkdir(parents=True)
    for name, content in _made_by_git.items():
        (here / name).write_bytes(content)


def make_repository(folder: Path) -> Repository:
    begin_repository(folder)
    return find_repository(folder, {})


def copy_of(folder: Path, place: Path) -> Path:
    """A copy of a folder with a repository. It shares git's objects, which are never written twice."""
    shutil.copytree(folder, place, symlinks=True, copy_function=_copied, dirs_exist_ok=True)
    return place


def _copied(old: str, new: str) -> None:
    if "/.git/objects/" in old:
        os.link(old, new)
    else:
        shutil.copy2(old, new, follow_symlinks=False)


def all_files(root: Path, *, of_git: bool = True) -> dict[str, bytes]:
    """Those of git too, unless told otherwise, but not our cache, which says when files were written."""
    found = {}
    for folder, folders, names in os.walk(root):
        if not of_git and ".git" in folders:
            folders.remove(".git")
        below = folder.removeprefix(str(root)).lstrip("/")
        for name in names:
            path, place = f"{below}/{name}".lstrip("/"), f"{folder}/{name}"
            if not path.startswith(_CACHE) and (of_git or name != ".git") and os.path.isfile(place):  # noqa: PTH113
                with FileIO(place) as file:
                    found[path] = file.readall()
    return found


def bare_bones(folder: Path) -> None:
    """As much of a repository as it takes to be one, for tests that never ask git anything."""
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def commit(folder: Path, message: str, **files: str) -> str:
    """Write the files (a double underscore in a name stands for a slash) and commit everything."""
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    commit_all(folder, message)
    return commit_at(find_repository(folder, {}), "HEAD") or ""
