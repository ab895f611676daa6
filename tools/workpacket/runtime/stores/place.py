"""Where the store of a project lies: in the git common dir, which worktrees share and `git clean` spares.

`WORKPACKET_STORE` names another place, for every program and command: a file, or the URL of a server.

The driver of a server's store is imported when a URL asks for it, and named where it is missing.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.runtime.errors import StoreUnavailable
from workpacket.runtime.stores.contract import Store

VARIABLE = "WORKPACKET_STORE"
STORE = Path("workpacket") / "runs.db"
OUTSIDE_GIT = Path(".workpacket") / "runs.db"


def work_tree_of(start: Path) -> Path | None:
    """The nearest folder at or above `start` that holds `.git`."""
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), None)


def git_common_dir(work_tree: Path) -> Path:
    """What `git rev-parse --git-common-dir` answers, read from the same files, without starting a process."""
    entry = work_tree / ".git"
    if entry.is_dir():
        return entry
    target = _single_line(entry).removeprefix("gitdir:").strip()
    git_dir = (work_tree / target).resolve()
    common = git_dir / "commondir"
    return (git_dir / _single_line(common)).resolve() if common.exists() else git_dir


def server_url() -> str:
    """The URL of the server that keeps the runs here; '' if a file does."""
    named = os.environ.get(VARIABLE, "")
    return named if "://" in named else ""


def store_path(start: Path) -> Path:
    """The file that keeps the runs of this folder, if no server does."""
    named = os.environ.get(VARIABLE, "")
    if named and "://" not in named:
        return Path(named)
    work_tree = work_tree_of(start)
    return start / OUTSIDE_GIT if work_tree is None else git_common_dir(work_tree) / STORE


def _single_line(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise WorkpacketError("storage_unsuitable", f"{path} cannot be read: {error}", path=str(path)) from None


PATIENCE = 30.0  # seconds for which a server that is away is waited for


def store_on_server(url: str, *, patience: float = PATIENCE) -> Store:
    if url.partition("://")[0] not in {"postgresql", "postgres"}:
        raise StoreUnavailable(f"there is no store for {url.partition(':')[0]} URLs", code="storage_unsuitable")
    require_driver()
    from workpacket.runtime.stores.postgres.store import PostgresStore

    return PostgresStore(url, patience=patience)


def require_driver() -> None:
    for name in ("psycopg", "psycopg_pool"):
        if find_spec(name) is None:
            raise StoreUnavailable(
                f"the store needs {name}", code="storage_unsuitable", hint="pip install 'workpacket[postgres]'"
            )
