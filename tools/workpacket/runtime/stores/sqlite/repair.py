"""What is done with the whole file of a store: back it up, restore it, and rebuild a damaged one.

A backup is copied by SQLite as it was at one moment, while programs go on writing, and read to its end before it has
its name. A restored backup takes the file's place, while the side file stays: it says what each run lost.

Rebuilding copies the data, and recomputes everything that is derived: the index, SQLite's secondary indexes, the number
of streams, and the leases, which only say who is at work. Events and payloads that can be read are copied verbatim;
their hashes are compared when they are read, as always. The table of streams says which events must exist, so a file in
which that table is damaged cannot be rebuilt. The old file is kept.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from workpacket.problem import Problem, WorkpacketError
from workpacket.runtime.errors import NewerSchema, RuntimeFault, StoreCorrupt, StoreUnavailable
from workpacket.runtime.records.events import Event, entry_of, verified
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import lease_held
from workpacket.runtime.stores.sqlite.files import SideFile, prepare_folder, sync_folder
from workpacket.runtime.stores.sqlite.reader import EFFECT_TYPES, EVENT_COLUMNS
from workpacket.runtime.stores.sqlite.rows import (
    APPLICATION_ID,
    LEASE_COLUMNS,
    STREAM_COLUMNS,
    LeaseRow,
    StreamRow,
    application_id,
    checked_lease,
    checked_stream,
    migrate,
    place_of,
    put_entry,
    put_lease,
    put_stream,
    row_crc,
)
from workpacket.runtime.stores.sqlite.store import LEAP, Loss, SQLiteStore, end_leases, examine

_EVENT = f"SELECT position, {EVENT_COLUMNS} FROM events WHERE position"
_PAYLOAD = "SELECT id, digest, bytes FROM payloads WHERE id"
_FARTHEST = 1 << 40


class PutBack(NamedTuple):
    """The result: the path of the file that was replaced, if there was one, what each run lost, and what is damaged in
    the backup.
    """

    kept: Path | None
    losses: tuple[Loss, ...]
    problems: tuple[Problem, ...]


def back_up(store: SQLiteStore, target: Path) -> tuple[Problem, ...]:
    """Copy the store, as it is at this moment, to a new file, and return what is damaged in it."""
    if target.exists():
        raise WorkpacketError("file_unwritable", f"{target} exists already", hint="give a name that is free")
    # In the store's own folder: the target may be on a file system on which no store can be opened.
    with TemporaryDirectory(prefix="backup-", dir=store.access.path.parent) as folder:
        copy = Path(folder) / "runs.db"
        with closing(sqlite3.connect(copy, isolation_level=None)) as made, store.access.reading as db:
            db.backup(made)
        problems = _problems_of(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as made:
            made.execute("PRAGMA journal_mode = DELETE")  # one file, which can also be read where nothing is written
        _write(copy, target)
    return problems


def restore(path: Path, backup: Path, timeout: float, *, damaged: bool = False) -> PutBack:
    """Put a copy of the backup in the place of the store, and record in each run what it lost. Processes that have the
    store open are refused afterwards; a run that is being worked on prevents it. A damaged backup is restored only with
    `damaged`.
    """
    if Path(f"{backup}-wal").exists():  # what is in this log would be missing, also where `backup` is the store itself
        hint = f"back it up first: WORKPACKET_STORE={quote(str(backup))} workpacket runtime runs back-up FILE"
        raise StoreUnavailable(f"{backup} is a store in use, not a backup", code="store_busy", hint=hint)
    prepare_folder(path.parent)
    side = SideFile(path.with_name(f"{path.name}.lock"))
    try:
        with TemporaryDirectory(prefix="restored-", dir=path.parent) as folder:
            copy = Path(folder) / "runs.db"
            _write(backup, copy)
            problems = _problems_of(copy)
            if problems and not damaged:
                hint = "restore another backup, or add --yes to restore what is whole in this one"
                raise StoreCorrupt(f"{backup} is damaged: {problems[0].message}", hint=hint)
            _require_idle(path)
            with closing(sqlite3.connect(copy)) as db, db:
                end_leases(db)
            if path.exists():
                shutil.copymode(path, copy)
            side.lock(timeout)
            kept = _swapped(path, copy, "replaced") if path.exists() else None
            if kept is None:
                copy.rename(path)
                sync_folder(path.parent)
    finally:
        side.close()
    with closing(SQLiteStore(path, timeout=timeout, accept_rollback=True)) as store:
        return PutBack(kept, store.losses, problems)


def _problems_of(copy: Path) -> tuple[Problem, ...]:
    """Verify a file that has no side file, as the store that it is."""
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            mark = application_id(db)
        if mark != APPLICATION_ID:
            raise StoreCorrupt("this file is not a backup of a run store", hint="give the file that `back-up` wrote")
        with closing(SQLiteStore(copy)) as store:
            if store.access.newer:
                raise NewerSchema(f"the store has schema {store.access.newer}, which this version cannot verify")
            return examine(store)
    except sqlite3.Error as error:
        raise StoreCorrupt(f"this file is not a backup of a run store: {error}") from error


def _require_idle(path: Path) -> None:
    if not path.exists():
        return
    try:
        with closing(SQLiteStore(path)) as store:
            leases = store.leases()
    except RuntimeFault:
        return  # its leases cannot be read, and no process can go on with it either
    for lease in leases:
        raise lease_held(lease.stream, lease.holder, lease.token, lease.seconds_left)


def _write(source: Path, target: Path) -> None:
    """Copy a file to a name that is free. It has that name only once all of it is on the disk."""
    partial = target.with_name(f"{target.name}.partial")
    try:
        with (
            source.open("rb") as old,
            open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new,
        ):
            shutil.copyfileobj(old, new, 1 << 20)
            new.flush()
            os.fsync(new.fileno())
        partial.rename(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(target.absolute().parent)


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
        kept = _swapped(path, new, "damaged")
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
        put_lease(made, LeaseRow(row.name, row.fence + LEAP, "", 0, ""))


def _copy_lost_names(old: sqlite3.Connection, made: sqlite3.Connection) -> None:
    if old.execute("SELECT 1 FROM sqlite_master WHERE name = 'lost_streams'").fetchone() is None:
        return
    made.execute("CREATE TABLE lost_streams(name BLOB PRIMARY KEY, had INTEGER NOT NULL, crc INTEGER NOT NULL)")
    made.executemany("INSERT INTO lost_streams VALUES(?, ?, ?)", old.execute("SELECT * FROM lost_streams").fetchall())


def _swapped(path: Path, new: Path, what: str) -> Path:
    """Replace the old file with the new one; the old file is kept with its log, and `what` it was is in its name."""
    number = next(n for n in range(1, 10_000) if not path.with_name(f"{path.name}.{what}-{n}").exists())
    kept = path.with_name(f"{path.name}.{what}-{number}")
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
