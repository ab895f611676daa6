"""The health of a SQLite store: all that can be wrong with it, a backup known to be good, and giving back space."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workpacket.runtime.errors import LogDamaged, RuntimeFault, StoreCorrupt, StoreUnavailable
from workpacket.runtime.events import Event
from workpacket.runtime.index import IndexEntry, index_of
from workpacket.runtime.sqlite_access import Access
from workpacket.runtime.sqlite_files import file_system_of, sync_folder
from workpacket.runtime.sqlite_store import SQLiteStore

VOLATILE = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; `code` is a stop reason."""

    code: str
    message: str


def examine(store: SQLiteStore) -> tuple[Problem, ...]:
    """Read everything and believe nothing. Slow on purpose; `doctor` and `runs verify` call it."""
    problems: list[Problem] = []
    try:
        with store.access.reading as db:
            problems += _pages(db)
            problems += _anchor(store.access)
        kept: list[Event] = []
        for head in store.heads():
            problems += _stream(store, head.stream, kept)
        problems += _index(store, kept)
    except RuntimeFault as fault:
        problems.append(Problem(fault.code, fault.message))
    return tuple(problems)


def _pages(db: sqlite3.Connection) -> list[Problem]:
    lines = [str(line) for (line,) in db.execute("PRAGMA integrity_check(20)")]
    return [] if lines == ["ok"] else [Problem("store_corrupt", line) for line in lines]


def _anchor(access: Access) -> list[Problem]:
    lost = access.acknowledged_and_gone()
    return [Problem("store_rolled_back", lost)] if lost else []


def _stream(store: SQLiteStore, stream: str, kept: list[Event]) -> list[Problem]:
    problems: list[Problem] = []
    try:
        for event in store.read(stream):
            kept.append(event)
            problems += _payload(store, event)
    except RuntimeFault as fault:
        problems.append(Problem(fault.code, fault.message))
    return problems


def _payload(store: SQLiteStore, event: Event) -> list[Problem]:
    try:
        store.payload(event)
    except LogDamaged as damage:
        return [Problem(damage.code, damage.message)]
    except RuntimeFault:
        return []  # erased on purpose
    return []


def _index(store: SQLiteStore, events: list[Event]) -> list[Problem]:
    wanted: set[IndexEntry] = set(index_of(events).values())
    kinds = {entry.kind for entry in wanted} | set(store.index_kinds())
    present = {entry for kind in kinds for entry in store.entries(kind)}
    if wanted == present:
        return []
    return [Problem("store_corrupt", f"the index differs from the log in {len(wanted ^ present)} entries; rebuild it")]


def suitability(path: Path) -> tuple[Problem, ...]:
    """What a person should know about the place of the store, although it works."""
    kind = file_system_of(path.parent)
    if kind in VOLATILE:
        return (Problem("storage_unsuitable", f"{path.parent} is on {kind}: the store is gone after a restart"),)
    return ()


def back_up(store: SQLiteStore, target: Path) -> None:
    """A copy made while others may write, examined before it gets its name."""
    if target.exists():
        raise StoreUnavailable(f"{target} exists already", code="store_read_only")
    partial = target.with_name(target.name + ".partial")
    copy = sqlite3.connect(partial)
    try:
        with store.access.reading as db:
            db.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
    _require_good(partial)
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    partial.rename(target)
    sync_folder(target.parent)


def raw_dump(store: SQLiteStore) -> Iterator[str]:
    """The whole database as SQL text, interpreting nothing: also from a store that a newer version wrote."""
    with store.access.reading as db:
        yield from db.iterdump()


def _require_good(path: Path) -> None:
    copy = SQLiteStore(path)
    try:
        problems = examine(copy)
    finally:
        copy.close()
    for name in (path.name + ".lock", path.name + "-wal", path.name + "-shm"):
        path.with_name(name).unlink(missing_ok=True)
    if problems:
        raise StoreCorrupt(f"the backup is not good: {problems[0].message}")


def give_back_space(store: SQLiteStore) -> None:
    """Make the file as small as what it holds, after retention."""
    access = store.access
    with access.reading as db:
        access.side.lock(access.timeout)
        try:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            access.side.unlock()
