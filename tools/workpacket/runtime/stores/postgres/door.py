"""The door to a store on a server: the driver is imported when a URL asks for one, and named where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from workpacket.runtime.errors import StoreUnavailable
from workpacket.runtime.stores.contract import Store

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
