"""The store in memory: the shortest implementation of the contract, the reference for the other stores, and a store for
tests.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from workpacket.runtime.errors import LeaseLost, VersionConflict
from workpacket.runtime.holders import Clock, SystemClock
from workpacket.runtime.records.events import GENESIS, Event, IndexEntry, entry_of, index_of, require_payload, verified
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import (
    Append,
    Appended,
    Head,
    Lease,
    events_to_store,
    lease_held,
    name_was_used,
    require_fence,
    require_next_in_sequence,
    require_same_as_stored,
    require_version,
)


class MemoryStore:
    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._streams: dict[str, list[Event]] = {}
        self._writers: dict[str, dict[int, Event]] = {}
        self._payloads: dict[str, bytes | None] = {}
        self._leases: dict[str, tuple[int, str, float]] = {}
        self._index: dict[tuple[str, str, str], IndexEntry] = {}
        self._removed: dict[str, Head] = {}

    @property
    def identity(self) -> str:
        return ""

    def append(self, request: Append) -> Appended:
        with self._lock:
            self._require_name_is_free(request.stream)
            # Before the lease is checked: a repeated append that was already stored succeeds, even if the lease has
            # ended since.
            stored = self._stored_before(request)
            if stored:
                return Appended(stored, duplicate=True)
            require_next_in_sequence(request, max(self._writers.get(request.writer, ()), default=0))
            events = self._streams.get(request.stream, [])
            token, _, ends = self._leases.get(request.stream, (0, "", 0.0))
            require_fence(request, token, ends - self._clock.ticks(), _highest_fence(events))
            require_version(request, len(events))
            new = events_to_store(request, len(events), events[-1].hash if events else GENESIS)
            self._keep(new, [event.payload for event in request.events if event.payload is not None])
            return Appended(new, duplicate=False)

    def _stored_before(self, request: Append) -> tuple[Event, ...]:
        events = self._streams.get(request.stream, [])
        by_key = next((event for event in events if event.key is not None and event.key == request.key), None)
        first = by_key or self._writers.get(request.writer, {}).get(request.writer_seq)
        if first is None:
            return ()
        start = first.version - 1
        stored = tuple(self._streams.get(first.stream, [])[start : start + len(request.events)])
        require_same_as_stored(request, stored, by_key=by_key is not None)
        return stored

    def _require_name_is_free(self, stream: str) -> None:
        if stream in self._removed:
            raise name_was_used(stream)

    def _keep(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        for payload in payloads:
            self._payloads[address_of(payload)] = payload
        for event in events:
            self._streams.setdefault(event.stream, []).append(event)
            self._writers.setdefault(event.writer, {})[event.writer_seq] = event
            entry = entry_of(event)
            if entry is not None:
                self._index[entry.kind, entry.stream, entry.key] = entry

    def head(self, stream: str) -> Head | None:
        with self._lock:
            events = self._streams.get(stream)
            return Head(stream, events[-1].version, events[-1].hash, _highest_fence(events)) if events else None

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        with self._lock:
            events = self._streams.get(stream, [])[:until]
        # Verified on the way out, like those of the other stores, so that tests notice if they were altered.
        previous = events[after - 1].hash if 0 < after <= len(events) else GENESIS
        return verified(stream, events[after:], after, previous)

    def payload(self, event: Event) -> bytes | None:
        if event.payload is None:
            return None
        with self._lock:
            found = (self._payloads[event.payload],) if event.payload in self._payloads else None
        return require_payload(event, found)

    def erase(self, digest: str) -> bool:
        with self._lock:
            found = self._payloads.get(digest) is not None
            if found:
                self._payloads[digest] = None
            return found

    def heads(
        self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None, removed: bool = False
    ) -> tuple[Head, ...]:
        with self._lock:
            names = sorted({**self._streams, **(self._removed if removed else {})})
            names = [name for name in names[bisect_left(names, prefix) :] if name.startswith(prefix)]
            names = (names[::-1] if newest_first else names)[:limit]
            return tuple(head for name in names if (head := self.head(name) or self._removed.get(name)) is not None)

    def entries(self, kind: str, *, stream: str | None = None, status: str | None = None) -> tuple[IndexEntry, ...]:
        with self._lock:
            found = [
                entry
                for entry in self._index.values()
                if entry.kind == kind and stream in {None, entry.stream} and status in {None, entry.status}
            ]
        return tuple(sorted(found, key=lambda entry: (entry.stream, entry.version)))

    def index_kinds(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted({entry.kind for entry in self._index.values()}))

    def latest(self, kind: str, stream: str) -> Event | None:
        found = self.entries(kind, stream=stream)
        return next(self.read(stream, found[-1].version - 1, found[-1].version)) if found else None

    def newest(self, kind: str, prefix: str = "") -> tuple[tuple[str, Event | None], ...]:
        found = {entry.stream for entry in self.entries(kind) if not entry.key and entry.stream.startswith(prefix)}
        return tuple((stream, self.latest(kind, stream)) for stream in sorted(found))

    def rebuild_index(self) -> None:
        with self._lock:
            self._index = index_of(event for events in self._streams.values() for event in events)

    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        with self._lock:
            token, present, ends = self._leases.get(stream, (0, "", 0.0))
            left = ends - self._clock.ticks()
            if left > 0 and token != over:
                raise lease_held(stream, present, token, left)
            # The number only rises, so that a holder that slept through its lease is told apart from the one that has
            # it now.
            self._leases[stream] = (token + 1, holder, self._clock.ticks() + seconds)
            return Lease(stream, token + 1, holder, seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        with self._lock:
            token, holder, ends = self._leases.get(lease.stream, (0, "", 0.0))
            if token != lease.token or ends <= self._clock.ticks():
                raise LeaseLost(f"lease {lease.token} of {lease.stream} is no longer valid")
            self._leases[lease.stream] = (token, holder, self._clock.ticks() + seconds)
            return lease._replace(seconds_left=seconds)

    def release(self, lease: Lease) -> None:
        with self._lock:
            token, holder, _ = self._leases.get(lease.stream, (0, "", 0.0))
            if token == lease.token:
                self._leases[lease.stream] = (token, holder, self._clock.ticks())

    def lease(self, stream: str) -> Lease | None:
        with self._lock:
            token, holder, ends = self._leases.get(stream, (0, "", 0.0))
            left = ends - self._clock.ticks()
            return Lease(stream, token, holder, left) if left > 0 else None

    def leases(self) -> tuple[Lease, ...]:
        found = [self.lease(stream) for stream in sorted(self._leases)]
        return tuple(lease for lease in found if lease is not None)

    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        taken = list(events)
        stream = taken[0].stream
        checked = list(verified(stream, taken))
        with self._lock:
            if stream in self._streams:
                raise VersionConflict(f"{stream} already exists; a stream must be imported as a whole")
            self._require_name_is_free(stream)
            self._keep(checked, payloads)
            for event in checked:
                if event.payload is not None:
                    self._payloads.setdefault(event.payload, None)

    def remove(self, stream: str, head: str) -> None:
        with self._lock:
            events = self._streams.get(stream, [])
            if not events or events[-1].hash != head:
                raise VersionConflict(f"{stream} is not at the expected head")
            self._removed[stream] = Head(stream, events[-1].version, head, _highest_fence(events))
            del self._streams[stream]
            self._leases.pop(stream, None)
            self._index = {key: entry for key, entry in self._index.items() if entry.stream != stream}
            for event in events[:-1]:
                self._writers[event.writer].pop(event.writer_seq, None)
            # Streams share payloads, which are stored once for each digest.
            used = {event.payload for kept in self._streams.values() for event in kept}
            self._payloads = {digest: stored for digest, stored in self._payloads.items() if digest in used}

    def close(self) -> None:
        """Do nothing, because the store holds no resources."""


def _highest_fence(events: list[Event]) -> int:
    return max((event.fence for event in events), default=0)
