"""The location of a project's store: the git common directory, which work trees share and `git clean` leaves alone.

`WORKPACKET_STORE` specifies a different location, for every program and command: a file, or a URL. PostgreSQL is built
in; for any other scheme, an installed package registers a function in the `workpacket.stores` entry point group, with
the scheme as its name:

    def open_url(url: str, *, patience: float) -> Store

A driver or another package is imported only for a URL that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from workpacket.git.discovery import RepositoryPaths, locate
from workpacket.problem import WorkpacketError
from workpacket.runtime.errors import StoreUnavailable
from workpacket.runtime.stores.contract import Store

VARIABLE = "WORKPACKET_STORE"
STORE = Path("workpacket") / "runs.db"
OUTSIDE_GIT = Path(".workpacket") / "runs.db"


def work_tree_of(start: Path) -> Path | None:
    """Return the top of the work tree that contains `start`; None outside git."""
    found = _located(start)
    return None if found is None else Path(found.root)


def store_url() -> str:
    """Return the URL of the run store used here; '' if the store is a file."""
    named = os.environ.get(VARIABLE, "")
    return named if "://" in named else ""


def store_path(start: Path) -> Path:
    """Return the file that stores this folder's runs, unless a URL is given."""
    named = os.environ.get(VARIABLE, "")
    if named and "://" not in named:
        return Path(named)
    found = _located(start)
    return start / OUTSIDE_GIT if found is None else Path(found.common_dir) / STORE


def _located(start: Path) -> RepositoryPaths | None:
    """Return the repository that contains the folder; None outside git, or in a repository without a work tree."""
    try:
        return locate(str(start))
    except WorkpacketError as error:
        if error.code in {"no_repository", "repository_bare"}:
            return None
        raise WorkpacketError("storage_unsuitable", error.message, hint=error.hint, path=error.path) from error


PATIENCE = 30.0  # seconds to wait for an unreachable store
GROUP = "workpacket.stores"
POSTGRES = frozenset({"postgresql", "postgres"})


def is_postgres(url: str) -> bool:
    return url.partition("://")[0] in POSTGRES and "://" in url


def store_at(url: str, *, patience: float = PATIENCE) -> Store:
    """Open the store at a URL. Errors show only the scheme of the URL, because the rest may contain a password."""
    scheme = url.partition("://")[0]
    if scheme not in POSTGRES:
        return _registered(scheme)(url, patience=patience)
    require_driver()
    from workpacket.runtime.stores.postgres.store import PostgresStore

    return PostgresStore(url, patience=patience)


def _registered(scheme: str) -> Callable[..., Store]:
    """Return the function that opens URLs with this scheme, from whichever installed package registers it."""
    from importlib.metadata import entry_points

    found = {(entry.value, entry.dist.name if entry.dist else ""): entry for entry in entry_points(group=GROUP)
             if entry.name == scheme}  # fmt: skip
    if len(found) != 1:
        names = ", ".join(sorted(name for _, name in found))
        why = (
            f"more than one installed package can open them: {names}" if found else "no installed package can open them"
        )
        raise StoreUnavailable(
            f"a {scheme}:// store cannot be used here: {why}", code="storage_unsuitable",
            hint=f"set {VARIABLE} to a file or a postgresql:// URL, or install one package that registers {scheme!r} "
            f"under the entry point group {GROUP}",
        )  # fmt: skip
    (((_, name), entry),) = found.items()
    try:
        opened: Callable[..., Store] = entry.load()
    except Exception as error:  # a third-party package
        raise StoreUnavailable(
            f"{name}, which opens {scheme}:// stores, cannot be imported: {error!r}", code="storage_unsuitable",
            hint=f"reinstall {name}",
        ) from error  # fmt: skip
    return opened


def require_driver() -> None:
    for name in ("psycopg", "psycopg_pool"):
        if find_spec(name) is None:
            raise StoreUnavailable(
                f"the store needs {name}", code="storage_unsuitable", hint="pip install 'workpacket[postgres]'"
            )
