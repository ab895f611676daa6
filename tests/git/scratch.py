"""Repositories for one test, whatever git configuration the machine has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from workpacket.git.repository import Repository, find_repository

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


def make_repository(folder: Path) -> Repository:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
    return find_repository(folder, {})


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
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")
