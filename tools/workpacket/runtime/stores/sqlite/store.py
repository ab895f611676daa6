"""The store in one SQLite file: for all processes on one machine, without a server.

One append is one transaction and one fdatasync. Writers queue at a side file (`files`), then BEGIN IMMEDIATE;
`synchronous=FULL` is read back, not assumed. After a storage error the handle is poisoned, because a second fsync may
wrongly report success. Nothing that the database returns is trusted: events and payloads must match their hashes,
mutable rows their CRC, and a stream must reach its head.

If an older copy of the store is accepted, each run records what it lost, so that no one assumes that the lost part
never happened. The side file records how far each stream had come (`SideFile.reached`). A run that still exists but had
come further gets the `rolled_back {had, has}` event. For a run that was lost entirely, only the hash of its name is
known. The `lost_streams` table keeps this hash, and a run that begins under that name records the loss (`lost`). All of
this is one transaction. Streams that are not runs have no effects and are left unchanged.

The health check finds everything that can be wrong with the store; a backup is verified, and space can be reclaimed.

Between two records of one run there is almost never another writer. Inside the write transaction, SQLite reports at no
cost whether another connection has committed since (`data_version`), and this handle knows whether one of its own
transactions was undone. If neither is the case, the row of the stream and its lease are as this handle last wrote them,
and SQLite would read the same data from its cached pages.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from workpacket.problem import Problem
from workpacket.runtime.errors import (
    LeaseLost,
    RuntimeFault,
    StoreCorrupt,
    VersionConflict,
)
from workpacket.runtime.holders import Clock, random_id
from workpacket.runtime.records.events import GENESIS, Event, NewEvent, entry_of, verified
from workpacket.runtime.records.jcs import address_of, jcs_text
from workpacket.runtime.stores.contract import (
    LINES,
    Append,
    Appended,
    Head,
    Lease,
    contents_of,
    events_to_store,
    lease_held,
    name_was_used,
    require_fence,
    require_next_in_sequence,
    require_same_as_stored,
    require_version,
)
from workpacket.runtime.stores.sqlite.access import Access, empty_log
from workpacket.runtime.stores.sqlite.files import Reached, file_system_of, name_digest
from workpacket.runtime.stores.sqlite.reader import EFFECT_TYPES, EVENT_COLUMNS, ReadableSQLite
from workpacket.runtime.stores.sqlite.rows import (
    DERIVED,
    LARGEST_VERSION,
    LEASE_COLUMNS,
    STREAM_COLUMNS,
    STREAM_SHIFT,
    LeaseRow,
    StreamRow,
    add_stream,
    checked_lease,
    checked_stream,
    forget_derived,
    place_of,
    put_entry,
    put_lease,
    put_stream,
    read_lease,
    row_crc,
)

ACTOR = "workpacket"
# How far the tokens of leases leap where the newest one is unknown.
LEAP = 1 << 20
_LOST = "CREATE TABLE IF NOT EXISTS lost_streams(name BLOB PRIMARY KEY, had INTEGER NOT NULL, crc INTEGER NOT NULL)"


class Loss(NamedTuple):
    """The part of a run that was lost. `had` is None if it is unknown how far the run had come, because the side file
    was written by an older version.
    """

    row: StreamRow
    had: int | None


def end_leases(db: sqlite3.Connection) -> None:
    """End all leases of an older copy. Their holders wrote to the newer file, and had tokens that this one lacks: none
    is handed out twice.
    """
    for row in [checked_lease(columns) for columns in db.execute(f"SELECT {LEASE_COLUMNS} FROM leases").fetchall()]:
        put_lease(db, LeaseRow(row.name, row.token + LEAP, "", 0, ""))


def accept_loss(store: SQLiteStore, now: int) -> tuple[Loss, ...]:
    """Record the losses, and make the current end of the store the acknowledged end."""
    side = store.access.side
    reached = side.reached()
    anchor = side.anchor() or 0
    with store.access.writing as db:
        rows = [checked_stream(columns) for columns in db.execute(f"SELECT {STREAM_COLUMNS} FROM streams").fetchall()]
        losses = tuple(_losses(db, rows, reached, anchor))
        for loss in losses:
            data = jcs_text({"had": loss.had, "has": loss.row.version})
            request = Append(loss.row.name, (NewEvent("rolled_back", data),), random_id(), 1, ACTOR, now, now)
            store.keep(loss.row, events_to_store(request, loss.row.version, loss.row.hash), ())
        end_leases(db)
        _keep_lost_names(db, rows, reached)
        (last,) = db.execute("SELECT max(position) FROM events").fetchone()
        ends = [checked_stream(columns) for columns in db.execute(f"SELECT {STREAM_COLUMNS} FROM streams").fetchall()]
    side.forget_streams()
    side.set_anchor(0)  # the event that it named is recorded now, and must not count as how far a stream had come
    for row in ends:
        side.acknowledge(row.id, row.version, row.name, first=True)
    side.set_anchor(last or 0)
    return losses


def _losses(db: sqlite3.Connection, rows: list[StreamRow], reached: dict[int, Reached], anchor: int) -> Iterator[Loss]:
    for row in rows:
        places = (place_of(row.id, 1), place_of(row.id, LARGEST_VERSION))
        types = db.execute(
            "SELECT type, position FROM events WHERE position BETWEEN ? AND ? ORDER BY position", places
        ).fetchall()
        # Where they disagree, the stream is damaged, which is not a rollback.
        whole = bool(types) and types[-1][1] & LARGEST_VERSION == row.version
        if row.removed or not whole or types[0][0] != "run.started":
            continue
        known = reached.get(row.id)
        had = max(known.version if known else 0, anchor & LARGEST_VERSION if anchor >> STREAM_SHIFT == row.id else 0)
        if had > row.version:
            yield Loss(row, had)
        elif not (known and known.name) and types[-1][0] != "run.completed":
            yield Loss(row, None)


def _keep_lost_names(db: sqlite3.Connection, rows: list[StreamRow], reached: dict[int, Reached]) -> None:
    present = {name_digest(row.name) for row in rows}
    lost = [known for known in reached.values() if known.name and known.name not in present]
    if lost:
        db.execute(_LOST)
        for known in lost:
            columns = (known.name.hex(), known.version)
            db.execute(
                "INSERT OR REPLACE INTO lost_streams VALUES(?,?,?)", (known.name, known.version, row_crc(*columns))
            )


def lost_under(db: sqlite3.Connection, stream: str) -> int:
    """Return the number of events that a completely lost stream with this name had; 0 if there was none."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'lost_streams'").fetchone() is None:
        return 0
    name = name_digest(stream)
    found = db.execute("SELECT had, crc FROM lost_streams WHERE name = ?", (name,)).fetchone()
    if found is None:
        return 0
    if row_crc(name.hex(), found[0]) != found[1]:
        raise StoreCorrupt("a row of the lost_streams table is damaged")
    return int(found[0])


class Known(NamedTuple):
    """One stream and its lease, valid while the stamp is unchanged."""

    row: StreamRow
    lease: LeaseRow | None
    stamp: tuple[int, int]


class Remembered:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._known: Known | None = None

    def stamp(self) -> tuple[int, int]:
        """Return the stamp, which is read once per write transaction, because no one else can commit before it ends."""
        (version,) = self._access.cursor.execute("PRAGMA data_version").fetchone()
        return version, self._access.undone

    def about(self, stream: str, stamp: tuple[int, int]) -> Known | None:
        known = self._known
        return known if known is not None and known.row.name == stream and known.stamp == stamp else None

    def put(self, row: StreamRow, lease: LeaseRow | None, stamp: tuple[int, int]) -> None:
        self._known = Known(row, lease, stamp)

    def forget(self) -> None:
        self._known = None


_INSERT = f"INSERT INTO events(position, {EVENT_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_WITH_KEY = f"SELECT position FROM events WHERE position >> {STREAM_SHIFT} = ? AND key = ?"
_FIRST_OF_WRITER = "SELECT position FROM events WHERE writer = ? AND writer_seq = 1"
_LAST_OF_WRITER = (
    "SELECT writer_seq FROM events WHERE position BETWEEN ? AND ? AND writer = ? ORDER BY position DESC LIMIT 1"
)


class SQLiteStore(ReadableSQLite):
    """The writing half; `ReadableSQLite` is the reading half."""

    def __init__(
        self, path: Path, *, clock: Clock | None = None, timeout: float = 30.0, accept_rollback: bool = False
    ) -> None:
        super().__init__(path, clock=clock, timeout=timeout, accept_rollback=accept_rollback)
        self._remembered = Remembered(self.access)
        self.losses: tuple[Loss, ...] = ()  # the losses that this handle was asked to accept
        if self.access.accepts_loss:
            try:
                self.losses = accept_loss(self, self._clock.now())
            except BaseException:
                self.close()
                raise

    def head(self, stream: str) -> Head | None:
        with self.access.reading:
            known = self._remembered.about(stream, self._remembered.stamp())
        if known is None:
            return super().head(stream)
        return Head(stream, known.row.version, known.row.hash, known.row.fence)

    # ---- appending -----------------------------------------------------------------------------------------------

    def append(self, request: Append) -> Appended:
        with self.access.writing:
            stamp = self._remembered.stamp()
            known = self._remembered.about(request.stream, stamp)
            row = known.row if known is not None else self._stream_row(request.stream)
            if row is not None and row.removed:
                raise name_was_used(request.stream)
            stored = self._stored_before(request, row)
            if stored:
                return Appended(stored, duplicate=True)
            lease = known.lease if known is not None else read_lease(self._db, request.stream)
            if request.fence is not None:
                require_fence(request, lease.token if lease else 0, self._left(lease), row.fence if row else 0)
            require_version(request, row.version if row else 0)
            new = events_to_store(request, row.version if row else 0, row.hash if row else GENESIS)
            payloads = [
                (event.payload, asked.payload)
                for event, asked in zip(new, request.events, strict=True)
                if event.payload is not None and asked.payload is not None
            ]
            row = self.keep(row or add_stream(self._db, request.stream, GENESIS), new, payloads)
            self._remembered.put(row, lease, stamp)
            self.access.acknowledging = (row.id, row.version, row.name, known is None)
        return Appended(new, duplicate=False)

    def _stored_before(self, request: Append, row: StreamRow | None) -> tuple[Event, ...]:
        if request.key is not None and row is not None:
            found = self.access.cursor.execute(_WITH_KEY, (row.id, request.key)).fetchone()
            if found is not None:
                stored = self._slice(request.stream, row.id, found[0] & LARGEST_VERSION, len(request.events))
                require_same_as_stored(request, stored, by_key=True)
                return stored
        last, stream_id = self._last_of(request.writer, row)
        if request.writer_seq > last:
            require_next_in_sequence(request, last)
            return ()
        same_stream = row is not None and row.id == stream_id
        version = self._version_of(request, stream_id) if same_stream else 0
        stored = self._slice(request.stream, stream_id, version, len(request.events)) if version else ()
        require_same_as_stored(request, stored, by_key=False)
        return stored

    def _last_of(self, writer: str, row: StreamRow | None) -> tuple[int, int]:
        """Return the last sequence number of a writer, and the stream it writes to."""
        if row is not None and row.writer == writer:
            return row.writer_seq, row.id
        first = self._db.execute(_FIRST_OF_WRITER, (writer,)).fetchone()
        if first is None:
            return 0, 0
        stream_id = first[0] >> STREAM_SHIFT
        places = (first[0], place_of(stream_id, LARGEST_VERSION))
        (last,) = self._db.execute(_LAST_OF_WRITER, (*places, writer)).fetchone()
        return int(last), stream_id

    def _version_of(self, request: Append, stream_id: int) -> int:
        found = self._db.execute(
            "SELECT position FROM events WHERE position BETWEEN ? AND ? AND writer = ? AND writer_seq = ?",
            (place_of(stream_id, 1), place_of(stream_id, LARGEST_VERSION), request.writer, request.writer_seq),
        ).fetchone()
        return int(found[0]) & LARGEST_VERSION if found else 0

    def keep(self, row: StreamRow, events: Sequence[Event], payloads: Iterable[tuple[str, bytes]]) -> StreamRow:
        """Write events, payloads by address, index and head; return the new row of the stream."""
        for address, payload in payloads:
            self.access.cursor.execute(
                "INSERT INTO payloads(digest, bytes) VALUES(?, ?) "
                "ON CONFLICT(digest) DO UPDATE SET bytes = excluded.bytes WHERE bytes IS NULL",
                (bytes.fromhex(address), payload),
            )
        for event in events:
            self.access.cursor.execute(_INSERT, (place_of(row.id, event.version), *event[2:]))
            self._index(row.id, event)
        last = events[-1]
        fence = max(row.fence, last.fence)
        row = StreamRow(row.name, row.id, last.version, last.hash, fence, 0, last.writer, last.writer_seq)
        put_stream(self.access.cursor, row)
        return row

    def _index(self, stream_id: int, event: Event) -> None:
        entry = None if event.type in EFFECT_TYPES else entry_of(event)
        if entry is not None:
            put_entry(self._db, stream_id, entry)

    def lost(self, stream: str) -> int:
        """Return how many events a stream with this name had when an accepted rollback lost it; 0 if no rollback
        did."""
        with self.access.reading:
            return lost_under(self._db, stream)

    # ---- payloads and index --------------------------------------------------------------------------------------

    def erase(self, digest: str) -> bool:
        with self.access.writing:
            cursor = self._db.execute(
                "UPDATE payloads SET bytes = NULL WHERE digest = ? AND bytes IS NOT NULL", (bytes.fromhex(digest),)
            )
            erased = cursor.rowcount == 1
        if erased:
            empty_log(self.access)  # the bytes are still there, and in pages of the log that it has not replaced yet
        return erased

    def erase_all(self, digests: Iterable[str]) -> None:
        with self.access.writing:
            addresses = [(bytes.fromhex(digest),) for digest in digests]
            self._db.executemany("UPDATE payloads SET bytes = NULL WHERE digest = ?", addresses)
        empty_log(self.access)

    def keep_derived(self, name: str, content: bytes) -> None:
        with self.access.writing as db:
            db.execute(DERIVED)
            digest = hashlib.sha256(content).digest()
            db.execute("INSERT OR REPLACE INTO derived VALUES(?,?,?)", (name, digest, content))

    def rebuild_index(self) -> None:
        with self.access.writing:
            forget_derived(self._db)
            self._db.execute("DELETE FROM entries")
            for columns in self._db.execute(f"SELECT {STREAM_COLUMNS} FROM streams").fetchall():
                row = checked_stream(columns)
                if not row.removed:
                    for event in self.read(row.name):
                        self._index(row.id, event)

    # ---- leases --------------------------------------------------------------------------------------------------

    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        with self.access.writing:
            present = read_lease(self._db, stream)
            left = self._left(present)
            if present is not None and left > 0 and present.token != over:
                raise lease_held(stream, present.holder, present.token, left)
            row = self._stream_row(stream)
            token = max(present.token if present else 0, row.fence if row else 0) + 1
            self._put_lease(stream, token, holder, seconds)
        return Lease(stream, token, holder, seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        with self.access.writing:
            present = read_lease(self._db, lease.stream)
            if present is None or present.token != lease.token or self._left(present) <= 0:
                raise LeaseLost(f"lease {lease.token} of {lease.stream} is no longer valid")
            self._put_lease(lease.stream, lease.token, lease.holder, seconds)
        return lease._replace(seconds_left=seconds)

    def release(self, lease: Lease) -> None:
        with self.access.writing:
            present = read_lease(self._db, lease.stream)
            if present is not None and present.token == lease.token:
                self._put_lease(lease.stream, lease.token, lease.holder, 0)

    def _put_lease(self, stream: str, token: int, holder: str, seconds: float) -> None:
        ends = int((self._clock.ticks() + seconds) * 1000)
        put_lease(self._db, LeaseRow(stream, token, holder, ends, self._boot))
        self._remembered.forget()

    # ---- whole streams -------------------------------------------------------------------------------------------

    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        taken = list(events)
        stream = taken[0].stream
        checked = list(verified(stream, taken))
        with self.access.writing:
            if self._stream_row(stream) is not None:
                raise VersionConflict(f"{stream} already exists; a stream must be imported as a whole")
            addressed = [(address_of(payload), payload) for payload in payloads]
            row = self.keep(add_stream(self._db, stream, GENESIS), checked, addressed)
            self._db.executemany(
                "INSERT INTO payloads(digest, bytes) VALUES(?, NULL) ON CONFLICT(digest) DO NOTHING",
                [(bytes.fromhex(event.payload),) for event in checked if event.payload is not None],
            )
            self.access.acknowledging = (row.id, row.version, row.name, True)

    def remove(self, stream: str, head: str) -> None:
        with self.access.writing:
            row = self._stream_row(stream)
            if row is None or row.removed or row.hash != head:
                raise VersionConflict(f"{stream} is not at the expected head")
            # The last event remains as the tombstone: it proves what was stored, and the anchor never moves backward.
            self._db.execute("INSERT INTO removing VALUES(?)", (row.id,))
            places = (place_of(row.id, 1), place_of(row.id, row.version))
            self._db.execute("DELETE FROM events WHERE position >= ? AND position < ?", places)
            self._db.execute("DELETE FROM removing")
            self._db.execute("DELETE FROM entries WHERE stream = ?", (row.id,))
            self._db.execute("DELETE FROM leases WHERE name = ?", (stream,))
            forget_derived(self._db, LINES, stream)
            put_stream(self._db, row._replace(removed=1))
            self._remembered.forget()
            self._db.execute(
                "DELETE FROM payloads WHERE lower(hex(digest)) NOT IN (SELECT e.payload FROM events e "
                f"JOIN streams s ON s.id = e.position >> {STREAM_SHIFT} WHERE e.payload IS NOT NULL AND s.removed = 0)"
            )

    def problems(self) -> tuple[Problem, ...]:
        return examine(self)

    def close(self) -> None:
        self.access.close()


VOLATILE = frozenset({"tmpfs", "ramfs"})


def examine(store: SQLiteStore) -> tuple[Problem, ...]:
    """Read and verify everything. Slow by design; called by `doctor` and `runs verify`."""
    problems: list[Problem] = []
    try:
        with store.access.reading as db:
            problems += _pages(db)
            problems += _anchor(store.access)
        problems += contents_of(store)
    except RuntimeFault as fault:
        problems.append(Problem(fault.code, fault.message))
    return tuple(problems)


def _pages(db: sqlite3.Connection) -> list[Problem]:
    lines = [str(line) for (line,) in db.execute("PRAGMA integrity_check(20)")]
    return [] if lines == ["ok"] else [Problem("store_corrupt", line) for line in lines]


def _anchor(access: Access) -> list[Problem]:
    lost = access.acknowledged_and_gone()
    return [Problem("store_rolled_back", lost)] if lost else []


def suitability(path: Path) -> tuple[Problem, ...]:
    """Return warnings about the store's location: problems that do not prevent the store from working."""
    kind = file_system_of(path.parent)
    if kind in VOLATILE:
        return (Problem("storage_unsuitable", f"{path.parent} is on {kind}, so the store would be lost on a restart"),)
    return ()
