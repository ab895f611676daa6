"""For tests of stores and of runs. Ships with the package; docs/runtime/stores.md describes its use.

    class TestMyStore(StoreConformance):
        def open_store(self, clock): return MyStore(..., clock=clock)

`StoreConformance` tests the contract of a store, `model.StoreModel` compares it with the store in memory, and
`folder_store` is a small store to begin with.
"""

from __future__ import annotations

from workpacket.runtime.testing.cases import STREAM, ManualClock, Writer, refused
from workpacket.runtime.testing.crashes import Bytes, Crashes, Kills, Reboots
from workpacket.runtime.testing.one_handle import Appends, Fences, Indexes, Payloads, WholeStreams
from workpacket.runtime.testing.several_handles import Handles, Processes, Threads

__all__ = [
    "STREAM",
    "ManualClock",
    "MemoryStoreConformance",
    "ServerStoreConformance",
    "StoreConformance",
    "Writer",
    "refused",
]


class MemoryStoreConformance(Appends, Fences, Payloads, Indexes, WholeStreams, Threads):
    """For a store that does not outlive its process. Define `open_store` to return a new store."""


class ServerStoreConformance(MemoryStoreConformance, Handles, Processes, Kills):
    """For a store on a server, which handles its own crashes: also tests several handles, processes and kills. Define
    `opener` as well; `open_store` returns another handle for the same store.
    """


class StoreConformance(ServerStoreConformance, Reboots, Crashes, Bytes):
    """For a store in files on this machine: tests the whole contract. Define `folder` as well. Requires strace."""
