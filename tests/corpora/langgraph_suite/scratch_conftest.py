"""The conftest that LangGraph's own tests run with in a scratch folder: no Docker, no Redis.

With SAVER_UNDER_TEST=sqlite, every `InMemorySaver` that a test or a fixture asks for is a `WorkpacketSaver` on a SQLite
file of its own, under the same test ids; with SAVER_UNDER_TEST=postgres, in a project of its own on the server that
SAVER_SERVER names.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import langgraph.checkpoint.memory
import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.memory import InMemoryStore

NO_DOCKER = True
OURS = os.environ["SAVER_UNDER_TEST"] != "memory"
SERVER = os.environ["SAVER_SERVER"] if os.environ["SAVER_UNDER_TEST"] == "postgres" else ""
OPEN: list[Any] = []

if OURS:
    pytest.register_assert_rewrite("tests.memory_assert")
    importlib.import_module("tests.memory_assert")  # its classes look into InMemorySaver and keep it

    from workpacket.runtime.langgraph import WorkpacketSaver
    from workpacket.runtime.runtime import Settings
    from workpacket.runtime.stores.contract import Store
    from workpacket.runtime.stores.place import store_at
    from workpacket.runtime.stores.sqlite.store import SQLiteStore

    def own_store() -> Store:
        folder = Path(tempfile.mkdtemp(dir=os.environ["SAVER_FOLDER"]))
        return store_at(f"{SERVER}&workpacket_project={folder.name}") if SERVER else SQLiteStore(folder / "runs.db")

    class Replacement(WorkpacketSaver):
        def __init__(self, *, serde: Any = None) -> None:
            super().__init__(own_store(), serde=serde, settings=Settings(actor="suite"))
            OPEN.append(self)

    for name in ("InMemorySaver", "MemorySaver"):
        setattr(langgraph.checkpoint.memory, name, Replacement)


@pytest.fixture(autouse=True)
def closed_savers() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def deterministic_uuids(mocker: Any) -> Any:
    numbered = (UUID(f"00000000-0000-4000-8000-{i:012}", version=4) for i in range(10000))
    return mocker.patch("uuid.uuid4", side_effect=numbered)


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> Any:
    return request.param


# One parameter each, so that the names of tests and snapshots are LangGraph's own.
@pytest.fixture(params=["memory"])
def cache() -> InMemoryCache[Any]:
    return InMemoryCache()


@pytest.fixture(params=["in_memory"])
def sync_store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture(params=["in_memory"])
async def async_store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture(params=["memory"])
def sync_checkpointer() -> BaseCheckpointSaver[Any]:
    return saver()


@pytest.fixture(params=["memory"])
async def async_checkpointer() -> BaseCheckpointSaver[Any]:
    return saver()


def saver() -> BaseCheckpointSaver[Any]:
    if OURS:
        return Replacement()
    made: BaseCheckpointSaver[Any] = importlib.import_module("tests.memory_assert").MemorySaverAssertImmutable()
    return made
