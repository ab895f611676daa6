"""Where the store of a project lies: in the git common dir, which worktrees share and `git clean` spares.

`WORKPACKET_STORE` names another place, for every program and command: a file, or the URL of a server.
"""

from __future__ import annotations

import os
from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.git.discovery import Location, locate

VARIABLE = "WORKPACKET_STORE"
STORE = Path("workpacket") / "runs.db"
OUTSIDE_GIT = Path(".workpacket") / "runs.db"


def work_tree_of(start: Path) -> Path | None:
    """The top of the work tree around `start`, None outside of git."""
    found = _located(start)
    return None if found is None else Path(found.root)


def server_url() -> str:
    """The URL of the server that keeps the runs here; '' if a file does."""
    named = os.environ.get(VARIABLE, "")
    return named if "://" in named else ""


def store_path(start: Path) -> Path:
    """The file that keeps the runs of this folder, if no server does."""
    named = os.environ.get(VARIABLE, "")
    if named and "://" not in named:
        return Path(named)
    found = _located(start)
    return start / OUTSIDE_GIT if found is None else Path(found.common_dir) / STORE


def _located(start: Path) -> Location | None:
    """The repository around the folder; None outside of git, and in a repository that has no work tree."""
    try:
        return locate(str(start))
    except WorkpacketError as error:
        if error.code in {"no_repository", "repository_bare"}:
            return None
        raise WorkpacketError("storage_unsuitable", error.message, hint=error.hint, path=error.path) from error
