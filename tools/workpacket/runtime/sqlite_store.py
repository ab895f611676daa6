"""The store in one SQLite file: for all processes of one machine, with no server.

One append is one transaction and one fdatasync. Writers queue at a side file (`sqlite_files`), then BEGIN IMMEDIATE;
`synchronous=FULL` is read back, not hoped for. After an error of the storage itself the handle is poisoned: what a
second fsync would say of the first is a lie. Nothing is believed because the database returned it: events and payloads
must have their hashes, mutable rows their CRC, a stream must reach its head.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from workpacket.runtime.admission import (
    events_to_store,
    require_fence,
    require_next_in_sequence,
    require_same_as_stored,
    require_version,
)
from workpacket.runtime.contract import Append, Appended, Head, Lease
from workpacket.runtime.errors import (
    LeaseHeld,
    LeaseLost,
    LogDamaged,
    NewerSchema,
    PayloadErased,
    StorageFailed,
    StoreCorrupt,
    StoreRolledBack,
    StoreUnavailable,
    VersionConflict,
)
from workpacket.runtime.events import GENESIS, Chain, Event, require_intact, require_payload, verified
from workpacket.runtime.index import IndexEntry, entry_of
from workpacket.runtime.sqlite_files import SideFile, prepare_folder
from workpacket.runtime.sqlite_rows import (
    STREAM_COLUMNS,
    LeaseRow,
    StreamRow,
    add_stream,
    checked_entry,
    checked_stream,
    put_entry,
    put_lease,
    put_stream,
    read_lease,
    read_stream,
    require_whole_directory,
)
from workpacket.runtime.sqlite_schema import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    application_id,
    migrate,
    schema_version,
)
from workpacket.runtime.ticks import Clock, SystemClock, boot_id
from workpacket.runtime.values import address_of

_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "store_busy",
    sqlite3.SQLITE_LOCKED: "store_busy",
    sqlite3.SQLITE_FULL: "disk_full",
    sqlite3.SQLITE_READONLY: "store_read_only",
    sqlite3.SQLITE_CANTOPEN: "store_read_only",
    sqlite3.SQLITE_PERM: "store_read_only",
}
WAL_PAGES = 256  # the write-ahead log is reused after 1 MiB: overwriting in place is cheaper to sync than growing
FETCH = 1000
_COLUMNS = (
    "type, type_version, occurred_at, recorded_at, actor, writer, writer_seq, key, fence, data, payload, previous, hash"
)
_PRAGMAS = (
    ("synchronous", "FULL", 2),
    ("fullfsync", "ON", 1),  # matters on macOS, where fsync alone does not reach the disk
    ("checkpoint_fullfsync", "ON", 1),
    ("trusted_schema", "OFF", 0),
    ("cell_size_check", "ON", 1),
    ("temp_store", "MEMORY", 2),
    ("mmap_size", "0", 0),
    ("wal_autocheckpoint", str(WAL_PAGES), WAL_PAGES),
    ("journal_size_limit", str(4 * WAL_PAGES * 4096), 4 * WAL_PAGES * 4096),
)


class SQLiteStore:
    def __init__(
        self, path: Path, *, clock: Clock | None = None, timeout: float = 30.0, accept_rollback: bool = False
    ) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        self._timeout = timeout
        self._boot = boot_id()
        self._process = os.getpid()
        self._thread_lock = threading.RLock()
        self._poison = ""
        self._newer = 0
        self._directory_checked = False
        prepare_folder(path.parent)
        self._side = SideFile(path.with_name(path.name + ".lock"))
        with self._translated():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=timeout)
            with self._side.locked(timeout):
                self._configure()
                self._check_anchor(accept_rollback)

    # ---- opening -------------------------------------------------------------------------------------------------

    def _configure(self) -> None:
        mark = application_id(self._db)
        if mark not in {0, APPLICATION_ID}:
            raise StoreCorrupt(f"{self.path} is a database of another program (application id {mark:#x})")
        (mode,) = self._db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreUnavailable(f"{self.path}: no write-ahead log here (mode {mode!r})", code="storage_unsuitable")
        for name, value, meant in _PRAGMAS:
            self._db.execute(f"PRAGMA {name} = {value}")
            row = self._db.execute(f"PRAGMA {name}").fetchone()
            if row is not None and row[0] != meant:  # no row: this build of SQLite does not have the setting
                raise StoreUnavailable(f"{self.path}: {name} stays {row[0]}", code="storage_unsuitable")
        present = schema_version(self._db)
        if present > SCHEMA_VERSION:
            self._newer = present
        elif present < SCHEMA_VERSION:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                migrate(self._db, self._clock.now())
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def _check_anchor(self, accept_rollback: bool) -> None:
        anchor = self._side.anchor()
        position = self._last_position()
        if anchor is not None and position < anchor and not accept_rollback:
            raise StoreRolledBack(
                f"{self.path} ends at event {position}, but event {anchor} was acknowledged",
                details={"position": position, "anchor": anchor},
            )
        if anchor != position and not self._newer:
            self._side.set_anchor(position)

    def _last_position(self) -> int:
        (position,) = self._db.execute("SELECT max(position) FROM events").fetchone()
        return int(position or 0)

    # ---- transactions --------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._thread_lock:
            self._require_usable()
            with self._translated():
                yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._reading(), self._side.locked(self._timeout):
            if self._newer:
                raise NewerSchema(f"{self.path} has schema {self._newer}; this version knows {SCHEMA_VERSION}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _require_usable(self) -> None:
        if self._poison:
            raise StorageFailed(f"{self.path} was closed after an error of the storage: {self._poison}")
        if os.getpid() != self._process:
            raise StoreUnavailable(
                f"{self.path} was opened by process {self._process}; a forked process opens its own handle",
                code="store_busy",
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Each failure of SQLite under the name of what the user can do about it."""
        try:
            yield
        except sqlite3.Error as error:
            primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
            place = f"{self.path}: {error}"
            if primary == sqlite3.SQLITE_IOERR:
                self._poison = str(error)
                raise StorageFailed(place) from error
            if primary in _UNAVAILABLE:
                raise StoreUnavailable(place, code=_UNAVAILABLE[primary]) from error
            raise StoreCorrupt(place) from error

    # ---- appending -----------------------------------------------------------------------------------------------

    def append(self, request: Append) -> Appended:
        with self._writing():
            row = self._stream_row(request.stream)
            if row is not None and row.removed:
                raise VersionConflict(f"{request.stream} was removed by retention; its name is not used again")
            stored = self._stored_before(request, row)
            if stored:
                return Appended(stored, duplicate=True)
            if request.fence is not None:
                lease = read_lease(self._db, request.stream)
                require_fence(request, lease.token if lease else 0, self._left(lease), row.fence if row else 0)
            require_version(request, row.version if row else 0)
            new = events_to_store(request, row.version if row else 0, row.hash if row else GENESIS)
            payloads = [event.payload for event in request.events if event.payload is not None]
            position = self._keep(row or add_stream(self._db, request.stream, GENESIS), new, payloads)
        self._side.set_anchor(position)
        return Appended(new, duplicate=False)

    def _stored_before(self, request: Append, row: StreamRow | None) -> tuple[Event, ...]:
        if request.key is not None and row is not None:
            found = self._db.execute(
                "SELECT version FROM events WHERE stream = ? AND key = ?", (row.id, request.key)
            ).fetchone()
            if found is not None:
                stored = self._slice(request.stream, row.id, found[0], len(request.events))
                require_same_as_stored(request, stored, by_key=True)
                return stored
        (last,) = self._db.execute("SELECT max(writer_seq) FROM events WHERE writer = ?", (request.writer,)).fetchone()
        if request.writer_seq > (last or 0):
            require_next_in_sequence(request, last or 0)
            return ()
        found = self._db.execute(
            "SELECT stream, version FROM events WHERE writer = ? AND writer_seq = ?",
            (request.writer, request.writer_seq),
        ).fetchone()
        same_stream = found is not None and row is not None and found[0] == row.id
        stored = self._slice(request.stream, found[0], found[1], len(request.events)) if same_stream else ()
        require_same_as_stored(request, stored, by_key=False)
        return stored

    def _slice(self, stream: str, stream_id: int, version: int, count: int) -> tuple[Event, ...]:
        rows = self._db.execute(
            f"SELECT version, {_COLUMNS} FROM events WHERE stream = ? AND version >= ? ORDER BY version LIMIT ?",
            (stream_id, version, count),
        )
        return tuple(require_intact(Event(stream, *columns)) for columns in rows)

    def _stream_row(self, name: str) -> StreamRow | None:
        row = read_stream(self._db, name)
        if row is None and not self._directory_checked:
            require_whole_directory(self._db)
            self._directory_checked = True
        return row

    def _keep(self, row: StreamRow, events: Sequence[Event], payloads: Iterable[bytes]) -> int:
        """Write events, payloads, index and head; give the position of the last event."""
        position = 0
        for payload in payloads:
            self._db.execute(
                "INSERT INTO payloads(digest, bytes) VALUES(?, ?) "
                "ON CONFLICT(digest) DO UPDATE SET bytes = excluded.bytes WHERE bytes IS NULL",
                (bytes.fromhex(address_of(payload)), payload),
            )
        for event in events:
            cursor = self._db.execute(
                f"INSERT INTO events(stream, version, {_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (row.id, *event[1:]),
            )
            position = cursor.lastrowid or 0
            self._index(row.id, entry_of(event))
        last = events[-1]
        put_stream(self._db, row._replace(version=last.version, hash=last.hash, fence=max(row.fence, last.fence)))
        return position

    def _index(self, stream_id: int, entry: IndexEntry | None) -> None:
        if entry is not None:
            put_entry(self._db, stream_id, entry)

    # ---- reading -------------------------------------------------------------------------------------------------

    def head(self, stream: str) -> Head | None:
        with self._reading():
            row = self._stream_row(stream)
        return None if row is None or row.removed else Head(stream, row.version, row.hash, row.fence)

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        with self._reading():
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
            raise LogDamaged(stream, last, "the stream does not end in its head")

    def _fetch(self, row: StreamRow, after: int, until: int) -> list[Event]:
        with self._reading():
            rows = self._db.execute(
                f"SELECT version, {_COLUMNS} FROM events WHERE stream = ? AND version > ? AND version <= ? "
                "ORDER BY version",
                (row.id, after, until),
            ).fetchall()
        return [Event(row.name, *columns) for columns in rows]

    def payload(self, event: Event) -> bytes | None:
        if event.payload is None:
            return None
        with self._reading():
            found = self._db.execute(
                "SELECT bytes FROM payloads WHERE digest = ?", (bytes.fromhex(event.payload),)
            ).fetchone()
        if found is None:
            raise LogDamaged(event.stream, event.version, "its payload is missing")
        if found[0] is None:
            raise PayloadErased(f"{event.stream}, version {event.version}: the payload was erased")
        return require_payload(event, found[0])

    def erase(self, digest: str) -> bool:
        with self._writing():
            cursor = self._db.execute(
                "UPDATE payloads SET bytes = NULL WHERE digest = ? AND bytes IS NOT NULL", (bytes.fromhex(digest),)
            )
            return cursor.rowcount == 1

    def heads(self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None) -> tuple[Head, ...]:
        order = "DESC" if newest_first else "ASC"
        with self._reading():
            rows = self._db.execute(
                f"SELECT {STREAM_COLUMNS} FROM streams "
                f"WHERE name >= ? AND name < ? AND removed = 0 ORDER BY name {order} LIMIT ?",
                (prefix, prefix + "\U0010ffff", -1 if limit is None else limit),
            ).fetchall()
        found = [checked_stream(row) for row in rows]
        return tuple(Head(row.name, row.version, row.hash, row.fence) for row in found)

    # ---- index ---------------------------------------------------------------------------------------------------

    def entries(self, kind: str, *, stream: str | None = None, status: str | None = None) -> tuple[IndexEntry, ...]:
        query = (
            "SELECT s.name, e.kind, e.stream, e.key, e.version, e.status, e.crc FROM entries e "
            "JOIN streams s ON s.id = e.stream WHERE e.kind = :kind AND s.removed = 0"
        )
        if stream is not None:
            query += " AND s.name = :stream"
        if status is not None:
            query += " AND e.status = :status"
        with self._reading():
            rows = self._db.execute(
                query + " ORDER BY s.name, e.version", {"kind": kind, "stream": stream, "status": status}
            ).fetchall()
        return tuple(checked_entry(name, columns) for name, *columns in rows)

    def latest(self, kind: str, stream: str) -> Event | None:
        with self._reading():
            row = self._stream_row(stream)
            if row is None or row.removed:
                return None
            found = self._db.execute(
                "SELECT kind, stream, key, version, status, crc FROM entries WHERE kind = ? AND stream = ? "
                "ORDER BY version DESC LIMIT 1",
                (kind, row.id),
            ).fetchone()
            if found is None:
                return None
            entry = checked_entry(stream, found)
            events = self._slice(stream, row.id, entry.version, 1)
        if not events or entry_of(events[0]) != entry or entry.version > row.version:
            raise LogDamaged(stream, entry.version, f"the index of {kind} points at something else")
        return events[0]

    def rebuild_index(self) -> None:
        with self._writing():
            self._db.execute("DELETE FROM entries")
            for columns in self._db.execute(f"SELECT {STREAM_COLUMNS} FROM streams").fetchall():
                row = checked_stream(columns)
                if not row.removed:
                    for event in self.read(row.name):
                        self._index(row.id, entry_of(event))

    # ---- leases --------------------------------------------------------------------------------------------------

    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        with self._writing():
            present = read_lease(self._db, stream)
            left = self._left(present)
            if present is not None and left > 0 and present.token != over:
                raise LeaseHeld(
                    f"{present.holder} works on {stream} for at least another {left:.0f} s",
                    details={"stream": stream, "holder": present.holder, "token": present.token, "seconds_left": left},
                )
            row = self._stream_row(stream)
            token = max(present.token if present else 0, row.fence if row else 0) + 1
            self._put_lease(stream, token, holder, seconds)
        return Lease(stream, token, holder, seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        with self._writing():
            present = read_lease(self._db, lease.stream)
            if present is None or present.token != lease.token or self._left(present) <= 0:
                raise LeaseLost(f"the lease {lease.token} of {lease.stream} is no longer in force")
            self._put_lease(lease.stream, lease.token, lease.holder, seconds)
        return lease._replace(seconds_left=seconds)

    def release(self, lease: Lease) -> None:
        with self._writing():
            present = read_lease(self._db, lease.stream)
            if present is not None and present.token == lease.token:
                self._put_lease(lease.stream, lease.token, lease.holder, 0)

    def lease(self, stream: str) -> Lease | None:
        with self._reading():
            present = read_lease(self._db, stream)
        left = self._left(present)
        return Lease(stream, present.token, present.holder, left) if present is not None and left > 0 else None

    def _left(self, lease: LeaseRow | None) -> float:
        """Seconds for which the lease is still in force. One of another boot has ended: its holder died with it."""
        if lease is None or lease.boot != self._boot:
            return 0.0
        return lease.ends / 1000 - self._clock.ticks()

    def _put_lease(self, stream: str, token: int, holder: str, seconds: float) -> None:
        ends = int((self._clock.ticks() + seconds) * 1000)
        put_lease(self._db, LeaseRow(stream, token, holder, ends, self._boot))

    # ---- whole streams -------------------------------------------------------------------------------------------

    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        taken = list(events)
        stream = taken[0].stream
        checked = list(verified(stream, taken))
        with self._writing():
            if self._stream_row(stream) is not None:
                raise VersionConflict(f"{stream} exists already; a stream is taken over as a whole or not at all")
            position = self._keep(add_stream(self._db, stream, GENESIS), checked, payloads)
            self._db.executemany(
                "INSERT INTO payloads(digest, bytes) VALUES(?, NULL) ON CONFLICT(digest) DO NOTHING",
                [(bytes.fromhex(event.payload),) for event in checked if event.payload is not None],
            )
        self._side.set_anchor(position)

    def remove(self, stream: str, head: str) -> None:
        with self._writing():
            row = self._stream_row(stream)
            if row is None or row.removed or row.hash != head:
                raise VersionConflict(f"{stream} is not at the head that was to be removed")
            # The last event stays as the tombstone: it proves what stood here, and the anchor never goes back.
            self._db.execute("INSERT INTO removing VALUES(?)", (row.id,))
            self._db.execute("DELETE FROM events WHERE stream = ? AND version < ?", (row.id, row.version))
            self._db.execute("DELETE FROM removing")
            self._db.execute("DELETE FROM entries WHERE stream = ?", (row.id,))
            self._db.execute("DELETE FROM leases WHERE name = ?", (stream,))
            put_stream(self._db, row._replace(removed=1))
            self._db.execute(
                "DELETE FROM payloads WHERE lower(hex(digest)) NOT IN (SELECT e.payload FROM events e "
                "JOIN streams s ON s.id = e.stream WHERE e.payload IS NOT NULL AND s.removed = 0)"
            )

    def close(self) -> None:
        with self._thread_lock:
            if os.getpid() == self._process:
                self._db.close()
            self._side.close()
