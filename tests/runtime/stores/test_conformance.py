"""The stores of the package, and the template for others, keep the contract: the suite that ships with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.testing import ManualClock, MemoryStoreConformance, StoreConformance
from workpacket.runtime.testing.folder_store import FolderStore


class TestMemoryStore(MemoryStoreConformance):
    def open_store(self, clock: ManualClock) -> Store:
        return MemoryStore(clock)


class TestSQLiteStore(StoreConformance):
    volatile = ("*-shm",)

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "runs"
        self.opener = (
            "from pathlib import Path\nfrom workpacket.runtime.stores.sqlite.store import SQLiteStore\n"
            f"store = SQLiteStore(Path({str(self.folder / 'runs.db')!r}))"
        )

    def open_store(self, clock: ManualClock) -> Store:
        return SQLiteStore(Path(self.folder) / "runs.db", clock=clock)

    # A store of plain files, below, gives the same answers in a tenth of the time.
    @pytest.mark.long
    def test_a_failing_storage_call_is_reported_and_the_request_can_be_repeated(self) -> None:
        super().test_a_failing_storage_call_is_reported_and_the_request_can_be_repeated()

    @pytest.mark.long
    def test_a_power_failure_loses_nothing_that_was_acknowledged(self) -> None:
        super().test_a_power_failure_loses_nothing_that_was_acknowledged()

    @pytest.mark.long
    def test_a_kill_inside_an_append_leaves_all_of_it_or_nothing(self) -> None:
        super().test_a_kill_inside_an_append_leaves_all_of_it_or_nothing()

    @pytest.mark.long
    def test_processes_hold_a_lease_one_at_a_time(self) -> None:
        super().test_processes_hold_a_lease_one_at_a_time()

    @pytest.mark.long
    def test_nothing_is_acknowledged_while_syncs_fail(self) -> None:
        super().test_nothing_is_acknowledged_while_syncs_fail()


class TestFolderStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "runs"
        self.opener = (
            "from workpacket.runtime.testing.folder_store import FolderStore\n"
            f"store = FolderStore({str(self.folder)!r})"
        )

    def open_store(self, clock: ManualClock) -> Store:
        return FolderStore(self.folder, clock=clock)
