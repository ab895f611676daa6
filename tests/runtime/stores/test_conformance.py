"""Both stores keep the contract: the suite that ships with the package, run on each."""

from __future__ import annotations

from pathlib import Path

import pytest

from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.testing import ManualClock, StoreConformance
from workpacket.runtime.testing.folder_store import FolderStore


class TestMemoryStore(StoreConformance):
    def open_store(self, clock: ManualClock) -> Store:
        return MemoryStore(clock)


class TestSQLiteStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "runs.db"
        self.opener = (
            "from pathlib import Path\nfrom workpacket.runtime.stores.sqlite.store import SQLiteStore\n"
            f"store = SQLiteStore(Path({str(self.path)!r}))"
        )

    def open_store(self, clock: ManualClock) -> Store:
        return SQLiteStore(self.path, clock=clock)


class TestFolderStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "runs"
        self.opener = (
            f"from workpacket.runtime.testing.folder_store import FolderStore\nstore = FolderStore({str(self.path)!r})"
        )

    def open_store(self, clock: ManualClock) -> Store:
        return FolderStore(self.path, clock=clock)
