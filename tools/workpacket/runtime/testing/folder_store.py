"""A small store in a folder: a template for your own stores.

One file, the journal, contains everything; each line is one record with a CRC, and appending it is the transaction. The
state in memory is what the records add up to, and each call first reads what other handles have written since. Erasing
and removing rewrite the journal without the bytes. The store is correct but designed for a few short runs: every handle
keeps the whole store in memory. A damaged last record cannot be distinguished from one that a power failure cut off, so
it is dropped; the SQLite store knows how far it had come and reports the loss.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from workpacket.runtime.errors import LeaseHeld, LeaseLost, StorageFailed, StoreCorrupt, VersionConflict
from workpacket.runtime.holders import Clock, SystemClock, random_id
from workpacket.runtime.records.events import GENESIS, Event, IndexEntry, index_of, require_payload, verified
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import (
    Append,
    Appended,
    Head,
    Lease,
    events_to_store,
    name_was_used,
    require_fence,
    require_next_in_sequence,
    require_same_as_stored,
    require_version,
)

Record = Mapping[str, Any]


class LastLease(NamedTuple):
    """The last lease of a stream: it expires at `ends` ticks of the boot in which it was taken."""

    token: int = 0
    holder: str = ""
    ends: float = 0.0
    boot: str = ""


class FolderStore:
    def __init__(self, folder: str | os.PathLike[str], *, clock: Clock | None = None) -> None:
        self.folder = os.fspath(folder)
        self.clock = clock or SystemClock()
        self.threads = threading.Lock()
        os.makedirs(self.folder, exist_ok=True)
        self.processes = os.open(self._path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.journal = -1
        self.forget()
        with self.alone():
            if not self.name:
                self.write({"name": random_id()})

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    @property
    def identity(self) -> str:
        return self.name

    def close(self) -> None:
        with self.threads:
            self.forget()
            if self.processes >= 0:
                os.close(self.processes)
            self.processes = -1

    # ---- the journal ---------------------------------------------------------------------------------------------

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock out other threads and processes, and read what they have written. Every call runs inside this context
        manager."""
        with self.threads:
            fcntl.flock(self.processes, fcntl.LOCK_EX)
            try:
                self.catch_up()
                yield
            finally:
                fcntl.flock(self.processes, fcntl.LOCK_UN)

    def forget(self) -> None:
        """Begin with an empty state; the next call reads the whole journal."""
        if self.journal >= 0:
            os.close(self.journal)
        self.journal, self.end, self.name = -1, 0, ""
        self.streams: dict[str, list[Event]] = {}
        self.writers: dict[str, dict[int, Event]] = {}
        self.payloads: dict[str, bytes | None] = {}
        self.held: dict[str, LastLease] = {}
        self.removed: dict[str, Head] = {}

    def catch_up(self) -> None:
        path = self._path("journal")
        if self.journal < 0 or not os.path.samestat(os.stat(path), os.fstat(self.journal)):
            self.forget()
            self.journal = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.sync_folder()
        text = os.pread(self.journal, os.fstat(self.journal).st_size - self.end, self.end)
        if text:
            self.sync(self.journal)  # its writer may have been killed before it was durable
        while text:
            line, newline, text = text.partition(b"\n")
            record = read_line(line) if newline else None
            if record is None and text:
                raise StoreCorrupt(f"{path}: the record at byte {self.end} is damaged")
            if record is not None:
                self.apply(record)
                self.end += len(line) + 1

    def write(self, record: Record) -> None:
        """Write a record, after removing the remainder of a truncated one. Once this returns, the record counts."""
        line = line_of(record)
        try:
            self.cut()
            if os.pwrite(self.journal, line, self.end) < len(line):
                raise OSError("only part of the record was written")
            self.sync(self.journal)
        except OSError as error:
            with suppress(OSError):
                self.cut()
            self.forget()
            raise StorageFailed(f"{self._path('journal')}: {error}") from error
        self.end += len(line)
        self.apply(record)

    def cut(self) -> None:
        if os.fstat(self.journal).st_size > self.end:
            os.ftruncate(self.journal, self.end)

    def rewrite(self) -> None:
        """Rewrite the journal with only the current state, so that erased bytes disappear."""
        path = self._path("journal")
        try:
            new = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(new, "wb") as file:
                file.writelines(map(line_of, self.records()))
                file.flush()
                self.sync(new)
            os.replace(f"{path}.new", path)
            self.sync_folder()
        except OSError as error:
            raise StorageFailed(f"{path}: {error}") from error
        finally:
            self.forget()

    def sync(self, file: int) -> None:
        os.fsync(file)

    def sync_folder(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            self.sync(folder)
        finally:
            os.close(folder)

    def records(self) -> Iterator[Record]:
        yield {"name": self.name}
        yield from ({"removed": list(head)} for head in self.removed.values())
        yield from ({"lease": [stream, *held]} for stream, held in self.held.items())
        for events in self.streams.values():
            yield record_of(events, {event.payload: self.payloads[event.payload] for event in events if event.payload})

    def apply(self, record: Record) -> None:
        """Apply a record to the state."""
        self.name = record.get("name", self.name)
        if "lease" in record:
            stream, *held = record["lease"]
            self.held[stream] = LastLease(*held)
        if "removed" in record:
            head = Head(*record["removed"])
            self.removed[head.stream] = head
        for fields in record.get("events", ()):
            event = Event(*fields)
            self.streams.setdefault(event.stream, []).append(event)
            self.writers.setdefault(event.writer, {})[event.writer_seq] = event
        for digest, text in record.get("payloads", {}).items():
            if text is None:
                self.payloads.setdefault(digest, None)
            else:
                self.payloads[digest] = base64.b64decode(text)

    # ---- appending -----------------------------------------------------------------------------------------------

    def append(self, request: Append) -> Appended:
        with self.alone():
            if request.stream in self.removed:
                raise name_was_used(request.stream)
            stored = self.stored_before(request)
            if stored:
                return Appended(stored, duplicate=True)
            events = self.streams.get(request.stream, [])
            self.admit(request, events)
            new = events_to_store(request, len(events), events[-1].hash if events else GENESIS)
            self.keep(new, [event.payload for event in request.events if event.payload is not None])
            return Appended(new, duplicate=False)

    def stored_before(self, request: Append) -> tuple[Event, ...]:
        events = self.streams.get(request.stream, [])
        by_key = next((event for event in events if event.key is not None and event.key == request.key), None)
        first = by_key or self.writers.get(request.writer, {}).get(request.writer_seq)
        if first is None:
            return ()
        stored = tuple(self.streams[first.stream][first.version - 1 :][: len(request.events)])
        require_same_as_stored(request, stored, by_key=by_key is not None)
        return stored

    def admit(self, request: Append, events: list[Event]) -> None:
        require_next_in_sequence(request, max(self.writers.get(request.writer, ()), default=0))
        held = self.held.get(request.stream, LastLease())
        require_fence(request, held.token, self.left(held), fence_of(events))
        require_version(request, len(events))

    def keep(self, events: tuple[Event, ...], payloads: Iterable[bytes]) -> None:
        self.write(record_of(events, {address_of(payload): payload for payload in payloads}))

    # ---- reading -------------------------------------------------------------------------------------------------

    def head(self, stream: str) -> Head | None:
        with self.alone():
            return self.head_of(stream)

    def head_of(self, stream: str) -> Head | None:
        events = self.streams.get(stream)
        return Head(stream, events[-1].version, events[-1].hash, fence_of(events)) if events else None

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        with self.alone():
            events = self.streams.get(stream, [])[:until]
        previous = events[after - 1].hash if 0 < after <= len(events) else GENESIS
        return verified(stream, events[after:], after, previous)

    def payload(self, event: Event) -> bytes | None:
        if event.payload is None:
            return None
        with self.alone():
            return require_payload(event, (self.payloads[event.payload],) if event.payload in self.payloads else None)

    def heads(
        self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None, removed: bool = False
    ) -> tuple[Head, ...]:
        with self.alone():
            names = sorted({*self.streams, *(self.removed if removed else ())}, reverse=newest_first)
            names = [name for name in names if name.startswith(prefix)][:limit]
            return tuple(self.head_of(name) or self.removed[name] for name in names)

    # The index is a function of the events, which are all in memory: nothing is stored that could differ from them.

    def entries(self, kind: str, *, stream: str | None = None, status: str | None = None) -> tuple[IndexEntry, ...]:
        found = [entry for entry in self.index() if entry.kind == kind]
        return tuple(entry for entry in found if stream in {None, entry.stream} and status in {None, entry.status})

    def index(self) -> list[IndexEntry]:
        with self.alone():
            entries = index_of(event for events in self.streams.values() for event in events).values()
        return sorted(entries, key=lambda entry: (entry.stream, entry.version))

    def index_kinds(self) -> tuple[str, ...]:
        return tuple(sorted({entry.kind for entry in self.index()}))

    def rebuild_index(self) -> None:
        """Do nothing, because the index is built whenever it is needed."""

    def latest(self, kind: str, stream: str) -> Event | None:
        found = self.entries(kind, stream=stream)
        return next(self.read(stream, found[-1].version - 1, found[-1].version)) if found else None

    def newest(self, kind: str, prefix: str = "") -> tuple[tuple[str, Event | None], ...]:
        found = {entry.stream for entry in self.entries(kind) if not entry.key and entry.stream.startswith(prefix)}
        return tuple((stream, self.latest(kind, stream)) for stream in sorted(found))

    # ---- leases --------------------------------------------------------------------------------------------------

    def left(self, held: LastLease) -> float:
        """Return the number of seconds for which a lease is still valid. A lease from an earlier boot has expired."""
        return held.ends - self.clock.ticks() if held.boot == self.clock.boot() else 0.0

    def hold(self, stream: str, token: int, holder: str, seconds: float) -> Lease:
        self.write({"lease": [stream, token, holder, self.clock.ticks() + seconds, self.clock.boot()]})
        return Lease(stream, token, holder, seconds)

    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        with self.alone():
            present = self.held.get(stream, LastLease())
            left = self.left(present)
            if left > 0 and present.token != over:
                raise LeaseHeld(
                    f"{present.holder} has a lease on {stream} for at least another {left:.0f} s",
                    details={"stream": stream, "holder": present.holder, "token": present.token, "seconds_left": left},
                )
            return self.hold(stream, max(present.token, fence_of(self.streams.get(stream, []))) + 1, holder, seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        with self.alone():
            present = self.held.get(lease.stream, LastLease())
            if present.token != lease.token or self.left(present) <= 0:
                raise LeaseLost(f"lease {lease.token} of {lease.stream} is no longer valid")
            return self.hold(lease.stream, lease.token, present.holder, seconds)

    def release(self, lease: Lease) -> None:
        with self.alone():
            present = self.held.get(lease.stream, LastLease())
            if present.token == lease.token:
                self.hold(lease.stream, lease.token, present.holder, 0)

    def lease(self, stream: str) -> Lease | None:
        return next((lease for lease in self.leases() if lease.stream == stream), None)

    def leases(self) -> tuple[Lease, ...]:
        with self.alone():
            found = [Lease(stream, held.token, held.holder, self.left(held)) for stream, held in self.held.items()]
        return tuple(sorted(lease for lease in found if lease.seconds_left > 0))

    # ---- erasing, moving, removing -------------------------------------------------------------------------------

    def erase(self, digest: str) -> bool:
        with self.alone():
            if self.payloads.get(digest) is None:
                return False
            self.payloads[digest] = None
            self.rewrite()
            return True

    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        taken = list(events)
        stream = taken[0].stream
        checked = tuple(verified(stream, taken))
        stored: dict[str, bytes | None] = {event.payload: None for event in checked if event.payload is not None}
        with self.alone():
            if stream in self.streams:
                raise VersionConflict(f"{stream} already exists; a stream must be imported as a whole")
            if stream in self.removed:
                raise name_was_used(stream)
            self.write(record_of(checked, stored | {address_of(payload): payload for payload in payloads}))

    def remove(self, stream: str, head: str) -> None:
        with self.alone():
            present = self.head_of(stream)
            if present is None or present.hash != head:
                raise VersionConflict(f"{stream} is not at the expected head")
            self.removed[stream] = present
            del self.streams[stream]
            self.held.pop(stream, None)
            self.rewrite()


def open_url(url: str, *, patience: float) -> FolderStore:  # noqa: ARG001  # locks are held for moments only
    """Open folder:///PATH. A package registers this function for its scheme, under `workpacket.stores`."""
    return FolderStore(url.partition("://")[2])


def fence_of(events: Iterable[Event]) -> int:
    return max((event.fence for event in events), default=0)


def record_of(events: Iterable[Event], payloads: Mapping[str, bytes | None]) -> Record:
    texts = {
        digest: None if payload is None else base64.b64encode(payload).decode() for digest, payload in payloads.items()
    }
    return {"events": [list(event) for event in events], "payloads": texts}


def line_of(record: Record) -> bytes:
    text = json.dumps(record, separators=(",", ":")).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_line(line: bytes) -> Record | None:
    """Return the record in a line; None if the line is damaged."""
    crc, _, text = line.partition(b" ")
    if crc != b"%08x" % zlib.crc32(text):
        return None
    record: Record = json.loads(text)
    return record
