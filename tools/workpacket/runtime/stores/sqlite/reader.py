"""The reading half of the SQLite store: streams, payloads, index and leases, all verified."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from workpacket.runtime.errors import LogDamaged
from workpacket.runtime.holders import Clock, SystemClock
from workpacket.runtime.records.events import (
    Chain,
    Event,
    IndexEntry,
    entry_of,
    index_of,
    require_intact,
    require_payload,
    types_of,
)
from workpacket.runtime.stores.contract import Head, Lease
from workpacket.runtime.stores.sqlite.access import Access
from workpacket.runtime.stores.sqlite.rows import (
    LARGEST_VERSION,
    LEASE_COLUMNS,
    STREAM_COLUMNS,
    STREAM_SHIFT,
    LeaseRow,
    StreamRow,
    checked_entry,
    checked_lease,
    checked_stream,
    place_of,
    read_derived,
    read_lease,
    read_stream,
    require_whole_directory,
)

# Read in parts, so that a long stream is never in memory as a whole.
FETCH = 1000
# SQLite limits the number of parameters of a statement: older builds to 999.
MOST_VALUES = 500
EVENT_COLUMNS = (
    "type, type_version, occurred_at, recorded_at, actor, writer, writer_seq, key, fence, data, payload, previous, hash"
)
_OF_STREAM = ", ".join(f"s.{column.strip()}" for column in STREAM_COLUMNS.split(","))
_EVENT = f"position & {LARGEST_VERSION}, {EVENT_COLUMNS}"
_SLICE = f"SELECT {_EVENT} FROM events WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?"
EFFECTS = "effects"
EFFECT_TYPES = types_of(EFFECTS)  # the kinds whose entries are read from the events themselves; all others are stored
_EFFECTS = (
    f"SELECT {_EVENT} FROM events WHERE position BETWEEN ? AND ? "
    f"AND type IN ({', '.join('?' * len(EFFECT_TYPES))}) ORDER BY position"
)
_LATEST = (
    "SELECT kind, stream, key, version, status, crc FROM entries WHERE kind = ? AND stream = ? "
    "AND kind <> 'effects' ORDER BY version DESC LIMIT 1"  # the index omits effects, so they are noted here
)

_ENDS = "SELECT name, hash FROM streams WHERE name >= ? AND name < ? AND removed = 0 ORDER BY name"
_LEASES = f"SELECT {LEASE_COLUMNS} FROM leases WHERE boot = ? AND ends > ? ORDER BY name"
_NEWEST = (
    f"SELECT {_OF_STREAM}, e.kind, e.stream, e.key, e.version, e.status, e.crc, e.version, "
    + ", ".join(f"v.{column.strip()}" for column in EVENT_COLUMNS.split(","))
    + " FROM entries e JOIN streams s ON s.id = e.stream "
    f"LEFT JOIN events v ON v.position = e.stream << {STREAM_SHIFT} | e.version "
    "WHERE e.kind = ? AND e.key = '' AND s.name >= ? AND s.name < ? AND s.removed = 0 "
    "ORDER BY s.name"
)


class ReadableSQLite:
    def __init__(
        self, path: Path, *, clock: Clock | None = None, timeout: float = 30.0, accept_rollback: bool = False
    ) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        self._boot = self._clock.boot()
        self._directory_checked = False
        self.access = Access(path, timeout, self._clock.now(), accept_rollback=accept_rollback)
        self._db = self.access.db

    @property
    def identity(self) -> str:
        """Return the time at which the file was created; moving the file does not change this time."""
        with self.access.reading:
            row = self._db.execute("SELECT applied_at FROM schema_migrations ORDER BY version LIMIT 1").fetchone()
        return f"{row[0]:x}" if row is not None else ""

    # ---- streams --------------------------------------------------------------------------------------------------

    def _stream_row(self, name: str) -> StreamRow | None:
        row = read_stream(self._db, name)
        if row is None and not self._directory_checked:
            require_whole_directory(self._db)
            self._directory_checked = True
        return row

    def _slice(self, stream: str, stream_id: int, version: int, count: int) -> tuple[Event, ...]:
        places = (place_of(stream_id, version), place_of(stream_id, LARGEST_VERSION))
        rows = self._db.execute(_SLICE, (*places, count))
        return tuple(require_intact(Event(stream, *columns)) for columns in rows)

    def head(self, stream: str) -> Head | None:
        with self.access.reading:
            row = self._stream_row(stream)
        return None if row is None or row.removed else Head(stream, row.version, row.hash, row.fence)

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        with self.access.reading:
            row = self._stream_row(stream)
        if row is None or row.removed:
            return
        chain = Chain(stream)
        if after > 0:
            for event in self._fetch(row, after - 1, min(after, row.version)):
                chain = Chain(stream, after, require_intact(event).hash)
        last = row.version if until is None else min(until, row.version)
        while chain.version < last:
            fetched = self._fetch(row, chain.version, min(last, chain.version + FETCH))
            if not fetched:
                raise LogDamaged(stream, chain.version + 1, "the record is missing")
            for event in fetched:
                yield chain.check(event)
        if last == row.version and chain.hash != row.hash:
            raise LogDamaged(stream, last, "the stream does not end at its head")

    def _fetch(self, row: StreamRow, after: int, until: int) -> list[Event]:
        with self.access.reading:
            places = (place_of(row.id, after + 1), place_of(row.id, until))
            rows = self._db.execute(_SLICE, (*places, -1)).fetchall()
        return [Event(row.name, *columns) for columns in rows]

    def payload(self, event: Event) -> bytes | None:
        if event.payload is None:
            return None
        with self.access.reading:
            found = self._db.execute(
                "SELECT bytes FROM payloads WHERE digest = ?", (bytes.fromhex(event.payload),)
            ).fetchone()
        return require_payload(event, found)

    def heads(
        self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None, removed: bool = False
    ) -> tuple[Head, ...]:
        order = "DESC" if newest_first else "ASC"
        with self.access.reading:
            rows = self._db.execute(
                f"SELECT {STREAM_COLUMNS} FROM streams "
                f"WHERE name >= ? AND name < ? AND removed <= ? ORDER BY name {order} LIMIT ?",
                (prefix, prefix + "\U0010ffff", removed, -1 if limit is None else limit),
            ).fetchall()
        found = [checked_stream(row) for row in rows]
        return tuple(Head(row.name, row.version, row.hash, row.fence) for row in found)

    # ---- what was derived ----------------------------------------------------------------------------------------

    def events_at(self, stream: str, versions: Sequence[int]) -> list[Event]:
        with self.access.reading as db:
            row = self._stream_row(stream)
            if row is None or row.removed:
                return []
            places = [place_of(row.id, version) for version in versions]
            query = f"SELECT {_EVENT} FROM events WHERE position IN (%s) ORDER BY position"
            rows = _selected(db, query, places)
        return [require_intact(Event(stream, *columns)) for columns in rows]

    def stored_payloads(self, events: Iterable[Event]) -> dict[str, bytes]:
        digests = [bytes.fromhex(event.payload) for event in events if event.payload is not None]
        with self.access.reading as db:
            rows = _selected(db, "SELECT digest, bytes FROM payloads WHERE digest IN (%s)", digests)
        return {digest.hex(): stored for digest, stored in rows if isinstance(stored, bytes)}

    def ends(self, prefix: str = "") -> dict[str, str]:
        with self.access.reading:
            return dict(self._db.execute(_ENDS, (prefix, prefix + "\U0010ffff")).fetchall())

    def derived(self, name: str) -> bytes | None:
        with self.access.reading as db:
            return read_derived(db, name)

    # ---- index ---------------------------------------------------------------------------------------------------

    def entries(self, kind: str, *, stream: str | None = None, status: str | None = None) -> tuple[IndexEntry, ...]:
        if kind == EFFECTS:
            found = (self._effects(name) for name in self._names(stream))
            return tuple(entry for entries in found for entry in entries if status in {None, entry.status})
        query = (
            f"SELECT {_OF_STREAM}, e.kind, e.stream, e.key, e.version, e.status, e.crc FROM entries e "
            "JOIN streams s ON s.id = e.stream WHERE e.kind = :kind AND s.removed = 0"
        )
        if stream is not None:
            query += " AND s.name = :stream"
        if status is not None:
            query += " AND e.status = :status"
        with self.access.reading:
            rows = self._db.execute(
                query + " ORDER BY s.name, e.version", {"kind": kind, "stream": stream, "status": status}
            ).fetchall()
        width = len(StreamRow._fields) + 1
        return tuple(checked_entry(checked_stream(row[:width]).name, row[width:]) for row in rows)

    def _names(self, stream: str | None) -> tuple[str, ...]:
        return tuple(head.stream for head in self.heads()) if stream is None else (stream,)

    def _effects(self, stream: str) -> list[IndexEntry]:
        """Return the index entries of the effects in one stream, ordered by version."""
        return sorted(index_of(self._effect_events(stream)).values(), key=lambda entry: entry.version)

    def _effect_events(self, stream: str) -> list[Event]:
        with self.access.reading:
            row = self._stream_row(stream)
            if row is None or row.removed:
                return []
            places = (place_of(row.id, 1), place_of(row.id, row.version))
            rows = self._db.execute(_EFFECTS, (*places, *EFFECT_TYPES)).fetchall()
        return [require_intact(Event(stream, *columns)) for columns in rows]

    def latest(self, kind: str, stream: str) -> Event | None:
        if kind == EFFECTS:
            return next(reversed(self._effect_events(stream)), None)
        with self.access.reading:
            row = self._stream_row(stream)
            if row is None or row.removed:
                return None
            found = self._db.execute(_LATEST, (kind, row.id)).fetchone()
            if found is None:
                return None
            entry = checked_entry(stream, found)
            events = self._slice(stream, row.id, entry.version, 1)
        if not events or entry_of(events[0]) != entry or entry.version > row.version:
            raise LogDamaged(stream, entry.version, f"the index for {kind} points to a different event")
        return events[0]

    def newest(self, kind: str, prefix: str = "") -> tuple[tuple[str, Event | None], ...]:
        width = len(StreamRow._fields) + 1
        with self.access.reading:
            rows = self._db.execute(_NEWEST, (kind, prefix, prefix + "\U0010ffff")).fetchall()
        return tuple(_newest_of(row[:width], row[width : width + 6], row[width + 6 :]) for row in rows)

    def index_kinds(self) -> tuple[str, ...]:
        with self.access.reading:
            stored = [str(kind) for (kind,) in self._db.execute("SELECT DISTINCT kind FROM entries ORDER BY kind")]
        return (EFFECTS, *stored)

    # ---- leases ---------------------------------------------------------------------------------------------------

    def lease(self, stream: str) -> Lease | None:
        with self.access.reading:
            present = read_lease(self._db, stream)
        left = self._left(present)
        return Lease(stream, present.token, present.holder, left) if present is not None and left > 0 else None

    def leases(self) -> tuple[Lease, ...]:
        with self.access.reading:
            rows = self._db.execute(_LEASES, (self._boot, int(self._clock.ticks() * 1000))).fetchall()
        found = [(lease, self._left(lease)) for lease in map(checked_lease, rows)]
        return tuple(Lease(lease.name, lease.token, lease.holder, left) for lease, left in found if left > 0)

    def _left(self, lease: LeaseRow | None) -> float:
        """Return the number of seconds for which the lease is still valid. A lease from another boot has expired,
        because its holder died with that boot.
        """
        if lease is None or lease.boot != self._boot:
            return 0.0
        return lease.ends / 1000 - self._clock.ticks()


def _selected(db: sqlite3.Connection, query: str, values: Sequence[int | bytes]) -> list[Any]:
    """Return the rows for these values, querying as many of them at once as every version of SQLite allows."""
    found: list[Any] = []
    for first in range(0, len(values), MOST_VALUES):
        some = values[first : first + MOST_VALUES]
        found += db.execute(query % ",".join("?" * len(some)), some).fetchall()
    return found


def _newest_of(
    stream: Sequence[str | int], entry: Sequence[str | int], event: Sequence[Any]
) -> tuple[str, Event | None]:
    """Return the event that an index entry points to; None if the event is missing or differs from what was indexed."""
    name = checked_stream(stream).name
    pointed = checked_entry(name, entry)
    try:
        found = require_intact(Event(name, *event))
    except (LogDamaged, TypeError):
        return name, None
    return name, found if entry_of(found) == pointed else None
