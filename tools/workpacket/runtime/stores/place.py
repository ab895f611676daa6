"""The location of a project's store: the git common directory, which work trees share and `git clean` leaves alone.

`WORKPACKET_STORE` names another place, for every program and command: a file, or the URL of a server. The driver of a
server's store is imported only for a URL that needs it; if it is missing, the error names it.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.git.discovery import RepositoryPaths, locate
from workpacket.runtime.errors import StoreUnavailable
from workpacket.runtime.stores.contract import Store

VARIABLE = "WORKPACKET_STORE"
STORE = Path("workpacket") / "runs.db"
OUTSIDE_GIT = Path(".workpacket") / "runs.db"


def work_tree_of(start: Path) -> Path | None:
    """Return the top of the work tree around `start`, None outside git."""
    found = _located(start)
    return None if found is None else Path(found.root)


def server_url() -> str:
    """Return the URL of the server that stores the runs here; '' if a file does."""
    named = os.environ.get(VARIABLE, "")
    return named if "://" in named else ""


def store_path(start: Path) -> Path:
    """Return the file that stores the runs of this folder, if no server does."""
    named = os.environ.get(VARIABLE, "")
    if named and "://" not in named:
        return Path(named)
    found = _located(start)
    return start / OUTSIDE_GIT if found is None else Path(found.common_dir) / STORE


def _located(start: Path) -> RepositoryPaths | None:
    """Return the repository around the folder; None outside git, and in a repository without a work tree."""
    try:
        return locate(str(start))
    except WorkpacketError as error:
        if error.code in {"no_repository", "repository_bare"}:
            return None
        raise WorkpacketError("storage_unsuitable", error.message, hint=error.hint, path=error.path) from error


PATIENCE = 30.0  # seconds to wait for an unreachable server


def store_on_server(url: str, *, patience: float = PATIENCE) -> Store:
    if url.partition("://")[0] not in {"postgresql", "postgres"}:
        raise StoreUnavailable(f"{url.partition(':')[0]} URLs are not supported for stores", code="storage_unsuitable")
    require_driver()
    from workpacket.runtime.stores.postgres.store import PostgresStore

    return PostgresStore(url, patience=patience)


def require_driver() -> None:
    for name in ("psycopg", "psycopg_pool"):
        if find_spec(name) is None:
            raise StoreUnavailable(
                f"the store needs {name}", code="storage_unsuitable", hint="pip install 'workpacket[postgres]'"
            )
