"""What a writer knows of its stream without reading it again.

Between two records of one run nearly always nobody else has written. Asked inside the write transaction, SQLite tells
for the price of no page whether another connection committed since (`data_version`), and this handle knows whether a
transaction of its own was undone. If neither, the row of the stream and its lease are what was written last; SQLite too
would answer from the pages it holds in memory.
"""

from __future__ import annotations

from typing import NamedTuple

from workpacket.runtime.stores.sqlite.access import Access
from workpacket.runtime.stores.sqlite.rows import LeaseRow, StreamRow


class Known(NamedTuple):
    """One stream and its lease, as they are if the stamp is still the same."""

    row: StreamRow
    lease: LeaseRow | None
    stamp: tuple[int, int]


class Remembered:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._known: Known | None = None

    def stamp(self) -> tuple[int, int]:
        """Asked once in a write transaction: while it lasts, nobody else commits."""
        (version,) = self._access.db.execute("PRAGMA data_version").fetchone()
        return version, self._access.undone

    def about(self, stream: str, stamp: tuple[int, int]) -> Known | None:
        known = self._known
        return known if known is not None and known.row.name == stream and known.stamp == stamp else None

    def put(self, row: StreamRow, lease: LeaseRow | None, stamp: tuple[int, int]) -> None:
        self._known = Known(row, lease, stamp)

    def forget(self) -> None:
        self._known = None
