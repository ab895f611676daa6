"""A correct store that is slow passes the whole conformance suite: nothing in it takes slowness for a fault.

CI's share is a store that is ten times as fast.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.share import bounded
from runtime.stores.broken_stores import SlowStore, opener_of
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.testing import ManualClock, StoreConformance


class TestSlowStore(StoreConformance):
    most_states = 2 if bounded() else 10
    most_bytes = 10

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "runs"
        self.opener = opener_of(SlowStore, str(self.folder))

    def open_store(self, clock: ManualClock) -> Store:
        return SlowStore(self.folder, clock=clock)
