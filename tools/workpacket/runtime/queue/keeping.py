"""Keeps the lease of the job in hand in force, for as long as its worker is really running.

One thread for the life of a worker: to begin and end one for each run takes as long as an append.
"""

from __future__ import annotations

import threading

from workpacket.runtime.errors import LeaseLost, RuntimeFault
from workpacket.runtime.stores.contract import Lease, Store


class Keeper:
    """`with Keeper(...)`: `held` is the lease that is renewed; None: none is."""

    def __init__(self, store: Store, seconds: float) -> None:
        self.held: Lease | None = None
        self._store = store
        self._seconds = seconds
        self._over = threading.Event()

    def __enter__(self) -> Keeper:
        threading.Thread(target=self._renew_until_over, name="workpacket-leases", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _renew_until_over(self) -> None:
        while not self._over.wait(self._seconds / 3):
            lease = self.held
            try:
                if lease is not None:
                    self._store.renew(lease, self._seconds)
            except LeaseLost:  # the next record is refused by the store and says so
                if self.held is lease:
                    self.held = None
            except RuntimeFault:
                continue  # the store was busy; there are two more tries before the lease ends
