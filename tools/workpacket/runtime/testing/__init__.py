"""The conformance suite of the store contract, and what tests of runs need. Ships with the package.

    class TestMyStore(StoreConformance):
        def open_store(self, clock): return MyStore(..., clock=clock)

It tests what `workpacket.runtime.stores.contract` says as far as one handle in one thread can show it; locks between
handles, erased bytes and lost power need tests of the store's own (CONTRIBUTING.md, "Add a store"). A store that other
processes can open also gives `opener`, Python statements that bind it to `store`; then the crash cases run: a writer is
killed with SIGKILL in the middle of its work, and everything it had been told was stored must be there.
"""

from __future__ import annotations

import signal
import subprocess
import sys

from workpacket.runtime.records.events import Event
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.testing.appends import Appends, Fences, Indexes, Payloads, WholeStreams
from workpacket.runtime.testing.stores import STREAM, ManualClock, OpensStores, Writer, refused

__all__ = ["STREAM", "ManualClock", "StoreConformance", "Writer", "refused"]


class Crashes(OpensStores):
    def test_what_a_killed_writer_was_told_is_stored_is_there(self) -> None:
        if self.opener is None:
            return
        for acknowledged in (1, 7, 40):
            stream = f"conformance/killed-after-{acknowledged}@00000001"
            told = kill_after(self.opener, stream, acknowledged)
            with self.store() as store:
                stored = list(store.read(stream))
                assert [event.hash for event in stored[: len(told)]] == told
                assert len(stored) <= len(told) + 1
                lease = store.acquire(stream, "heir", 30, over=1)
                store.append(Writer(f"heir of {stream}", stream).request("b", fence=lease.token))


class StoreConformance(Appends, Fences, Payloads, Indexes, WholeStreams, Crashes):
    """Subclass it as `Test…`, give `open_store`, and let pytest collect it."""


def kill_after(opener: str, stream: str, acknowledged: int) -> list[str]:
    """Let another process append until it has acknowledged so many events, kill it; the hashes it was told."""
    program = f"{opener}\nfrom workpacket.runtime.testing import append_for_ever\nappend_for_ever(store, {stream!r})"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603  # our own program
        assert child.stdout is not None
        told = [child.stdout.readline().strip() for _ in range(acknowledged)]
        child.send_signal(signal.SIGKILL)
        told += [line.strip() for line in child.stdout if line.endswith("\n")]
    return told


def append_for_ever(store: Store, stream: str) -> None:
    """Append under a lease and report each hash once it is stored, until somebody kills this process."""
    lease = store.acquire(stream, "victim", 3600)
    writer = Writer(f"victim of {stream}", stream)
    while True:
        event: Event = store.append(writer.request("checkpoint", fence=lease.token)).events[0]
        print(event.hash, flush=True)  # noqa: T201  # the report to the parent process
