"""The store on a PostgreSQL server: for any number of machines.

An append is one statement, one round trip, one transaction: the events are hashed here on the last head that this
process saw, and the `append_1` function accepts them if that is still the head. If not, it returns the head, and the
events are hashed again; with a single writer, that happens once per run. Only the server's clock counts.

Arrays are passed as text in PostgreSQL's syntax, because a driver passes strings on at no cost. An append has eight
arrays, mostly of one value. Adapting them one by one takes longer than the rest of the call, and a driver that inspects
the values prepares a new statement for each mixture of nulls and strings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, LiteralString, NamedTuple

from workpacket.runtime.errors import LeaseLost, RuntimeFault, StoreUnavailable, VersionConflict
from workpacket.runtime.holders import random_id
from workpacket.runtime.records.events import GENESIS, Event, entry_of, verified
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import (
    Append,
    Appended,
    ClaimedJob,
    Lease,
    OfferedJob,
    QueueItem,
    StoreCheck,
    events_to_store,
    lease_held,
    name_was_used,
    require_fence,
    require_next_in_sequence,
    require_same_as_stored,
    require_version,
)
from workpacket.runtime.stores.postgres.access import Connection, Row
from workpacket.runtime.stores.postgres.reader import News, ReadablePostgres


def text_array(values: Iterable[str | None]) -> str:
    """Return the array as text; its values are strings, or anything whose text form PostgreSQL can read."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def number_array(values: Iterable[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


_APPEND: LiteralString = (
    "SELECT * FROM {s}.append_1(%s, %s, %s, %b, %s, %s, %s, %s, %s, %s, %s, %s, "
    "%s::text[], %s::int[], %s::text[], %s::text[], %b, %s::int[], %s::text[], %s::text[], %s::text[], %s::text[])"
)
_APPEND_LAST: LiteralString = _APPEND.replace("append_1(", "append_last_1(")[:-1] + ", %s, %s, %s, %s)"
_BRING: LiteralString = (
    "SELECT {s}.bring_1(%s, %s, %s::bigint[], %s::text[], %s::int[], %s::bigint[], %s::bigint[], %s::text[], "
    "%s::text[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %b::bytea[], %b::bytea[], %b::bytea[], "
    "%s::text[], %s::text[], %s::text[])"
)
_AT_ONCE = 500  # events or payloads per call of a restore
_TRIES = 100  # how often an append may find that another writer was faster
_REMEMBERED = 4096  # streams


class _Answer(NamedTuple):
    outcome: str
    version: int
    hash: bytes
    number: int
    seconds: float


class QueueingPostgres(ReadablePostgres):
    def offer_job(self, queue: str, job: OfferedJob) -> None:
        self.access.require_writable()
        self.access.one("SELECT {s}.offer_1(%s, %s, %s, %s, %s, %s, %s, %s, %s)", (self.project, queue, *job))

    def claim_job(self, queue: str, holder: str, seconds: float, finished: tuple[int, int] | None) -> ClaimedJob | None:
        row = self.access.one(
            "SELECT * FROM {s}.claim_1(%s, %s, %s, %s, %s, %s)",
            (self.project, queue, holder, seconds, *(finished or (None, None))),
        )
        return claimed(row)

    def settle_job(
        self, job: int, token: int, state: str, delay: float, reason: str, detail: str, *, tried: bool
    ) -> bool:
        (done,) = self.access.one(
            "SELECT {s}.settle_1(%s, %s, %s, %s, %s, %s, %s, %s)",
            (self.project, job, token, state, delay, reason, detail, not tried),
        )
        return bool(done)

    def refresh_jobs(self, queue: str) -> None:
        self.access.one("SELECT {s}.refresh_1(%s, %s)", (self.project, queue))

    def revive_job(self, job: int) -> bool:
        return bool(self.access.one("SELECT {s}.revive_1(%s, %s)", (self.project, job))[0])

    def jobs(self, queue: str) -> tuple[QueueItem, ...]:
        """Return the jobs in the order in which they were offered."""
        rows = self.access.rows(
            "SELECT id, stream, state, priority, tries, reason, detail FROM {s}.jobs "
            "WHERE project = %s AND queue = %s ORDER BY id",
            (self.project, queue),
        )
        return tuple(QueueItem(*row) for row in rows)

    def job_news(self, queue: str) -> News:
        return News(self.access, "workpacket_jobs", f"{self.project} {queue}", poll=math.inf)


def claimed(row: Row) -> ClaimedJob | None:
    """Return the job in a row; the row consists of nulls if there was no job."""
    return None if row[0] is None else ClaimedJob(*row)


class PostgresStore(QueueingPostgres):
    """The writing half; `ReadablePostgres` is the reading half, and `QueueingPostgres` is the queue."""

    def __init__(self, url: str, *, patience: float = 30.0, connections: int = 8) -> None:
        self._heads: dict[str, tuple[int, str]] = {}
        super().__init__(url, patience=patience, connections=connections)

    # ---- appending -----------------------------------------------------------------------------------------------

    def append(self, request: Append) -> Appended:
        return self._append(request, _APPEND, ())[0]

    def append_last(
        self, request: Append, job: int, queue: str, holder: str, seconds: float | None
    ) -> tuple[Appended, ClaimedJob | None]:
        """Return the result of an append that finishes a job, and the next job, claimed in the same call."""
        appended, row = self._append(request, _APPEND_LAST, (job, queue, holder, seconds))
        return appended, claimed(row)

    # ---- health --------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> str:
        return self.access.address.shown

    def checks(self) -> Iterator[StoreCheck]:
        from workpacket.runtime.stores.postgres.reader import examine_server

        return examine_server(self)

    # ---- appending, in parts -------------------------------------------------------------------------------------

    def _append(self, request: Append, statement: LiteralString, also: tuple[object, ...]) -> tuple[Appended, Row]:
        self.access.require_writable()
        # Assumed to be the head of the stream, so that an append is one call. If another writer was faster, the
        # server says where the stream ends now, and the events are sealed again.
        version, previous = self._heads.get(request.stream, (0, GENESIS))
        for _ in range(_TRIES):
            new = events_to_store(request, version, previous)
            row = self.access.one(statement, (*self._asked(request, new, version, previous), *also))
            answer = _Answer(*row[:5])
            if answer.outcome == "stored":
                self._remember(request.stream, new[-1].version, new[-1].hash)
                return Appended(new, duplicate=False), row[5:]
            if answer.outcome in {"key", "repeated"}:
                return Appended(self._stored_before(request, answer), duplicate=True), row[5:]
            if answer.outcome == "moved":
                version, previous = answer.version, answer.hash.hex()
            elif answer.outcome != "again":
                self._heads.pop(request.stream, None)
                self._refuse(request, answer)
        raise StoreUnavailable(
            f"{request.stream}: another writer wrote first, {_TRIES} times in a row", code="store_busy"
        )

    def _asked(self, request: Append, new: Sequence[Event], version: int, previous: str) -> tuple[object, ...]:
        entries = [entry_of(event) for event in new]
        return (
            self.project,
            request.stream,
            version,
            bytes.fromhex(previous),
            request.writer,
            request.writer_seq,
            request.key,
            request.fence,
            request.expected_version,
            request.actor,
            request.occurred_at,
            request.recorded_at,
            text_array(event.type for event in new),
            number_array(event.type_version for event in new),
            text_array(event.data for event in new),
            text_array(event.payload for event in new),
            b"".join([event.payload or b"" for event in request.events]),
            number_array(len(event.payload or b"") for event in request.events),
            text_array(event.hash for event in new),
            text_array(entry and entry.kind for entry in entries),
            text_array(entry and entry.key for entry in entries),
            text_array(entry and entry.status for entry in entries),
        )

    def _remember(self, stream: str, version: int, head: str) -> None:
        if len(self._heads) >= _REMEMBERED:
            # A forgotten head costs one more call, never correctness.
            self._heads.clear()
        self._heads[stream] = version, head

    def _stored_before(self, request: Append, answer: _Answer) -> tuple[Event, ...]:
        stored = self.slice(request.stream, answer.version, len(request.events)) if answer.version else ()
        require_same_as_stored(request, stored, by_key=answer.outcome == "key")
        return stored

    @staticmethod
    def _refuse(request: Append, answer: _Answer) -> None:
        """Raise the refusal according to the rules that all stores share."""
        if answer.outcome == "removed":
            raise name_was_used(request.stream)
        if answer.outcome == "gap":
            require_next_in_sequence(request, answer.number)
        if answer.outcome == "fence":
            require_fence(request, answer.number, answer.seconds, answer.version)
        if answer.outcome == "version":
            require_version(request, answer.version)
        raise RuntimeFault(f"{request.stream}: the server answered {answer.outcome!r}", code="store_corrupt")

    # ---- payloads and index --------------------------------------------------------------------------------------

    def erase(self, digest: str) -> bool:
        self.access.require_writable()
        asked = (self.project, bytes.fromhex(digest), random_id())
        return bool(self.access.one("SELECT {s}.erase_1(%s, %b, %s)", asked)[0])

    def rebuild_index(self) -> None:
        self.access.require_writable()
        for head in self.heads():
            while not self._reindexed(head.stream):
                pass  # another writer appended in between

    def _reindexed(self, stream: str) -> bool:
        events = list(self.read(stream))
        found = {(e.kind, e.key): e for event in events if (e := entry_of(event)) is not None}
        columns = (
            [entry.kind for entry in found.values()],
            [entry.key for entry in found.values()],
            [entry.version for entry in found.values()],
            [entry.status for entry in found.values()],
        )
        if not events:
            return True  # removed in between
        (done,) = self.access.one(
            "SELECT {s}.reindex_1(%s, %s, %s, %s::text[], %s::text[], %s::bigint[], %s::text[])",
            (self.project, stream, events[-1].version, *columns),
        )
        return bool(done)

    # ---- leases --------------------------------------------------------------------------------------------------

    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        self.access.require_writable()
        parameters = (self.project, stream, holder, seconds, over, random_id())
        while True:
            outcome, token, present, left = self.access.one(
                "SELECT * FROM {s}.acquire_1(%s, %s, %s, %s, %s, %s)", parameters
            )
            if outcome != "again":
                break
        if outcome == "held":
            raise lease_held(stream, present, token, left)
        return Lease(stream, token, holder, seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        self.access.require_writable()
        (kept,) = self.access.one(
            "SELECT {s}.renew_1(%s, %s, %s, %s)", (self.project, lease.stream, lease.token, seconds)
        )
        if not kept:
            raise LeaseLost(f"lease {lease.token} of {lease.stream} is no longer valid")
        return lease._replace(seconds_left=seconds)

    def release(self, lease: Lease) -> None:
        self.access.require_writable()
        self.access.one("SELECT {s}.release_1(%s, %s, %s)", (self.project, lease.stream, lease.token))

    # ---- whole streams -------------------------------------------------------------------------------------------

    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        self.access.require_writable()
        taken = list(events)
        stream = taken[0].stream
        checked = list(verified(stream, taken))
        addressed = {address_of(payload): payload for payload in payloads}
        request = random_id()
        self.access.doing(lambda connection: self._restore(connection, request, checked, addressed))

    def _restore(
        self, connection: Connection, request: str, events: Sequence[Event], payloads: dict[str, bytes]
    ) -> None:
        stream = events[0].stream
        statement = self.access.statement
        with connection.transaction():
            (place,) = connection.execute(
                statement("SELECT {s}.arrive_1(%s, %s, %s)"), (self.project, stream, request)
            ).fetchone() or (None,)
            if place is None:
                raise VersionConflict(f"{stream} already exists; a stream must be imported as a whole")
            if place == 0:
                return  # done before; only the answer was lost
            for first in range(0, len(events), _AT_ONCE):
                connection.execute(statement(_BRING), _columns(self.project, place, events[first : first + _AT_ONCE]))
            addresses = list(payloads)
            for first in range(0, len(addresses), _AT_ONCE):
                some = addresses[first : first + _AT_ONCE]
                connection.execute(
                    statement("SELECT {s}.bring_payloads_1(%s, %s, %b::bytea[], %b::bytea[])"),
                    (self.project, place, [bytes.fromhex(name) for name in some], [payloads[name] for name in some]),
                )
            connection.execute(statement("SELECT {s}.arrived_1(%s, %s)"), (self.project, place))

    def remove(self, stream: str, head: str) -> None:
        self.access.require_writable()
        asked = (self.project, stream, bytes.fromhex(head), random_id())
        (done,) = self.access.one("SELECT {s}.remove_1(%s, %s, %b, %s)", asked)
        self._heads.pop(stream, None)
        if not done:
            raise VersionConflict(f"{stream} is not at the expected head")


def _digest(address: str | None) -> bytes | None:
    return None if address is None else bytes.fromhex(address)


def _columns(project: int, place: int, events: Sequence[Event]) -> tuple[Any, ...]:
    """Return the events as arrays, one per column."""
    entries = [entry_of(event) for event in events]
    return (
        project,
        place,
        [event.version for event in events],
        [event.type for event in events],
        [event.type_version for event in events],
        [event.occurred_at for event in events],
        [event.recorded_at for event in events],
        [event.actor for event in events],
        [event.writer for event in events],
        [event.writer_seq for event in events],
        [event.key for event in events],
        [event.fence for event in events],
        [event.data for event in events],
        [_digest(event.payload) for event in events],
        [bytes.fromhex(event.previous) for event in events],
        [bytes.fromhex(event.hash) for event in events],
        [entry and entry.kind for entry in entries],
        [entry and entry.key for entry in entries],
        [entry and entry.status for entry in entries],
    )
