"""The health of a SQLite store: all that can be wrong with it, a backup known to be good, and giving back space."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from workpacket.runtime.errors import RuntimeFault, StoreCorrupt, StoreUnavailable
from workpacket.runtime.stores.health import StoreProblem, contents_of
from workpacket.runtime.stores.sqlite.access import Access, empty_log
from workpacket.runtime.stores.sqlite.files import file_system_of, sync_folder
from workpacket.runtime.stores.sqlite.store import SQLiteStore

VOLATILE = frozenset({"tmpfs", "ramfs"})


def examine(store: SQLiteStore) -> tuple[StoreProblem, ...]:
    """Read everything and believe nothing. Slow on purpose; `doctor` and `runs verify` call it."""
    problems: list[StoreProblem] = []
    try:
        with store.access.reading as db:
            problems += _pages(db)
            problems += _anchor(store.access)
        problems += contents_of(store)
    except RuntimeFault as fault:
        problems.append(StoreProblem(fault.code, fault.message))
    return tuple(problems)


def _pages(db: sqlite3.Connection) -> list[StoreProblem]:
    lines = [str(line) for (line,) in db.execute("PRAGMA integrity_check(20)")]
    return [] if lines == ["ok"] else [StoreProblem("store_corrupt", line) for line in lines]


def _anchor(access: Access) -> list[StoreProblem]:
    lost = access.acknowledged_and_gone()
    return [StoreProblem("store_rolled_back", lost)] if lost else []


def suitability(path: Path) -> tuple[StoreProblem, ...]:
    """What a person should know about the place of the store, although it works."""
    kind = file_system_of(path.parent)
    if kind in VOLATILE:
        return (StoreProblem("storage_unsuitable", f"{path.parent} is on {kind}: the store is gone after a restart"),)
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
        finally:
            access.side.unlock()
    empty_log(access)
