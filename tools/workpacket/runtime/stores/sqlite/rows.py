"""The mutable rows of the SQLite store, its tables, and their migrations.

Rows that never change (events) are guarded by triggers and by the hash chain. Rows that do change (streams, leases,
meta, entries) carry a CRC over their other columns, so that damage is detected before they are used. The `streams`
table has no second index, and `meta` counts its rows, so that a stream cannot silently vanish from it. Each tree that
an append touches costs a page to write and sync. Events therefore have no index: the row number of an event is its
position, with the number of its stream in the upper half and its version in the lower half.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from workpacket.runtime.errors import StoreCorrupt
from workpacket.runtime.records.events import IndexEntry

APPLICATION_ID = 0x57_50_52_54  # "WPRT": tells other tools whose file this is
SCHEMA_VERSION = 3
STREAM_SHIFT = 32
LARGEST_VERSION = (1 << STREAM_SHIFT) - 1

_FIRST = (
    """CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE schema_migrations(version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)""",
    """CREATE TABLE streams(
        name TEXT PRIMARY KEY, id INTEGER NOT NULL, version INTEGER NOT NULL, hash TEXT NOT NULL,
        fence INTEGER NOT NULL, removed INTEGER NOT NULL, writer TEXT NOT NULL, writer_seq INTEGER NOT NULL,
        crc INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE events(
        position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, type TEXT NOT NULL,
        type_version INTEGER NOT NULL, occurred_at INTEGER NOT NULL, recorded_at INTEGER NOT NULL,
        actor TEXT NOT NULL, writer TEXT NOT NULL, writer_seq INTEGER NOT NULL, key TEXT, fence INTEGER NOT NULL,
        data TEXT NOT NULL, payload TEXT, previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE UNIQUE INDEX event_version ON events(stream, version)""",
    # Only where a writer begins: an index of every sequence number would cost each append a page. The store itself
    # keeps the numbers unique and gapless, inside the transaction.
    """CREATE UNIQUE INDEX event_writer ON events(writer) WHERE writer_seq = 1""",
    """CREATE UNIQUE INDEX event_key ON events(stream, key) WHERE key IS NOT NULL""",
    """CREATE TABLE payloads(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, bytes BLOB)""",
    """CREATE TABLE leases(
        name TEXT PRIMARY KEY, token INTEGER NOT NULL, holder TEXT NOT NULL, ends INTEGER NOT NULL,
        boot TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE entries(
        kind TEXT NOT NULL, stream INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,
        status TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY(kind, stream, key)) WITHOUT ROWID""",
    """CREATE INDEX entry_version ON entries(kind, stream, version)""",
    """CREATE TABLE removing(stream INTEGER PRIMARY KEY)""",
    """CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never changed'); END""",
    """CREATE TRIGGER events_stay BEFORE DELETE ON events
        WHEN NOT EXISTS (SELECT 1 FROM removing WHERE stream = OLD.stream)
        BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END""",
)

_SECOND = (
    """ALTER TABLE events RENAME TO unplaced""",
    """CREATE TABLE events(
        position INTEGER PRIMARY KEY, type TEXT NOT NULL, type_version INTEGER NOT NULL, occurred_at INTEGER NOT NULL,
        recorded_at INTEGER NOT NULL, actor TEXT NOT NULL, writer TEXT NOT NULL, writer_seq INTEGER NOT NULL, key TEXT,
        fence INTEGER NOT NULL, data TEXT NOT NULL, payload TEXT, previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    f"""INSERT INTO events SELECT stream << {STREAM_SHIFT} | version, type, type_version, occurred_at, recorded_at,
        actor, writer, writer_seq, key, fence, data, payload, previous, hash FROM unplaced ORDER BY stream, version""",
    """DROP TABLE unplaced""",
    """CREATE UNIQUE INDEX event_writer ON events(writer) WHERE writer_seq = 1""",
    f"""CREATE UNIQUE INDEX event_key ON events(position >> {STREAM_SHIFT}, key) WHERE key IS NOT NULL""",
    """CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never changed'); END""",
    f"""CREATE TRIGGER events_stay BEFORE DELETE ON events
        WHEN NOT EXISTS (SELECT 1 FROM removing WHERE stream = OLD.position >> {STREAM_SHIFT})
        BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END""",
    # Every effect writes two entries, and the newest one is never needed; entries of the other kinds are few.
    """DROP INDEX entry_version""",
    """CREATE INDEX entry_version ON entries(kind, stream, version) WHERE kind <> 'effects'""",
)

# Each effect wrote two entries, one page each, for a question that concerns unfinished runs only. Their events now
# answer it.
_THIRD = ("""DELETE FROM entries WHERE kind = 'effects'""",)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _SECOND, _THIRD)


def place_of(stream_id: int, version: int) -> int:
    """Return the position of an event in the event table."""
    return stream_id << STREAM_SHIFT | version


def row_crc(*columns: str | int) -> int:
    return zlib.crc32(repr(columns).encode("utf-8", "surrogatepass"))


def migrate(connection: sqlite3.Connection, applied_at: int) -> None:
    """Upgrade the file to SCHEMA_VERSION inside the transaction that the caller has begun."""
    present = schema_version(connection)
    for version, statements in enumerate(MIGRATIONS[present:], start=present + 1):
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO schema_migrations VALUES(?, ?)", (version, applied_at))
        connection.execute(f"PRAGMA user_version = {version:d}")
    if present == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
        connection.execute("INSERT INTO meta VALUES('streams', 0, ?)", (row_crc("streams", 0),))


def schema_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def application_id(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("PRAGMA application_id").fetchone()
    return int(number)


class StreamRow(NamedTuple):
    name: str
    id: int
    version: int
    hash: str
    fence: int
    removed: int
    writer: str
    writer_seq: int


class LeaseRow(NamedTuple):
    name: str
    token: int
    holder: str
    ends: int
    boot: str


STREAM_COLUMNS = "name, id, version, hash, fence, removed, writer, writer_seq, crc"
LEASE_COLUMNS = "name, token, holder, ends, boot, crc"


def checked_stream(columns: Sequence[str | int]) -> StreamRow:
    _require_crc("streams", columns)
    return StreamRow._make(columns[:-1])


def read_stream(db: sqlite3.Connection, name: str) -> StreamRow | None:
    columns = db.execute(f"SELECT {STREAM_COLUMNS} FROM streams WHERE name = ?", (name,)).fetchone()
    return None if columns is None else checked_stream(columns)


def put_stream(db: sqlite3.Connection | sqlite3.Cursor, row: StreamRow) -> None:
    db.execute("INSERT OR REPLACE INTO streams VALUES(?,?,?,?,?,?,?,?,?)", (*row, row_crc(*row)))


def add_stream(db: sqlite3.Connection, name: str, genesis: str) -> StreamRow:
    """Return the row of a new stream, not yet stored; the count of all streams is incremented with it."""
    number = _counts(db)[0] + 1
    db.execute("UPDATE meta SET value = ?, crc = ? WHERE name = 'streams'", (number, row_crc("streams", number)))
    return StreamRow(name, number, 0, genesis, 0, 0, "", 0)


def _counts(db: sqlite3.Connection) -> tuple[int, int]:
    """Return how many streams there should be, and how many are listed. One statement sees one state of the file:
    between two, another process may add a stream.
    """
    columns = db.execute(
        "SELECT name, value, crc, (SELECT count(*) FROM streams) FROM meta WHERE name = 'streams'"
    ).fetchone()
    if columns is None:
        raise StoreCorrupt("the number of streams is missing from the meta table")
    _require_crc("meta", columns[:3])
    return int(columns[1]), columns[3]


def require_whole_directory(db: sqlite3.Connection) -> None:
    """Require that no stream has vanished from the table of streams, so a stream that is not found there does not
    exist."""
    rows = db.execute(
        f"SELECT {STREAM_COLUMNS}, (SELECT value FROM meta WHERE name = 'streams') FROM streams"
    ).fetchall()
    for row in rows:
        checked_stream(row[:-1])
    counted, listed = (rows[0][-1], len(rows)) if rows else _counts(db)
    if counted != listed:
        raise StoreCorrupt(f"the table of streams lists {listed} of {counted} streams")
    if listed > len(rows):  # the first stream was added in the meantime
        require_whole_directory(db)


def read_lease(db: sqlite3.Connection, name: str) -> LeaseRow | None:
    columns = db.execute(f"SELECT {LEASE_COLUMNS} FROM leases WHERE name = ?", (name,)).fetchone()
    return None if columns is None else checked_lease(columns)


def checked_lease(columns: Sequence[str | int]) -> LeaseRow:
    _require_crc("leases", columns)
    return LeaseRow._make(columns[:-1])


def put_lease(db: sqlite3.Connection, row: LeaseRow) -> None:
    db.execute("INSERT OR REPLACE INTO leases VALUES(?,?,?,?,?,?)", (*row, row_crc(*row)))


def put_entry(db: sqlite3.Connection, stream_id: int, entry: IndexEntry) -> None:
    columns = (entry.kind, stream_id, entry.key, entry.version, entry.status)
    db.execute("INSERT OR REPLACE INTO entries VALUES(?,?,?,?,?,?)", (*columns, row_crc(*columns)))


# Added when it is first needed. A version that does not know this table leaves it as it is, which does no harm: what
# it holds is used only together with the hash of the chain that it was derived from.
DERIVED = """CREATE TABLE IF NOT EXISTS derived(name TEXT PRIMARY KEY, digest BLOB NOT NULL, content BLOB NOT NULL)"""


def read_derived(db: sqlite3.Connection, name: str) -> bytes | None:
    if not _has_derived(db):
        return None
    found = db.execute("SELECT digest, content FROM derived WHERE name = ?", (name,)).fetchone()
    if found is None or not isinstance(found[1], bytes) or hashlib.sha256(found[1]).digest() != found[0]:
        return None
    return found[1]


def forget_derived(db: sqlite3.Connection, *names: str) -> None:
    """Delete what was derived under these names; without names, delete everything."""
    if _has_derived(db):
        which = f" WHERE name IN ({', '.join('?' * len(names))})" if names else ""
        db.execute(f"DELETE FROM derived{which}", names)


def _has_derived(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'derived'").fetchone() is not None


def checked_entry(stream: str, columns: Sequence[str | int]) -> IndexEntry:
    """Return the entry of `stream` in columns kind, stream id, key, version, status, crc."""
    _require_crc("entries", columns)
    kind, _, key, version, status, _ = columns
    return IndexEntry(str(kind), stream, str(key), int(version), str(status))


def _require_crc(table: str, columns: Sequence[str | int]) -> None:
    if row_crc(*columns[:-1]) != columns[-1]:
        raise StoreCorrupt(f"a row of table {table} is damaged: {columns[0]!r}")
