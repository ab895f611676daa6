"""An older store is accepted: each run is told what it lost, so that nobody takes it for never done.

The side file knows how far each stream had come (`SideFile.reached`). A run that is there and had come further gets the
event `rolled_back {had, has}`. Of a run that is gone as a whole only the hash of its name is known; it is kept in the
table `lost_streams`, and a run that begins under that name is told (`lost`). All of it is one transaction.

Streams that are not runs hold no effects and are left as they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from workpacket.runtime.errors import StoreCorrupt
from workpacket.runtime.ids import random_id
from workpacket.runtime.records.events import NewEvent
from workpacket.runtime.records.jcs import jcs_text
from workpacket.runtime.stores.admission import events_to_store
from workpacket.runtime.stores.contract import Append
from workpacket.runtime.stores.sqlite.files import Reached, name_digest
from workpacket.runtime.stores.sqlite.rows import (
    LARGEST_VERSION,
    STREAM_COLUMNS,
    STREAM_SHIFT,
    StreamRow,
    checked_stream,
    place_of,
    row_crc,
)

if TYPE_CHECKING:
    from workpacket.runtime.stores.sqlite.store import SQLiteStore

ACTOR = "workpacket"
_LOST = "CREATE TABLE IF NOT EXISTS lost_streams(name BLOB PRIMARY KEY, had INTEGER NOT NULL, crc INTEGER NOT NULL)"


class Loss(NamedTuple):
    """`had` is None where nobody knows how far the run had come: the side file is of an older version."""

    row: StreamRow
    had: int | None


def accept_loss(store: SQLiteStore, now: int) -> tuple[Loss, ...]:
    """Write down what was lost, and make the present end of the store what was acknowledged."""
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
        _keep_lost_names(db, rows, reached)
        (last,) = db.execute("SELECT max(position) FROM events").fetchone()
        ends = [checked_stream(columns) for columns in db.execute(f"SELECT {STREAM_COLUMNS} FROM streams").fetchall()]
    side.forget_streams()
    side.set_anchor(0)  # what it named is written down, and is not to be kept as how far a stream has come
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
        # Where they do not agree the stream is damaged, which is no rollback.
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
    """How many events a stream of this name had that was lost as a whole; 0 if there was none."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'lost_streams'").fetchone() is None:
        return 0
    name = name_digest(stream)
    found = db.execute("SELECT had, crc FROM lost_streams WHERE name = ?", (name,)).fetchone()
    if found is None:
        return 0
    if row_crc(name.hex(), found[0]) != found[1]:
        raise StoreCorrupt("a row of the table lost_streams is not what was written")
    return int(found[0])
