"""The rows of the SQLite store that do change, each with the CRC that says whether it is what was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from workpacket.runtime.errors import StoreCorrupt
from workpacket.runtime.records.index import IndexEntry
from workpacket.runtime.stores.sqlite.schema import row_crc


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


def put_stream(db: sqlite3.Connection, row: StreamRow) -> None:
    db.execute("INSERT OR REPLACE INTO streams VALUES(?,?,?,?,?,?,?,?,?)", (*row, row_crc(*row)))


def add_stream(db: sqlite3.Connection, name: str, genesis: str) -> StreamRow:
    """The row of a new stream, not yet put; the count of all streams grows with it."""
    number = stream_count(db) + 1
    db.execute("UPDATE meta SET value = ?, crc = ? WHERE name = 'streams'", (number, row_crc("streams", number)))
    return StreamRow(name, number, 0, genesis, 0, 0, "", 0)


def stream_count(db: sqlite3.Connection) -> int:
    columns = db.execute("SELECT name, value, crc FROM meta WHERE name = 'streams'").fetchone()
    if columns is None:
        raise StoreCorrupt("the table meta lost the number of streams")
    _require_crc("meta", columns)
    return int(columns[1])


def require_whole_directory(db: sqlite3.Connection) -> None:
    """No stream vanished from the table of streams, so one that is not found there does not exist."""
    rows = db.execute(
        f"SELECT {STREAM_COLUMNS}, (SELECT value FROM meta WHERE name = 'streams') FROM streams"
    ).fetchall()
    for row in rows:
        checked_stream(row[:-1])
    counted = rows[0][-1] if rows else stream_count(db)
    if counted != len(rows):
        raise StoreCorrupt(f"the table of streams holds {len(rows)} of {counted} streams")


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


def checked_entry(stream: str, columns: Sequence[str | int]) -> IndexEntry:
    """The entry of `stream` whose columns are kind, stream id, key, version, status, crc."""
    _require_crc("entries", columns)
    kind, _, key, version, status, _ = columns
    return IndexEntry(str(kind), stream, str(key), int(version), str(status))


def _require_crc(table: str, columns: Sequence[str | int]) -> None:
    if row_crc(*columns[:-1]) != columns[-1]:
        raise StoreCorrupt(f"a row of the table {table} is not what was written: {columns[0]!r}")
