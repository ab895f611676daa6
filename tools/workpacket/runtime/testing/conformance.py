"""The conformance suite of the store contract, and helpers for tests of runs. Ships with the package.

    class TestMyStore(StoreConformance):
        def open_store(self, clock): return MyStore(..., clock=clock)

It tests `workpacket.runtime.stores.contract` as far as one handle in one thread can show; locks between handles, erased
bytes and power loss need separate tests of each store (CONTRIBUTING.md, "Add a store"). For a store that other
processes can open, also define `opener`: Python statements that bind the open store to `store`. Then the crash tests
run too: a writer is killed with SIGKILL while it writes, and everything acknowledged to it must be stored.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from workpacket.runtime.errors import (
    KeyConflict,
    LeaseHeld,
    LeaseLost,
    LogDamaged,
    PayloadErased,
    RuntimeFault,
    VersionConflict,
    WriterConflict,
)
from workpacket.runtime.records.events import GENESIS, Event, NewEvent, event_hash, index_of
from workpacket.runtime.stores.contract import Append, Store
from workpacket.runtime.stores.memory import MemoryStore

Fault = TypeVar("Fault", bound=RuntimeFault)
STREAM = "conformance/run@00000001"


class ManualClock:
    """A clock that moves only when told to, or when something sleeps."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.wall = now
        self.since_boot = 1000.0
        self.boots = 1

    def now(self) -> int:
        return self.wall

    def ticks(self) -> float:
        return self.since_boot

    def boot(self) -> str:
        return f"boot-{self.boots}"

    def reboot(self) -> None:
        self.boots += 1
        self.since_boot = 0.0

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.since_boot += seconds
        self.wall += int(seconds * 1_000_000)


class Writer:
    """Builds requests with gapless sequence numbers, like one writer of one stream."""

    def __init__(self, name: str, stream: str = STREAM) -> None:
        self.name = name
        self.stream = stream
        self.seq = 0

    def request(
        self, *types: str, key: str | None = None, fence: int | None = None, expected: int | None = None
    ) -> Append:
        events = tuple(NewEvent(kind, f'{{"name":"{kind}"}}', payload=f'"{kind}"'.encode()) for kind in types)
        first = self.seq + 1
        self.seq += len(events)
        return Append(self.stream, events, self.name, first, "tester", 10, 20, key, fence, expected)


@contextmanager
def refused(fault: type[Fault]) -> Iterator[None]:
    try:
        yield
    except fault:
        return
    raise AssertionError(f"this should have been refused with {fault.__name__}")


class StoreTestCase:
    """The base of each group of tests."""

    opener: str | None = None

    def open_store(self, clock: ManualClock) -> Store:
        raise NotImplementedError

    @contextmanager
    def store(self, clock: ManualClock | None = None) -> Iterator[Store]:
        store = self.open_store(clock or ManualClock())
        try:
            yield store
        finally:
            store.close()


class Appends(StoreTestCase):
    def test_an_append_is_answered_with_the_chained_events(self) -> None:
        with self.store() as store:
            first, second = store.append(Writer("w").request("a", "b")).events
            assert (first.version, second.version) == (1, 2)
            assert (first.previous, second.previous) == (GENESIS, first.hash)
            assert all(event_hash(event) == event.hash for event in (first, second))
            assert tuple(store.read(STREAM)) == (first, second)

    def test_what_is_read_is_what_was_asked_for(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            events = [store.append(writer.request(kind)).events[0] for kind in "abcdef"]
            assert list(store.read(STREAM, 2)) == events[2:]
            assert list(store.read(STREAM, 2, 4)) == events[2:4]
            assert list(store.read(STREAM, 6)) == []
            assert list(store.read("nobody/knows@00000001")) == []

    def test_the_head_is_the_last_event(self) -> None:
        with self.store() as store:
            assert store.head(STREAM) is None
            last = store.append(Writer("w").request("a", "b")).events[-1]
            head = store.head(STREAM)
            assert head is not None
            assert (head.version, head.hash) == (2, last.hash)

    def test_a_repeated_request_is_answered_with_what_is_stored(self) -> None:
        with self.store() as store:
            request = Writer("w").request("a", "b")
            first = store.append(request)
            again = store.append(request)
            assert again.events == first.events
            assert (first.duplicate, again.duplicate) == (False, True)
            assert len(list(store.read(STREAM))) == 2

    def test_a_repeated_request_is_answered_even_if_the_expected_version_is_past(self) -> None:
        with self.store() as store:
            request = Writer("w").request("a", key="k", expected=0)
            first = store.append(request)
            assert store.append(request).events == first.events

    def test_a_key_used_by_another_writer_is_answered_before_the_head_is_looked_at(self) -> None:
        with self.store() as store:
            first = store.append(Writer("one").request("a", key="k"))
            other = store.append(Writer("two").request("a", key="k", expected=0))
            assert other.duplicate
            assert other.events == first.events

    def test_a_key_stands_for_one_thing(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("a", key="k"))
            with refused(KeyConflict):
                store.append(Writer("two").request("b", key="k"))
            assert len(list(store.read(STREAM))) == 1

    def test_a_key_belongs_to_its_stream(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("a", key="k"))
            assert not store.append(Writer("two", "conformance/other@00000001").request("b", key="k")).duplicate

    def test_a_sequence_number_stands_for_one_request(self) -> None:
        with self.store() as store:
            store.append(Writer("w").request("a"))
            with refused(WriterConflict):
                store.append(Writer("w").request("b"))

    def test_a_gap_in_the_sequence_is_refused(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            writer.request("lost")
            with refused(WriterConflict):
                store.append(writer.request("a"))

    def test_only_one_of_two_that_expect_the_same_version_wins(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("a", expected=0))
            with refused(VersionConflict):
                store.append(Writer("two").request("b", expected=0))
            assert [event.type for event in store.read(STREAM)] == ["a"]

    def test_streams_do_not_disturb_each_other(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("a"))
            store.append(Writer("two", "conformance/other@00000001").request("b", expected=0))
            assert [head.stream for head in store.heads("conformance/")] == ["conformance/other@00000001", STREAM]
            newest = store.heads("conformance/r", newest_first=True, limit=1)
            assert [head.stream for head in newest] == [STREAM]
            assert store.heads("conformance/x") == ()


class Fences(StoreTestCase):
    def test_a_lease_is_held_by_one(self) -> None:
        with self.store() as store:
            store.acquire(STREAM, "one", 30)
            with refused(LeaseHeld):
                store.acquire(STREAM, "two", 30)

    def test_a_lease_ends_by_itself(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            first = store.acquire(STREAM, "one", 30)
            clock.advance(31)
            assert store.lease(STREAM) is None
            assert store.acquire(STREAM, "two", 30).token > first.token

    def test_a_renewed_lease_goes_on(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lease = store.acquire(STREAM, "one", 30)
            clock.advance(20)
            store.renew(lease, 30)
            clock.advance(20)
            present = store.lease(STREAM)
            assert present is not None
            assert present.token == lease.token

    def test_a_lease_that_ended_cannot_be_renewed(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lease = store.acquire(STREAM, "one", 30)
            clock.advance(31)
            with refused(LeaseLost):
                store.renew(lease, 30)

    def test_a_released_lease_is_free_and_its_fence_is_void(self) -> None:
        with self.store() as store:
            lease = store.acquire(STREAM, "one", 30)
            store.release(lease)
            with refused(LeaseLost):
                store.append(Writer("one").request("a", fence=lease.token))
            assert store.acquire(STREAM, "two", 30).token > lease.token

    def test_releasing_a_lost_lease_changes_nothing(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lost = store.acquire(STREAM, "one", 30)
            clock.advance(31)
            present = store.acquire(STREAM, "two", 30)
            store.release(lost)
            held = store.lease(STREAM)
            assert held is not None
            assert held.token == present.token

    def test_the_lease_of_a_dead_holder_can_be_taken_over_by_naming_its_token(self) -> None:
        with self.store() as store:
            dead = store.acquire(STREAM, "one", 30)
            taken = store.acquire(STREAM, "two", 30, over=dead.token)
            assert taken.token > dead.token
            with refused(LeaseHeld):
                store.acquire(STREAM, "three", 30, over=dead.token)

    def test_a_writer_whose_lease_was_taken_over_is_refused(self) -> None:
        with self.store() as store:
            zombie = store.acquire(STREAM, "one", 30)
            present = store.acquire(STREAM, "two", 30, over=zombie.token)
            store.append(Writer("two").request("b", fence=present.token))
            with refused(LeaseLost):
                store.append(Writer("one").request("a", fence=zombie.token))
            assert [event.type for event in store.read(STREAM)] == ["b"]

    def test_a_writer_whose_lease_ended_is_refused_even_if_nobody_took_over(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            lease = store.acquire(STREAM, "one", 30)
            clock.advance(31)
            with refused(LeaseLost):
                store.append(Writer("one").request("a", fence=lease.token))
            assert store.head(STREAM) is None

    def test_the_leases_in_force_are_listed(self) -> None:
        clock = ManualClock()
        with self.store(clock) as store:
            store.acquire("conformance/b@00000001", "one", 30)
            store.acquire("conformance/a@00000001", "two", 90)
            names = [(lease.stream, lease.holder) for lease in store.leases()]
            assert names == [("conformance/a@00000001", "two"), ("conformance/b@00000001", "one")]
            clock.advance(31)
            assert [lease.holder for lease in store.leases()] == ["two"]

    def test_a_message_from_outside_needs_no_lease(self) -> None:
        with self.store() as store:
            lease = store.acquire(STREAM, "one", 30)
            writer = Writer("one")
            store.append(writer.request("a", fence=lease.token))
            store.append(Writer("outside").request("cancel.requested"))
            store.append(writer.request("b", fence=lease.token))
            assert [event.fence for event in store.read(STREAM)] == [lease.token, 0, lease.token]


class Payloads(StoreTestCase):
    def test_a_payload_is_found_by_its_event(self) -> None:
        with self.store() as store:
            (event,) = store.append(Writer("w").request("a")).events
            assert store.payload(event) == b'"a"'
            bare = Append(STREAM, (NewEvent("b", "{}"),), "v", 1, "tester", 1, 2)
            assert store.payload(store.append(bare).events[0]) is None

    def test_an_erased_payload_is_gone_and_the_chain_verifies(self) -> None:
        with self.store() as store:
            (event,) = store.append(Writer("w").request("a")).events
            assert store.erase(event.payload or "")
            assert not store.erase(event.payload or "")
            with refused(PayloadErased):
                store.payload(event)
            assert list(store.read(STREAM)) == [event]

    def test_an_erased_payload_that_is_stored_again_is_there_again(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            (event,) = store.append(writer.request("a")).events
            store.erase(event.payload or "")
            (again,) = store.append(writer.request("a")).events
            assert store.payload(again) == b'"a"'


class Indexes(StoreTestCase):
    def test_the_index_points_at_the_last_event_about_each_thing(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            for kind in ("run.started", "checkpoint", "step.completed", "checkpoint"):
                store.append(writer.request(kind))
            latest = store.latest("checkpoints", STREAM)
            assert latest is not None
            assert latest.version == 4
            assert [entry.version for entry in store.entries("runs", status="open")] == [1]
            assert store.entries("runs", status="completed") == ()
            assert store.latest("effects", STREAM) is None

    def test_the_index_made_anew_is_the_index_as_it_grew(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            kinds = ("run.started", "checkpoint", "effect.started", "effect.succeeded", "checkpoint", "run.completed")
            for kind in kinds:
                store.append(writer.request(kind))
            grown = self._whole_index(store)
            store.rebuild_index()
            assert self._whole_index(store) == grown
            assert set(grown) == set(index_of(store.read(STREAM)).values())

    @staticmethod
    def _whole_index(store: Store) -> list[object]:
        return [entry for kind in ("runs", "checkpoints", "effects") for entry in store.entries(kind)]

    def test_the_newest_event_of_each_stream_is_found_at_once(self) -> None:
        with self.store() as store:
            store.append(Writer("one").request("run.started", "checkpoint"))
            ended = store.append(Writer("one").request("run.started", "checkpoint")).events
            other = store.append(Writer("two", "conformance/zzz@00000001").request("run.started", "run.completed"))
            assert store.newest("runs") == ((STREAM, ended[0]), ("conformance/zzz@00000001", other.events[1]))
            assert store.newest("runs", "conformance/z") == (("conformance/zzz@00000001", other.events[1]),)
            assert store.newest("blocks") == ()


class WholeStreams(StoreTestCase):
    def test_a_store_is_known_again_by_its_identity(self) -> None:
        with self.store() as one:
            identity = one.identity
        assert identity.isprintable()
        with self.store() as two:
            assert two.identity == identity

    def test_a_stream_moves_to_this_store_and_on_with_its_hashes(self) -> None:
        source, target = MemoryStore(), MemoryStore()
        events = source.append(Writer("w").request("a", "checkpoint")).events
        with self.store() as store:
            store.restore(events, [source.payload(event) or b"" for event in events])
            assert tuple(store.read(STREAM)) == events
            assert store.latest("checkpoints", STREAM) == events[1]
            target.restore(store.read(STREAM), [store.payload(event) or b"" for event in events])
            with refused(VersionConflict):
                store.restore(events, [])
        assert tuple(target.read(STREAM)) == events

    def test_a_payload_that_is_missing_when_a_stream_moves_counts_as_erased(self) -> None:
        events = MemoryStore().append(Writer("w").request("a")).events
        with self.store() as store:
            store.restore(events, [])
            with refused(PayloadErased):
                store.payload(events[0])

    def test_a_damaged_stream_is_not_taken_over(self) -> None:
        with self.store() as store:
            (event,) = store.append(Writer("w").request("a")).events
            forged = event._replace(stream="conformance/forged@00000001")
            with refused(LogDamaged):
                store.restore([forged], [])
            assert store.head("conformance/forged@00000001") is None

    def test_a_removed_stream_is_gone_and_its_name_is_not_used_again(self) -> None:
        with self.store() as store:
            events = store.append(Writer("w").request("run.started", "checkpoint")).events
            with refused(VersionConflict):
                store.remove(STREAM, events[0].hash)
            store.remove(STREAM, events[-1].hash)
            assert store.head(STREAM) is None
            assert list(store.read(STREAM)) == []
            assert store.heads() == ()
            (gone,) = store.heads(removed=True)
            assert (gone.stream, gone.version, gone.hash) == (STREAM, 2, events[-1].hash)
            assert store.entries("runs") == ()
            with refused(VersionConflict):
                store.append(Writer("later").request("run.started"))

    def test_whoever_wrote_to_a_removed_stream_is_told_that_its_name_was_used(self) -> None:
        with self.store() as store:
            writer = Writer("w")
            written = [writer.request("run.started", "checkpoint"), writer.request("a")]
            last = [store.append(request) for request in written][-1]
            store.remove(STREAM, last.events[-1].hash)
            for request in (*written, writer.request("a"), Writer("w").request("a", "b")):
                with refused(VersionConflict):
                    store.append(request)

    def test_removing_a_stream_keeps_the_payloads_that_others_use(self) -> None:
        with self.store() as store:
            gone = store.append(Writer("one").request("a")).events
            (kept,) = store.append(Writer("two", "conformance/other@00000001").request("a")).events
            store.remove(STREAM, gone[-1].hash)
            assert store.payload(kept) == b'"a"'


__all__ = ["STREAM", "ManualClock", "StoreConformance", "Writer", "refused"]


class Crashes(StoreTestCase):
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
    """Subclass it as `Test…`, define `open_store`, and let pytest collect it."""


def kill_after(opener: str, stream: str, acknowledged: int) -> list[str]:
    """Let another process append until it has acknowledged this many events, then kill it, and return the acknowledged
    hashes.
    """
    program = f"{opener}\nfrom workpacket.runtime.testing import append_for_ever\nappend_for_ever(store, {stream!r})"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603  # our own program
        assert child.stdout is not None
        told = [child.stdout.readline().strip() for _ in range(acknowledged)]
        child.send_signal(signal.SIGKILL)
        told += [line.strip() for line in child.stdout if line.endswith("\n")]
    return told


def append_for_ever(store: Store, stream: str) -> None:
    """Append under a lease and print each hash once stored, until this process is killed."""
    lease = store.acquire(stream, "victim", 3600)
    writer = Writer(f"victim of {stream}", stream)
    while True:
        event: Event = store.append(writer.request("checkpoint", fence=lease.token)).events[0]
        print(event.hash, flush=True)  # noqa: T201  # the report to the parent process
