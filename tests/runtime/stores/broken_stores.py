"""Stores that are broken on purpose: each breaks one promise of the contract, and names the check that has to notice.

All of them are the template store with one method changed. The first nine were found by a stranger, who broke a store
of his own in nine ways that the suite of that time let pass; the others were derived from the contract alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from workpacket.runtime.errors import LeaseHeld, LeaseLost, PayloadErased, StoreCorrupt
from workpacket.runtime.holders import random_id
from workpacket.runtime.records.events import Event, IndexEntry, index_of, verified
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import (
    Append,
    Appended,
    Head,
    Lease,
    require_fence,
    require_next_in_sequence,
    require_same_as_stored,
    require_version,
)
from workpacket.runtime.testing.folder_store import (
    FolderStore,
    LastLease,
    Record,
    fence_of,
    line_of,
    record_of,
)


class Broken(NamedTuple):
    what: str
    store: type[FolderStore]
    caught_by: str


# ---- the nine ------------------------------------------------------------------------------------------------------


class NoLockBetweenProcesses(FolderStore):
    @contextmanager
    def alone(self) -> Iterator[None]:
        with self.threads:
            self.catch_up()
            yield


class NoLockBetweenThreads(FolderStore):
    @contextmanager
    def alone(self) -> Iterator[None]:
        fcntl.flock(self.processes, fcntl.LOCK_EX)  # one open file: it does not keep out the other threads
        try:
            self.catch_up()
            yield
        finally:
            fcntl.flock(self.processes, fcntl.LOCK_UN)


class NoSync(FolderStore):
    def sync(self, file: int) -> None:
        pass


class StaleReads(FolderStore):
    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        events = self.streams.get(stream, [])[:until]
        return verified(stream, events[after:], after, events[after - 1].hash if after else "0" * 64)


class LeasesInMemory(FolderStore):
    def hold(self, stream: str, token: int, holder: str, seconds: float) -> Lease:
        self.held[stream] = LastLease(token, holder, self.clock.ticks() + seconds, self.clock.boot())
        return Lease(stream, token, holder, seconds)


class LeasesOutliveReboots(FolderStore):
    def left(self, held: LastLease) -> float:
        return held.ends - self.clock.ticks()


class TornLineStays(FolderStore):
    def cut(self) -> None:
        self.end = os.fstat(self.journal).st_size


class ErasedBytesStay(FolderStore):
    def apply(self, record: Record) -> None:
        super().apply(record)
        if "erased" in record:
            self.payloads[record["erased"]] = None

    def erase(self, digest: str) -> bool:
        with self.alone():
            found = self.payloads.get(digest) is not None
            if found:
                self.write({"erased": digest})
            return found


class EventByEvent(FolderStore):
    def keep(self, events: tuple[Event, ...], payloads: Iterable[bytes]) -> None:
        found = {address_of(payload): payload for payload in payloads}
        for event in events:
            self.write(record_of([event], {event.payload: found[event.payload]} if event.payload else {}))


# ---- idempotency, sequence, expected version -------------------------------------------------------------------------


class VersionBeforeRepeats(FolderStore):
    def stored_before(self, request: Append) -> tuple[Event, ...]:
        require_version(request, len(self.streams.get(request.stream, [])))
        return super().stored_before(request)


class FenceBeforeRepeats(FolderStore):
    def stored_before(self, request: Append) -> tuple[Event, ...]:
        held = self.held.get(request.stream, LastLease())
        require_fence(request, held.token, self.left(held), fence_of(self.streams.get(request.stream, [])))
        return super().stored_before(request)


class RepeatsKnownByKeyOnly(FolderStore):
    def stored_before(self, request: Append) -> tuple[Event, ...]:
        return super().stored_before(request) if request.key else ()


class KeyOfAnotherRequestIsARepeat(FolderStore):
    def stored_before(self, request: Append) -> tuple[Event, ...]:
        events = self.streams.get(request.stream, [])
        found = [event for event in events if event.key is not None and event.key == request.key]
        return tuple(found) or super().stored_before(request)


class PayloadsNotCompared(FolderStore):
    def stored_before(self, request: Append) -> tuple[Event, ...]:
        events = self.streams.get(request.stream, [])
        for first in events:
            if first.key is not None and first.key == request.key:
                stored = tuple(events[first.version - 1 :][: len(request.events)])
                bare = request._replace(events=tuple(event._replace(payload=None) for event in request.events))
                require_same_as_stored(bare, [event._replace(payload=None) for event in stored], by_key=True)
                return stored
        return super().stored_before(request)


class KeysOfTheWholeStore(FolderStore):
    def stored_before(self, request: Append) -> tuple[Event, ...]:
        for event in (event for events in self.streams.values() for event in events):
            if event.key is not None and event.key == request.key:
                require_same_as_stored(request, (event,), by_key=True)
                return (event,)
        return super().stored_before(request)


class GapsInTheSequence(FolderStore):
    def admit(self, request: Append, events: list[Event]) -> None:
        held = self.held.get(request.stream, LastLease())
        require_fence(request, held.token, self.left(held), fence_of(events))
        require_version(request, len(events))


class WritersInMemory(FolderStore):
    def catch_up(self) -> None:
        known = dict(getattr(self, "writers", {}))
        super().catch_up()
        self.writers = known


class ExpectedVersionIgnored(FolderStore):
    def admit(self, request: Append, events: list[Event]) -> None:
        super().admit(request._replace(expected_version=None), events)


class ExpectedVersionCheckedTooEarly(FolderStore):
    def append(self, request: Append) -> Appended:
        with self.alone():
            if not self.stored_before(request):
                require_version(request, len(self.streams.get(request.stream, [])))
        return super().append(request._replace(expected_version=None))


# ---- fences and leases -----------------------------------------------------------------------------------------------


class EndOfLeaseIgnored(FolderStore):
    def admit(self, request: Append, events: list[Event]) -> None:
        require_next_in_sequence(request, max(self.writers.get(request.writer, ()), default=0))
        require_fence(request, self.held.get(request.stream, LastLease()).token, 1.0, fence_of(events))
        require_version(request, len(events))


class FencesNeverIssued(FolderStore):
    def admit(self, request: Append, events: list[Event]) -> None:
        token = self.held.get(request.stream, LastLease()).token
        if request.fence is None or request.fence <= token:
            super().admit(request, events)


class TokensUsedAgain(FolderStore):
    def release(self, lease: Lease) -> None:
        with self.alone():
            if self.held.get(lease.stream, LastLease()).token == lease.token:
                self.hold(lease.stream, 0, "", 0)


class TokensBeginAgainWithTheBoot(FolderStore):
    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        with self.alone():
            if self.held.get(stream, LastLease()).boot not in {"", self.clock.boot()}:
                return self.hold(stream, 1, holder, seconds)
        return super().acquire(stream, holder, seconds, over=over)


class LeasesByTheWallClock(FolderStore):
    def left(self, held: LastLease) -> float:
        return held.ends - self.clock.now() / 1_000_000 if held.boot == self.clock.boot() else 0.0

    def hold(self, stream: str, token: int, holder: str, seconds: float) -> Lease:
        ends = self.clock.now() / 1_000_000 + seconds
        self.write({"lease": [stream, token, holder, ends, self.clock.boot()]})
        return Lease(stream, token, holder, seconds)


class LeaseForTwo(FolderStore):
    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        present = self.lease(stream)
        if present is not None and present.token != over:
            raise LeaseHeld(f"{present.holder} has a lease on {stream}")
        with self.alone():
            return self.hold(stream, self.held.get(stream, LastLease()).token + 1, holder, seconds)


class LostLeaseRenewed(FolderStore):
    def renew(self, lease: Lease, seconds: float) -> Lease:
        with self.alone():
            if self.left(self.held.get(lease.stream, LastLease())) <= 0:
                raise LeaseLost(f"the lease of {lease.stream} has ended")
            return self.hold(lease.stream, lease.token, lease.holder, seconds)


class AnyTokenTakesOver(FolderStore):
    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        present = self.lease(stream)
        return super().acquire(stream, holder, seconds, over=present.token if over and present else over)


class ReleaseByAnybody(FolderStore):
    def release(self, lease: Lease) -> None:
        with self.alone():
            self.hold(lease.stream, self.held.get(lease.stream, LastLease()).token, "", 0)


# ---- all or nothing, durable -----------------------------------------------------------------------------------------


class AcknowledgedBeforeItIsWritten(FolderStore):
    late: tuple[Record, ...] = ()

    def keep(self, events: tuple[Event, ...], payloads: Iterable[bytes]) -> None:
        self.catch_up_late()
        record = record_of(events, {address_of(payload): payload for payload in payloads})
        self.apply(record)
        self.late = (record,)

    def catch_up_late(self) -> None:
        for record in self.late:
            line = line_of(record)
            os.pwrite(self.journal, line, self.end)
            self.end += len(line)
        self.late = ()

    def close(self) -> None:
        self.catch_up_late()
        super().close()


class PayloadsAfterEvents(FolderStore):
    def keep(self, events: tuple[Event, ...], payloads: Iterable[bytes]) -> None:
        self.write(record_of(events, {}))
        self.write(record_of((), {address_of(payload): payload for payload in payloads}))


class IndexAfterEvents(FolderStore):
    def forget(self) -> None:
        super().forget()
        self.indexed = 0

    def apply(self, record: Record) -> None:
        super().apply(record)
        self.indexed += record.get("indexed", 0)

    def keep(self, events: tuple[Event, ...], payloads: Iterable[bytes]) -> None:
        super().keep(events, payloads)
        self.write({"indexed": len(events)})

    def index(self) -> list[IndexEntry]:
        with self.alone():
            events = [event for events in self.streams.values() for event in events]
        entries = index_of(events[: self.indexed]).values()
        return sorted(entries, key=lambda entry: (entry.stream, entry.version))


class FailedSyncAcknowledged(FolderStore):
    def sync(self, file: int) -> None:
        with suppress(OSError):
            super().sync(file)


class FolderNotSynced(FolderStore):
    def sync_folder(self) -> None:
        pass


class RenamedBeforeSynced(FolderStore):
    renaming = False

    def sync(self, file: int) -> None:
        if not self.renaming:
            super().sync(file)

    def rewrite(self) -> None:
        self.renaming = True
        try:
            super().rewrite()
        finally:
            self.renaming = False


# ---- reading ---------------------------------------------------------------------------------------------------------


class LineNotVerified(FolderStore):
    """Believes lines whose CRC is wrong, as a store without one would."""

    def catch_up(self) -> None:
        if self.journal < 0:
            super().catch_up()  # opens the journal
            self.end = 0
        text = os.pread(self.journal, os.fstat(self.journal).st_size - self.end, self.end)
        self.end += len(text)
        for line in text.split(b"\n")[:-1]:
            try:
                self.apply(json.loads(line.partition(b" ")[2]))
            except ValueError:
                raise StoreCorrupt("a record is damaged") from None


class EventsNotVerified(LineNotVerified):
    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        with self.alone():
            return iter(self.streams.get(stream, [])[after:until])


class PayloadsNotVerified(LineNotVerified):
    def payload(self, event: Event) -> bytes | None:
        with self.alone():
            found = self.payloads[event.payload] if event.payload else None
        if event.payload and found is None:
            raise PayloadErased(f"{event.stream}, version {event.version}: the payload was erased")
        return found


class PayloadsAreText(FolderStore):
    def payload(self, event: Event) -> bytes | None:
        found = super().payload(event)
        return None if found is None else found.decode("utf-8", "replace").encode()


class EmptyPayloadIsNone(FolderStore):
    def payload(self, event: Event) -> bytes | None:
        return super().payload(event) or None


class PrefixIsAPattern(FolderStore):
    def heads(
        self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None, removed: bool = False
    ) -> tuple[Head, ...]:
        pattern = re.compile(re.escape(prefix).replace("_", ".").replace("%", ".*"))
        found = super().heads(newest_first=newest_first, removed=removed)
        return tuple(head for head in found if pattern.match(head.stream))[:limit]


class NamesWithoutCase(FolderStore):
    def append(self, request: Append) -> Appended:
        return super().append(request._replace(stream=request.stream.lower()))

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        return super().read(stream.lower(), after, until)


class ReadingHoldsTheLock(FolderStore):
    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        with self.alone():
            events = self.streams.get(stream, [])
            yield from verified(stream, events[after:until], after, events[after - 1].hash if after else "0" * 64)


class ErasedPayloadRemembered(FolderStore):
    def payload(self, event: Event) -> bytes | None:
        seen: dict[str | None, bytes | None] = self.__dict__.setdefault("seen", {})
        if event.payload not in seen:
            seen[event.payload] = super().payload(event)
        return seen[event.payload]

    def erase(self, digest: str) -> bool:
        self.__dict__.setdefault("seen", {}).pop(digest, None)
        return super().erase(digest)


class ErasedInOneStream(FolderStore):
    def payload(self, event: Event) -> bytes | None:
        gone: dict[str | None, str] = self.__dict__.setdefault("gone", {})
        if gone.get(event.payload) == event.stream:
            raise PayloadErased(f"{event.stream}, version {event.version}: the payload was erased")
        return super().payload(event)

    def erase(self, digest: str) -> bool:
        with self.alone():
            users = [event.stream for events in self.streams.values() for event in events if event.payload == digest]
            self.__dict__.setdefault("gone", {})[digest] = users[0]
            return True


# ---- whole streams ---------------------------------------------------------------------------------------------------


class RestoredInPart(FolderStore):
    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        found = {address_of(payload): payload for payload in payloads}
        taken = list(events)
        for event in verified(taken[0].stream, taken):
            with self.alone():
                self.write(record_of([event], {event.payload: found.get(event.payload)} if event.payload else {}))


class TombstonesInMemory(FolderStore):
    def records(self) -> Iterator[Record]:
        return (record for record in super().records() if "removed" not in record)

    def rewrite(self) -> None:
        removed = dict(self.removed)
        super().rewrite()
        self.catch_up()
        self.removed.update(removed)


class IdentityOfTheHandle(FolderStore):
    @property
    def identity(self) -> str:
        mine: str = self.__dict__.setdefault("mine", random_id())
        return mine


BROKEN = (
    Broken("no lock between processes", NoLockBetweenProcesses, "test_processes_lose_and_repeat_nothing"),
    Broken("no lock between threads", NoLockBetweenThreads, "test_threads_lose_and_repeat_nothing"),
    Broken("no fsync", NoSync, "test_a_power_failure_loses_nothing_that_was_acknowledged"),
    Broken("reads do not see other handles", StaleReads, "test_what_one_handle_wrote_another_reads"),
    Broken("leases kept in memory only", LeasesInMemory, "test_a_lease_taken_through_one_handle_binds_the_others"),
    Broken("leases outlive a reboot", LeasesOutliveReboots, "test_a_lease_ends_with_its_boot"),
    Broken("a torn last line stays", TornLineStays, "test_a_power_failure_loses_nothing_that_was_acknowledged"),
    Broken("erased bytes stay on the disk", ErasedBytesStay, "test_an_erased_payload_is_gone_from_the_disk"),
    Broken("several events written one by one", EventByEvent,
           "test_a_kill_inside_an_append_leaves_all_of_it_or_nothing"),
    Broken("expected version before repeats", VersionBeforeRepeats,
           "test_a_repeated_request_is_answered_even_if_the_expected_version_is_past"),
    Broken("fence before repeats", FenceBeforeRepeats,
           "test_a_repeated_request_is_answered_even_if_its_lease_has_ended"),
    Broken("repeats known by their key only", RepeatsKnownByKeyOnly,
           "test_a_repeated_request_is_answered_with_what_is_stored"),
    Broken("another request with a used key is a repeat", KeyOfAnotherRequestIsARepeat,
           "test_a_key_stands_for_one_thing"),
    Broken("payloads of repeats not compared", PayloadsNotCompared, "test_a_key_with_another_payload_is_a_conflict"),
    Broken("keys of the whole store", KeysOfTheWholeStore, "test_a_key_belongs_to_its_stream"),
    Broken("gaps in the sequence accepted", GapsInTheSequence, "test_a_gap_in_the_sequence_is_refused"),
    Broken("writers kept in memory only", WritersInMemory,
           "test_a_request_repeated_through_another_handle_is_recognized"),
    Broken("expected version ignored", ExpectedVersionIgnored,
           "test_only_one_of_two_that_expect_the_same_version_wins"),
    Broken("expected version checked before the lock", ExpectedVersionCheckedTooEarly,
           "test_of_threads_that_expect_the_same_version_one_wins"),
    Broken("the end of a lease ignored", EndOfLeaseIgnored,
           "test_a_writer_whose_lease_ended_is_refused_even_if_nobody_took_over"),
    Broken("fences that were never issued accepted", FencesNeverIssued,
           "test_a_fence_that_was_never_issued_is_refused"),
    Broken("tokens used again after a release", TokensUsedAgain, "test_a_released_lease_is_free_and_its_fence_is_void"),
    Broken("tokens begin again with the boot", TokensBeginAgainWithTheBoot, "test_tokens_grow_across_reboots"),
    Broken("leases by the wall clock", LeasesByTheWallClock, "test_a_jump_of_the_wall_clock_changes_no_lease"),
    Broken("a lease for two threads", LeaseForTwo, "test_of_threads_that_acquire_a_lease_one_gets_it"),
    Broken("a lost lease renewed", LostLeaseRenewed, "test_a_lease_that_was_taken_over_cannot_be_renewed"),
    Broken("any token takes over", AnyTokenTakesOver,
           "test_the_lease_of_a_dead_holder_can_be_taken_over_by_naming_its_token"),
    Broken("a lease released by anybody", ReleaseByAnybody, "test_releasing_a_lost_lease_changes_nothing"),
    Broken("acknowledged before it is written", AcknowledgedBeforeItIsWritten,
           "test_a_kill_inside_an_append_leaves_all_of_it_or_nothing"),
    Broken("payloads written after their events", PayloadsAfterEvents,
           "test_a_kill_inside_an_append_leaves_all_of_it_or_nothing"),
    Broken("index written after the events", IndexAfterEvents,
           "test_a_kill_inside_an_append_leaves_all_of_it_or_nothing"),
    Broken("a failed sync acknowledged", FailedSyncAcknowledged, "test_nothing_is_acknowledged_while_syncs_fail"),
    Broken("a new file whose folder was not synced", FolderNotSynced,
           "test_a_power_failure_loses_nothing_that_was_acknowledged"),
    Broken("a file renamed before it was synced", RenamedBeforeSynced,
           "test_a_power_failure_loses_nothing_that_was_acknowledged"),
    Broken("events not verified", EventsNotVerified, "test_altered_bytes_are_never_returned"),
    Broken("payloads not verified", PayloadsNotVerified, "test_altered_bytes_are_never_returned"),
    Broken("payloads stored as text", PayloadsAreText, "test_content_comes_back_byte_for_byte"),
    Broken("an empty payload is none", EmptyPayloadIsNone, "test_content_comes_back_byte_for_byte"),
    Broken("a prefix is a pattern", PrefixIsAPattern, "test_a_prefix_is_not_a_pattern"),
    Broken("names without case", NamesWithoutCase, "test_similar_names_are_different_streams"),
    Broken("reading holds the lock", ReadingHoldsTheLock, "test_an_unfinished_read_keeps_nobody_from_writing"),
    Broken("an erased payload remembered", ErasedPayloadRemembered,
           "test_a_payload_that_one_handle_erased_is_gone_for_the_others"),
    Broken("a payload erased in one of its streams", ErasedInOneStream,
           "test_a_payload_of_two_streams_is_erased_in_both"),
    Broken("a damaged stream restored in part", RestoredInPart, "test_a_stream_damaged_at_its_end_is_not_taken_over"),
    Broken("tombstones kept in memory only", TombstonesInMemory,
           "test_a_name_removed_through_one_handle_is_not_reused_by_another"),
    Broken("an identity of each handle", IdentityOfTheHandle, "test_a_store_is_known_again_by_its_identity"),
)  # fmt: skip


def opener_of(store: type[FolderStore], folder: str) -> str:
    return f"from runtime.stores.broken_stores import {store.__name__}\nstore = {store.__name__}({folder!r})"


class SlowStore(FolderStore):
    """Correct, and slow: 200 ms for each call, or 20 in the share that CI runs."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        time.sleep(0.02 if os.environ.get("WORKPACKET_PROOF") == "bounded" else 0.2)
        with super().alone():
            yield
