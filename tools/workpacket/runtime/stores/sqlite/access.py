"""One handle on one database file: opening it safely, and the two ways of using it.

`reading` and `writing` are the only ways to reach the connection. Both refuse a handle that was poisoned by a storage
error or carried across a fork, and both convert each SQLite failure to a code that says what the user can do about it.
`writing` is one transaction under the write lock: durable when it exits, undone when it exits with an exception.
`reading` and `writing` are classes instead of generators because they are on the hot path.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from workpacket.runtime.errors import (
    NewerSchema,
    RuntimeFault,
    StorageFailed,
    StoreCorrupt,
    StoreRolledBack,
    StoreUnavailable,
)
from workpacket.runtime.stores.sqlite.files import SideFile, Whereabouts, damaged_frame, prepare_folder
from workpacket.runtime.stores.sqlite.rows import (
    APPLICATION_ID,
    LARGEST_VERSION,
    SCHEMA_VERSION,
    STREAM_SHIFT,
    application_id,
    migrate,
    place_of,
    schema_version,
)

# The write-ahead log is reused after 1 MiB: overwriting in place is cheaper to sync than growing. Measured from 48 to
# 4096 pages: a smaller limit copies back more often, a larger one grows for longer; both cost up to 2.5 times as much
# per step.
WAL_PAGES = 256
_PRAGMAS: tuple[tuple[str, str, int], ...] = (
    ("synchronous", "FULL", 2),
    ("fullfsync", "ON", 1),  # matters on macOS, where fsync alone does not reach the disk
    ("checkpoint_fullfsync", "ON", 1),
    ("secure_delete", "ON", 1),  # erased data is overwritten, whatever the default of this SQLite build
    ("trusted_schema", "OFF", 0),
    ("cell_size_check", "ON", 1),
    ("temp_store", "MEMORY", 2),
    ("mmap_size", "0", 0),
    ("wal_autocheckpoint", str(WAL_PAGES), WAL_PAGES),
    ("journal_size_limit", str(2 * WAL_PAGES * 4096), 2 * WAL_PAGES * 4096),
)
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "store_busy",
    sqlite3.SQLITE_LOCKED: "store_busy",
    sqlite3.SQLITE_FULL: "disk_full",
    sqlite3.SQLITE_READONLY: "store_read_only",
    sqlite3.SQLITE_CANTOPEN: "store_read_only",
    sqlite3.SQLITE_PERM: "store_read_only",
}
# A new process needs 32 KiB next to the log before it can read. On a full disk this fails first, as an I/O error,
# although nothing was written and the disk is sound.
_NO_ROOM_TO_OPEN = sqlite3.SQLITE_IOERR_SHMSIZE


# A damaged file can contain names that are not text; the sqlite3 module has no specific error for that.
FAILURES = (sqlite3.Error, UnicodeDecodeError)


def code_of(error: sqlite3.Error | UnicodeDecodeError) -> str:
    """Return the stop reason for an SQLite failure."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code == _NO_ROOM_TO_OPEN:
        return "disk_full"
    primary = code & 0xFF
    return "storage_failed" if primary == sqlite3.SQLITE_IOERR else _UNAVAILABLE.get(primary, "store_corrupt")


class Access:
    def __init__(self, path: Path, timeout: float, now: int, *, accept_rollback: bool) -> None:
        self.path = path
        self.timeout = timeout
        self.newer = 0
        self.undone = 0  # how many write transactions of this handle were not committed
        self.accepts_loss = False
        self.acknowledging: tuple[int, int, str, bool] | None = None  # the anchor's value once this is committed
        self._poison = ""
        self._process = os.getpid()
        self.thread_lock = threading.RLock()
        if path.is_dir():
            raise StoreUnavailable(
                f"{path} is a folder", code="storage_unsuitable",
                hint="specify a file, or the URL of a store that an installed package can open",
            )  # fmt: skip
        prepare_folder(path.parent)
        self.side = SideFile(path.with_name(path.name + ".lock"))
        self.reading = Reading(self)
        self.writing = Writing(self)
        try:
            self._open(now, accept_rollback)
        except BaseException:
            self.side.close()
            raise

    def _open(self, now: int, accept_rollback: bool) -> None:
        try:
            self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=self.timeout)
        except sqlite3.Error as error:
            raise self.translated(error) from error
        self.cursor = (
            self.db.cursor()
        )  # one cursor for everything that an append writes: a new one each time takes 1 % of the time of an effect
        try:
            # Two processes that open a new store at once would both try to create its tables.
            self.side.lock(self.timeout)
            try:
                self._configure(now)
                self._check_anchor(accept_rollback)
                self.whereabouts = Whereabouts(self.path, self.side.path)
            finally:
                self.side.unlock()
        except FAILURES as error:
            self.db.close()
            raise self.translated(error) from error
        except OSError as error:
            self.db.close()
            raise StorageFailed(f"{self.path} was removed while it was being opened: {error}") from error
        except BaseException:
            self.db.close()
            raise

    def _configure(self, now: int) -> None:
        mark = application_id(self.db)
        if mark not in {0, APPLICATION_ID}:
            raise StoreCorrupt(f"{self.path} belongs to another program (application id {mark:#x})")
        (mode,) = self.db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreUnavailable(
                f"{self.path}: write-ahead logging is not available (mode {mode!r})", code="storage_unsuitable"
            )
        # SQLite ignores a setting that it does not know or cannot apply, so each is read back.
        for name, value, meant in _PRAGMAS:
            self.db.execute(f"PRAGMA {name} = {value}")
            row = self.db.execute(f"PRAGMA {name}").fetchone()
            if row is not None and row[0] != meant:  # no row: this SQLite build lacks the setting
                raise StoreUnavailable(f"{self.path}: {name} stays {row[0]}", code="storage_unsuitable")
        present = schema_version(self.db)
        if present > SCHEMA_VERSION:
            self.newer = present
        elif present < SCHEMA_VERSION:
            self._migrate(now)

    def _migrate(self, now: int) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            migrate(self.db, now)
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:  # SQLite may have rolled it back already, and the cause must stay visible
                self.db.execute("ROLLBACK")
            raise

    def _check_anchor(self, accept_rollback: bool) -> None:
        if self.newer:
            return  # the meaning of its tables is unknown here
        lost = self.acknowledged_and_gone()
        if lost and not accept_rollback:
            damage = damaged_frame(Path(f"{os.path.realpath(self.path)}-wal"))
            cause = (
                f"not an older copy: {damage}" if damage else "an older copy was put in its place, or a file was lost"
            )
            raise StoreRolledBack(f"{self.path} lacks acknowledged data: {lost} ({cause})")
        self.accepts_loss = bool(lost)  # the anchor stays where it is until the loss is recorded
        if not lost and self.side.anchor() is None:
            with suppress(sqlite3.DatabaseError):  # a damaged page: there is nothing to compare with
                (last,) = self.db.execute("SELECT max(position) FROM events").fetchone()
                self.side.set_anchor(last or 0)

    def acknowledged_and_gone(self) -> str:
        """Return what was acknowledged according to the side file but is missing from the database; '' if nothing is
        missing."""
        anchor = self.side.anchor() or 0
        stream, version = anchor >> STREAM_SHIFT, anchor & LARGEST_VERSION
        if stream == 0:  # nothing was acknowledged yet, or only before events had places
            return ""
        places = (place_of(stream, 1), place_of(stream, LARGEST_VERSION))
        try:
            (last,) = self.db.execute(
                "SELECT max(position) FROM events WHERE position BETWEEN ? AND ?", places
            ).fetchone()
        except sqlite3.DatabaseError as error:
            if code_of(error) != "store_corrupt":
                raise
            return ""  # a damaged page closes the runs that it belongs to, and not the store: they say so when read
        if last is not None and last >= anchor:
            return ""
        present = 0 if last is None else last & LARGEST_VERSION
        named = self.db.execute("SELECT name, version FROM streams WHERE id = ?", (stream,)).fetchone()
        if named is None:
            return f"a run with {version} events is missing"
        if named[1] >= version:
            return ""  # the store had come that far: events were damaged since, and their run says so when read
        return f"{named[0]} ends at event {present}, but its event {version} was acknowledged"

    def require_usable(self) -> None:
        if self._poison:
            raise StorageFailed(f"{self.path} was closed after a storage error: {self._poison}")
        if os.getpid() != self._process:
            raise StoreUnavailable(
                f"{self.path} was opened by process {self._process}; a forked process must open its own handle",
                code="store_busy",
            )

    def require_in_place(self) -> None:
        """Refuse to acknowledge any further writes if the files are no longer at their paths."""
        missing = self.whereabouts.missing()
        if missing:
            self._poison = missing
            raise StorageFailed(
                f"the store was removed or replaced while it was open, so the last write was lost ({missing})",
                hint="restore the files, then start again: they will be compared with what was acknowledged",
            )

    def translated(self, error: sqlite3.Error | UnicodeDecodeError) -> RuntimeFault:
        """Translate an SQLite failure into a code that says what the user can do about it."""
        code = code_of(error)
        place = f"{self.path}: {error}"
        if code == "storage_failed":
            self._poison = str(error)
            return StorageFailed(place)
        return StoreCorrupt(place) if code == "store_corrupt" else StoreUnavailable(place, code=code)

    def close(self) -> None:
        with self.thread_lock:
            if os.getpid() == self._process:
                self.db.close()
            self.side.close()


class Reading:
    def __init__(self, access: Access) -> None:
        self._access = access

    def __enter__(self) -> sqlite3.Connection:
        self._access.thread_lock.acquire()
        try:
            self._access.require_usable()
        except BaseException:
            self._access.thread_lock.release()
            raise
        return self._access.db

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._access.thread_lock.release()
        if isinstance(error, FAILURES):
            raise self._access.translated(error) from error


class Writing:
    def __init__(self, access: Access) -> None:
        self._access = access

    def __enter__(self) -> sqlite3.Connection:
        access = self._access
        db = access.db
        access.thread_lock.acquire()
        try:
            access.require_usable()
            if access.newer:
                raise NewerSchema(f"{access.path} has schema {access.newer}; this version supports {SCHEMA_VERSION}")
            access.side.lock(access.timeout)
        except BaseException:
            access.thread_lock.release()
            raise
        try:
            access.cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._leave()
            raise access.translated(error) from error
        return db

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        access = self._access
        try:
            if error is None:
                access.cursor.execute("COMMIT")
                if access.acknowledging is not None:
                    stream, version, name, first = access.acknowledging
                    # After the commit, so that the anchor never names an event that could still be lost; under the
                    # lock, so that it never overwrites a later one.
                    access.side.acknowledge(stream, version, name, first=first)
        except sqlite3.Error as failed:
            error = failed
        try:
            if error is not None:
                # What this handle remembers may come from the transaction that is undone now.
                access.undone += 1
                if access.db.in_transaction:
                    access.db.execute("ROLLBACK")
        finally:
            access.acknowledging = None
            self._leave()
        if error is None:
            access.require_in_place()
        elif isinstance(error, FAILURES):
            raise access.translated(error) from error

    def _leave(self) -> None:
        self._access.side.unlock()
        self._access.thread_lock.release()


def empty_log(access: Access) -> None:
    """Copy the whole write-ahead log into the database and empty it. A concurrent reader may prevent this."""
    with access.reading as db:
        access.side.lock(access.timeout)
        try:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            access.side.unlock()
