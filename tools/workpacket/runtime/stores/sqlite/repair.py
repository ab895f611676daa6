"""Rebuild a damaged file: copy its data, and recompute everything that is derived.

The derived data are the index, SQLite's secondary indexes, the number of streams, and the leases, which only say who is
at work. Events and payloads that can be read are copied verbatim; their hashes are compared when they are read, as
always. The table of streams says which events must exist, so a file in which that table is damaged cannot be rebuilt.
The old file is kept.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from workpacket.runtime.errors import RuntimeFault, StoreCorrupt
from workpacket.runtime.records.events import Event, entry_of, verified
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.sqlite.files import SideFile, sync_folder
from workpacket.runtime.stores.sqlite.reader import EFFECT_TYPES, EVENT_COLUMNS
from workpacket.runtime.stores.sqlite.rows import (
    LEASE_COLUMNS,
    STREAM_COLUMNS,
    LeaseRow,
    StreamRow,
    checked_lease,
    checked_stream,
    migrate,
    place_of,
    put_entry,
    put_lease,
    put_stream,
    row_crc,
)

_EVENT = f"SELECT position, {EVENT_COLUMNS} FROM events WHERE position"
_PAYLOAD = "SELECT id, digest, bytes FROM payloads WHERE id"
_FARTHEST = 1 << 40
# A lease that cannot be read may have a token above the last one that was used.
_LEAP = 1 << 20


class Rebuilt(NamedTuple):
    """The result: the path of the old file, the number of complete runs, and what is missing from the others."""

    kept: Path
    whole: int
    damaged: tuple[str, ...]


def rebuild(path: Path, now: int, timeout: float) -> Rebuilt:
    """Rebuild the store in this file. No other process may write in the meantime, and processes that have the file open
    are refused afterwards.
    """
    new = path.with_name(f"{path.name}.rebuilt")
    new.unlink(missing_ok=True)
    side = SideFile(path.with_name(f"{path.name}.lock"))
    try:
        side.lock(timeout)
        with closing(sqlite3.connect(path, isolation_level=None)) as old:
            rows = _streams(old)
            with closing(sqlite3.connect(new, isolation_level=None)) as made:
                damaged = _copied(old, made, rows, now)
        kept = _swapped(path, new)
    except sqlite3.Error as error:
        raise StoreCorrupt(f"{path} cannot be rebuilt: {error}", hint="restore it from a backup") from error
    finally:
        side.close()
    return Rebuilt(kept, sum(not row.removed for row in rows) - len(damaged), damaged)


def _streams(old: sqlite3.Connection) -> list[StreamRow]:
    """Return the rows of all streams, which are numbered without gaps."""
    try:
        found = old.execute(f"SELECT {STREAM_COLUMNS} FROM streams").fetchall()
    except UnicodeDecodeError:
        raise StoreCorrupt("the table of streams is damaged", hint="restore the store from a backup") from None
    rows = [checked_stream(columns) for columns in found]
    if sorted(row.id for row in rows) != list(range(1, len(rows) + 1)):
        raise StoreCorrupt("the table of streams is incomplete", hint="restore the store from a backup")
    return rows


def _copied(old: sqlite3.Connection, made: sqlite3.Connection, rows: Sequence[StreamRow], now: int) -> tuple[str, ...]:
    made.execute("BEGIN IMMEDIATE")
    migrate(made, now)
    with suppress(sqlite3.Error):  # the identity of the store is the time at which it was made
        for version, at in old.execute("SELECT version, applied_at FROM schema_migrations").fetchall():
            made.execute("UPDATE schema_migrations SET applied_at = ? WHERE version = ?", (at, version))
    made.execute(
        "UPDATE meta SET value = ?, crc = ? WHERE name = 'streams'", (len(rows), row_crc("streams", len(rows)))
    )
    _copy_lost_names(old, made)
    for id_, digest, content in _payloads(old):
        sound = isinstance(digest, bytes) and (content is None or isinstance(content, bytes))
        if sound and (content is None or address_of(content) == digest.hex()):
            made.execute("INSERT OR IGNORE INTO payloads VALUES(?, ?, ?)", (id_, digest, content))
    damaged: list[str] = []
    for row in rows:
        put_stream(made, row)
        _copy_lease(old, made, row)
        events = list(_events(old, row))
        for columns in events:
            made.execute(f"INSERT OR IGNORE INTO events VALUES({', '.join('?' * len(columns))})", columns)
        if not row.removed and not _indexed(made, row, events):
            damaged.append(row.name)
    made.execute("COMMIT")
    return tuple(damaged)


def _events(old: sqlite3.Connection, row: StreamRow) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a stream's events that can be read: all at once or, if that fails, one by one."""
    first, last = place_of(row.id, 1), place_of(row.id, row.version)
    try:
        yield from old.execute(f"{_EVENT} BETWEEN ? AND ? ORDER BY position", (first, last)).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        # One damaged page fails the whole statement, although most rows are elsewhere.
        for place in range(first, last + 1):
            with suppress(sqlite3.Error, UnicodeDecodeError):
                yield from old.execute(f"{_EVENT} = ?", (place,)).fetchall()


def _payloads(old: sqlite3.Connection) -> Iterator[tuple[int, Any, Any]]:
    """Yield the payloads that can be read, without using the index of their digests."""
    last, leap = 0, 1
    while leap < _FARTHEST:
        try:
            found = old.execute(f"{_PAYLOAD} >= ? ORDER BY id LIMIT 500", (last + leap,)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError):
            leap *= 2  # over the damaged page; what was jumped over is looked for one by one below
            continue
        for id_ in range(last + 1, last + leap):
            with suppress(sqlite3.Error, UnicodeDecodeError):
                yield from old.execute(f"{_PAYLOAD} = ?", (id_,)).fetchall()
        if not found:
            return
        yield from found
        last, leap = found[-1][0], 1


def _indexed(made: sqlite3.Connection, row: StreamRow, columns: Sequence[tuple[Any, ...]]) -> bool:
    """Write the index of the intact part of the stream, and return whether it is complete."""
    last = ""
    # The index is kept up to the first damaged event; the caller reports a stream that is not whole.
    with suppress(RuntimeFault, TypeError):
        events = (Event(row.name, each[0] - place_of(row.id, 0), *each[1:]) for each in columns)
        for event in verified(row.name, events):
            entry = None if event.type in EFFECT_TYPES else entry_of(event)
            if entry is not None:
                put_entry(made, row.id, entry)
            last = event.hash
    return last == row.hash


def _copy_lease(old: sqlite3.Connection, made: sqlite3.Connection, row: StreamRow) -> None:
    try:
        found = old.execute(f"SELECT {LEASE_COLUMNS} FROM leases WHERE name = ?", (row.name,)).fetchone()
        if found is not None:
            put_lease(made, checked_lease(found))
    except (sqlite3.Error, UnicodeDecodeError, StoreCorrupt):
        put_lease(made, LeaseRow(row.name, row.fence + _LEAP, "", 0, ""))


def _copy_lost_names(old: sqlite3.Connection, made: sqlite3.Connection) -> None:
    if old.execute("SELECT 1 FROM sqlite_master WHERE name = 'lost_streams'").fetchone() is None:
        return
    made.execute("CREATE TABLE lost_streams(name BLOB PRIMARY KEY, had INTEGER NOT NULL, crc INTEGER NOT NULL)")
    made.executemany("INSERT INTO lost_streams VALUES(?, ?, ?)", old.execute("SELECT * FROM lost_streams").fetchall())


def _swapped(path: Path, new: Path) -> Path:
    """Replace the old file with the new one; the old file is kept with its log."""
    number = next(n for n in range(1, 10_000) if not path.with_name(f"{path.name}.damaged-{n}").exists())
    kept = path.with_name(f"{path.name}.damaged-{number}")
    real = Path(os.path.realpath(path))
    os.link(real, kept)
    log = Path(f"{real}-wal")
    if log.exists():  # it belongs to the old file, and SQLite would copy its pages into the new one
        log.rename(f"{kept}-wal")
    Path(f"{real}-shm").unlink(missing_ok=True)
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.replace(real)
    sync_folder(real.parent)
    return kept
