"""The PostgreSQL store keeps the contract: the suite that ships with the package, run on it."""

from __future__ import annotations

from itertools import count

import pytest

from postgres.clocked import ClockedPostgres
from postgres.server import Server
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.testing import ManualClock, ServerStoreConformance

_NUMBERS = count(1)


class TestPostgresStore(ServerStoreConformance):
    @pytest.fixture(autouse=True)
    def _place(self, server: Server) -> None:
        self.url = server.url(workpacket_schema="conformance", workpacket_project=f"p{next(_NUMBERS)}")
        self.opener = (
            f"from workpacket.runtime.stores.postgres.store import PostgresStore\nstore = PostgresStore({self.url!r})"
        )

    def open_store(self, clock: ManualClock) -> Store:
        return ClockedPostgres(self.url, clock)

    # Folders, files and threads are asked the same in `just test`.
    @pytest.mark.long
    def test_processes_hold_a_lease_one_at_a_time(self) -> None:
        super().test_processes_hold_a_lease_one_at_a_time()

    @pytest.mark.long
    def test_processes_lose_and_repeat_nothing(self) -> None:
        super().test_processes_lose_and_repeat_nothing()
