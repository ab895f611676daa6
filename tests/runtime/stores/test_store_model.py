"""The stores in files against the store in memory, by random sequences of calls."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings

from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine
from workpacket.runtime.testing.folder_store import FolderStore
from workpacket.runtime.testing.model import StoreModel

MEMORY = Path("/dev/shm")  # a model asks for thousands of syncs


class InAFolder(StoreModel):
    def prepare(self) -> None:
        self.folder = TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class SQLiteStores(InAFolder):
    def opened(self) -> SQLiteStore:
        return SQLiteStore(Path(self.folder.name) / "runs.db", clock=self.clock)

    def teardown(self) -> None:
        assert isinstance(self.store, SQLiteStore)
        assert examine(self.store) == ()
        super().teardown()


class FolderStores(InAFolder):
    def opened(self) -> Store:
        return FolderStore(self.folder.name, clock=self.clock)


def steps(examples: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )


TestSQLiteStores = SQLiteStores.TestCase
TestSQLiteStores.settings = steps(25)
TestFolderStores = FolderStores.TestCase
TestFolderStores.settings = steps(25)
