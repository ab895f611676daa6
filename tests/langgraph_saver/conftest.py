"""The stores the saver is tried on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres.conftest import server, url  # noqa: F401  # the server of the tests of PostgreSQL is used here too
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = SQLiteStore(tmp_path / "runs.db")
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def each_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store
    if request.param == "sqlite":
        opened = SQLiteStore(tmp_path / "runs.db")
    elif request.param == "memory":
        opened = MemoryStore()
    else:
        from workpacket.runtime.stores.postgres.store import PostgresStore

        opened = PostgresStore(request.getfixturevalue("url"))
    yield opened
    opened.close()
