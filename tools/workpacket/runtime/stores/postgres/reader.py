"""The reading half of the PostgreSQL store, and what a person should know about its server: whether acknowledged data
is durable, and the role of the login.

Each call is one statement on one connection; a long stream is read in pages by version, so that nothing is held between
them.

A NOTIFY from the server wakes followers, but polling is always sufficient, because a notification is only a hint. It is
lost with its connection, and a standby or a pooler has none; therefore every wait ends after a few seconds, and the
follower then checks for itself.

A reader can only select, and row-level security limits it to its own projects. A writer calls the functions that
append, hold leases and work on the queue; it has no right to change or delete an event. A keeper may also erase a
payload and remove a finished run. The administrator of the server creates the roles; this module grants them rights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal

import psycopg
from psycopg import sql

from workpacket.problem import Problem
from workpacket.runtime.errors import LogDamaged, RuntimeFault
from workpacket.runtime.records.events import Chain, Event, IndexEntry, entry_of, require_intact, require_payload
from workpacket.runtime.stores.contract import Head, Lease, StoreCheck
from workpacket.runtime.stores.postgres.access import Connection, PostgresAccess, address_of_url, is_lent
from workpacket.runtime.stores.postgres.migrations import SCHEMA_VERSION, prepare_schema, schema_version

FOLLOWED = 60.0  # seconds for which a stream is announced once a follower has registered
POLL = 0.5  # seconds between two reads without notifications
CONNECT_AGAIN = 5.0


class News:
    """One notification channel, on its own connection. `only` is the payload to react to; None means all. `poll` is the
    number of seconds after which to read again without a notification.
    """

    def __init__(self, access: PostgresAccess, channel: str, only: str | None = None, *, poll: float = POLL) -> None:
        self._access = access
        self._poll = poll
        self._listen = psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel))
        self._only = only
        self._connection: Connection | None = None
        self._next_try = 0.0

    @property
    def listening(self) -> bool:
        return self._connection is not None

    def wait(self, seconds: float) -> None:
        """Wait until there may be new data, but at most this many seconds."""
        if self._connection is None and time.monotonic() >= self._next_try and self._connect():
            return  # earlier announcements are not repeated, so read again
        if self._connection is None:
            time.sleep(min(seconds, self._poll))
            return
        try:
            for note in self._connection.notifies(timeout=seconds):
                if self._only in {None, note.payload}:
                    return
        except psycopg.Error:
            self.close()

    def _connect(self) -> bool:
        self._next_try = time.monotonic() + CONNECT_AGAIN
        try:
            self._connection = self._access.connect()
            if is_lent(self._connection):
                self.close()
                self._next_try = math.inf
            else:
                self._connection.execute(self._listen)
        except (RuntimeFault, psycopg.Error):
            self.close()
        return self._connection is not None

    def close(self) -> None:
        if self._connection is not None:
            # It may be broken already, which is often why it is closed.
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


class Follower:
    """Waits for a stream to grow. The server sends notifications only for streams that have followers."""

    def __init__(self, access: PostgresAccess, project: int, stream: str) -> None:
        self._access = access
        self._asked = (project, stream, FOLLOWED)
        self._news: News | None = None
        self._ask_again = 0.0

    def wait(self, seconds: float) -> None:
        if time.monotonic() >= self._ask_again:
            self._follow()
        if self._news is None:
            time.sleep(min(seconds, POLL))
        else:
            self._news.wait(seconds)

    def _follow(self) -> None:
        self._ask_again = time.monotonic() + FOLLOWED / 2
        try:
            (number,) = self._access.one("SELECT {s}.follow_1(%s, %s, %s)", self._asked)
        except RuntimeFault:  # a standby cannot record it
            return
        if self._news is None and number is not None:
            self._news = News(self._access, "workpacket_streams", str(number))

    def close(self) -> None:
        if self._news is not None:
            self._news.close()


# Few enough events to hold in memory, and so many that the way to the server hardly counts.
FETCH = 1000
_LAST = "\U0010ffff"

_EVENT = """SELECT v.version, v.type, v.type_version, v.occurred_at, v.recorded_at, v.actor, v.writer, v.writer_seq,
    v.key, v.fence, v.data, encode(v.payload, 'hex'), encode(v.previous, 'hex'), encode(v.hash, 'hex')"""
_PAGE = (
    _EVENT + ", s.version, encode(s.hash, 'hex') FROM {s}.streams s LEFT JOIN {s}.events v ON v.stream = s.id "
    "AND v.version > %s AND v.version <= %s WHERE s.project = %s AND s.name = %s AND s.state = 'live' "
    "ORDER BY v.version LIMIT %s"
)
LATEST = (
    _EVENT + ", n.version, n.key, n.status, s.version FROM {s}.streams s CROSS JOIN LATERAL ("
    "SELECT * FROM {s}.entries e WHERE e.stream = s.id AND e.kind = %s ORDER BY e.version DESC LIMIT 1) n "
    "LEFT JOIN {s}.events v ON v.stream = s.id AND v.version = n.version "
    "WHERE s.project = %s AND s.name = %s AND s.state = 'live'"
)
_NEWEST = (
    _EVENT + ", s.name, n.version, n.status FROM {s}.streams s "
    "JOIN {s}.entries n ON n.stream = s.id AND n.kind = %s AND n.key = '' "
    "LEFT JOIN {s}.events v ON v.stream = s.id AND v.version = n.version "
    "WHERE s.project = %s AND s.name >= %s AND s.name < %s AND s.state = 'live' ORDER BY s.name"
)
_HEADS = (
    "SELECT name, version, encode(hash, 'hex'), fence FROM {s}.streams WHERE project = %s AND name >= %s AND name < %s "
    "AND version > 0 "
)
_LEASE = (
    "SELECT name, token, holder, extract(epoch FROM ends - {s}.moment())::float8 FROM {s}.streams "
    "WHERE project = %s AND ends > {s}.moment()"
)


class ReadablePostgres:
    def __init__(self, url: str, *, patience: float = 30.0, connections: int = 8) -> None:
        self.access = PostgresAccess(address_of_url(url), patience=patience, connections=connections)
        try:
            self.access.open()
            prepare_schema(self.access)
            (self.project,) = self.access.one("SELECT {s}.open_project_1(%s)", (self.access.address.project,))
        except BaseException:
            self.access.close()
            raise

    @property
    def identity(self) -> str:
        """Return the identity of the server and project: it is the same for all clients, regardless of the address they
        use, and only different projects can have streams with the same name.
        """
        return f"server {self.access.address.project}"

    # ---- streams --------------------------------------------------------------------------------------------------

    def head(self, stream: str) -> Head | None:
        found = self.access.row(
            "SELECT version, encode(hash, 'hex'), fence FROM {s}.streams "
            "WHERE project = %s AND name = %s AND state = 'live' AND version > 0",
            (self.project, stream),
        )
        return None if found is None else Head(stream, *found)

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        chain = Chain(stream)
        if after > 0:
            for event in self._page(stream, after - 1, after)[0]:
                chain = Chain(stream, after, require_intact(event).hash)
            if chain.version < after:
                return
        while True:
            end = chain.version + FETCH if until is None else min(until, chain.version + FETCH)
            events, head, head_hash = self._page(stream, chain.version, end)
            last = head if until is None else min(head, until)
            if last <= chain.version:
                break
            if not events:
                raise LogDamaged(stream, chain.version + 1, "the record is missing")
            for event in events:
                yield chain.check(event)
            if chain.version >= last:
                break
        if head and chain.version == head and chain.hash != head_hash:
            raise LogDamaged(stream, head, "the stream does not end at its head")

    def _page(self, stream: str, after: int, until: int) -> tuple[list[Event], int, str]:
        """Return events of the stream, and its head at that time; 0 if the stream does not exist."""
        rows = self.access.rows(_PAGE, (after, until, self.project, stream, FETCH))
        events = [Event(stream, *row[:14]) for row in rows if row[0] is not None]
        return events, *(rows[0][14:] if rows else (0, ""))

    def slice(self, stream: str, version: int, count: int) -> tuple[Event, ...]:
        return tuple(require_intact(event) for event in self._page(stream, version - 1, version - 1 + count)[0])

    def payload(self, event: Event) -> bytes | None:
        if event.payload is None:
            return None
        found = self.access.row(
            "SELECT p.bytes FROM {s}.streams s JOIN {s}.payloads p ON p.stream = s.id AND p.digest = %b "
            "WHERE s.project = %s AND s.name = %s",
            (bytes.fromhex(event.payload), self.project, event.stream),
        )
        return require_payload(event, found)

    def heads(
        self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None, removed: bool = False
    ) -> tuple[Head, ...]:
        rows = self.access.rows(
            _HEADS + ("AND state <> 'arriving'" if removed else "AND state = 'live'")
            + f" ORDER BY name {'DESC' if newest_first else 'ASC'} LIMIT %s",
            (self.project, prefix, prefix + _LAST, limit),
        )  # fmt: skip
        return tuple(Head(*row) for row in rows)

    def follower(self, stream: str) -> Follower:
        """Return a follower that waits for the stream to grow."""
        return Follower(self.access, self.project, stream)

    # ---- index ---------------------------------------------------------------------------------------------------

    def entries(self, kind: str, *, stream: str | None = None, status: str | None = None) -> tuple[IndexEntry, ...]:
        rows = self.access.rows(
            "SELECT e.kind, s.name, e.key, e.version, e.status "
            "FROM {s}.entries e JOIN {s}.streams s ON s.id = e.stream "
            "WHERE e.project = %(project)s AND e.kind = %(kind)s AND s.state = 'live' "
            "AND (%(stream)s::text IS NULL OR s.name = %(stream)s) "
            "AND (%(status)s::text IS NULL OR e.status = %(status)s) "
            "ORDER BY s.name, e.version",
            {"project": self.project, "kind": kind, "stream": stream, "status": status},
        )
        return tuple(IndexEntry(*row) for row in rows)

    def index_kinds(self) -> tuple[str, ...]:
        rows = self.access.rows("SELECT DISTINCT kind FROM {s}.entries WHERE project = %s", (self.project,))
        return tuple(kind for (kind,) in rows)

    def latest(self, kind: str, stream: str) -> Event | None:
        found = self.access.row(LATEST, (kind, self.project, stream))
        if found is None:
            return None
        version, key, status, head = found[14:]
        event = None if found[0] is None else require_intact(Event(stream, *found[:14]))
        if event is None or entry_of(event) != IndexEntry(kind, stream, key, version, status) or version > head:
            raise LogDamaged(stream, version, f"the index for {kind} points to a different event")
        return event

    def newest(self, kind: str, prefix: str = "") -> tuple[tuple[str, Event | None], ...]:
        rows = self.access.rows(_NEWEST, (kind, self.project, prefix, prefix + _LAST))
        return tuple(_newest_of(kind, row) for row in rows)

    # ---- leases ---------------------------------------------------------------------------------------------------

    def lease(self, stream: str) -> Lease | None:
        found = self.access.row(_LEASE + " AND name = %s", (self.project, stream))
        return None if found is None else Lease(*found)

    def leases(self) -> tuple[Lease, ...]:
        return tuple(Lease(*row) for row in self.access.rows(_LEASE + " ORDER BY name", (self.project,)))

    def close(self) -> None:
        self.access.close()


def _newest_of(kind: str, row: Sequence[Any]) -> tuple[str, Event | None]:
    """Return the event that an index entry points to; None if the event is missing or differs from what was indexed."""
    name, version, status = row[14:]
    try:
        event = require_intact(Event(name, *row[:14]))
    except (LogDamaged, TypeError):
        return name, None
    return name, event if entry_of(event) == IndexEntry(kind, name, "", version, status) else None


Right = Literal["reader", "writer", "keeper"]
LEVELS: dict[Right, int] = {"reader": 1, "writer": 2, "keeper": 3}

_FUNCTIONS: dict[Right, tuple[str, ...]] = {
    "reader": ("moment", "my_projects", "open_project_1", "follow_1"),
    "writer": ("append_1", "append_last_1", "acquire_1", "renew_1", "release_1", "arrive_1", "bring_1",
               "bring_payloads_1", "arrived_1", "reindex_1", "offer_1", "refresh_1", "claim_1", "settle_1", "revive_1"),
    "keeper": ("erase_1", "remove_1"),
}  # fmt: skip
_READABLE = ("schema_migrations", "projects", "streams", "events", "payloads", "entries", "jobs")


def let_in(access: PostgresAccess, role: str, right: Right) -> None:
    """Grant an existing role a right in the project at this address; requires the owner of the schema."""
    access.doing(lambda connection: _let_in(access, connection, role, right))


def shut_out(access: PostgresAccess, role: str) -> bool:
    """Revoke the right; return whether there was one. The role can still call its functions, which refuse it."""
    gone = access.row(
        "DELETE FROM {s}.members m USING {s}.projects p WHERE p.id = m.project AND p.name = %s AND m.role = %s "
        "RETURNING m.role",
        (access.address.project, role),
    )
    return gone is not None


def _let_in(access: PostgresAccess, connection: Connection, role: str, right: Right) -> None:
    schema, who = sql.Identifier(access.address.schema), sql.Identifier(role)
    with connection.transaction():
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, who))
        for table in _READABLE:
            connection.execute(sql.SQL("GRANT SELECT ON {}.{} TO {}").format(schema, sql.Identifier(table), who))
        for level, functions in _FUNCTIONS.items():
            if LEVELS[level] <= LEVELS[right]:
                for name in functions:
                    grant = sql.SQL("GRANT EXECUTE ON FUNCTION {}.{} TO {}")
                    connection.execute(grant.format(schema, sql.Identifier(name), who))
        (project,) = connection.execute(
            access.statement("SELECT {s}.open_project_1(%s)"), (access.address.project,)
        ).fetchone() or (0,)
        connection.execute(
            access.statement(
                "INSERT INTO {s}.members VALUES (%s, %s, %s) ON CONFLICT (project, role) DO UPDATE "
                "SET level = excluded.level"
            ),
            (project, role, LEVELS[right]),
        )


OLDEST = 15  # the oldest major version of the server that the tests cover
SKEW = 1.0  # seconds by which the clocks may differ before a warning


# Acknowledged data is on disk only with these settings, each with its safe values.
_DURABLE = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
}


def examine_server(store: ReadablePostgres) -> Iterator[StoreCheck]:
    yield _version(store)
    yield _durability(store)
    yield _isolation(store)
    yield _clock(store)
    yield _rights(store)
    yield StoreCheck("tables", (), f"schema version {schema_version(store.access)} of {SCHEMA_VERSION}")


def _setting(store: ReadablePostgres, name: str) -> str:
    (value,) = store.access.one("SELECT current_setting(%s)", (name,))
    return str(value)


def _version(store: ReadablePostgres) -> StoreCheck:
    number, said = int(_setting(store, "server_version_num")), _setting(store, "server_version")
    found = f"PostgreSQL {said}"
    if number < OLDEST * 10_000:
        return StoreCheck("server", (_unsuitable(f"{found} is older than {OLDEST}"),), found)
    (standby,) = store.access.one("SELECT pg_is_in_recovery()")
    return StoreCheck("server", (), f"{found}, a standby: it is read-only" if standby else found)


def _durability(store: ReadablePostgres) -> StoreCheck:
    values = {name: _setting(store, name) for name in _DURABLE}
    problems = tuple(
        _unsuitable(f"{name} is {value}: a crash can lose or damage acknowledged data")
        for name, value in values.items()
        if value not in _DURABLE[name]
    )
    return StoreCheck("durability", problems, ", ".join(f"{name} = {value}" for name, value in values.items()))


def _isolation(store: ReadablePostgres) -> StoreCheck:
    level = _setting(store, "default_transaction_isolation")
    worse = "" if level == "read committed" else ": safe, but writers of the same run force each other to retry"
    return StoreCheck("isolation", (), level + worse)


def _clock(store: ReadablePostgres) -> StoreCheck:
    """Compare the clocks, with a precision of half the round-trip time."""
    before = time.time()
    (at_server,) = store.access.one("SELECT extract(epoch FROM clock_timestamp())::float8")
    after = time.time()
    ahead = float(at_server) - (before + after) / 2
    if abs(ahead) <= SKEW + (after - before) / 2:
        return StoreCheck("clock", (), "as here")
    side = "ahead of" if ahead > 0 else "behind"
    return StoreCheck(
        "clock", (), f"{abs(ahead):.0f} s {side} this machine; leases use the server's clock, so they remain valid"
    )


def _rights(store: ReadablePostgres) -> StoreCheck:
    schema = store.access.address.schema
    user, owner, writes, keeps = store.access.one(
        "SELECT session_user::text, pg_has_role(session_user, n.nspowner, 'MEMBER'), "
        "has_function_privilege(a.oid, 'EXECUTE'), has_function_privilege(e.oid, 'EXECUTE') "
        "FROM pg_namespace n JOIN pg_proc a ON a.pronamespace = n.oid AND a.proname = 'append_1' "
        "JOIN pg_proc e ON e.pronamespace = n.oid AND e.proname = 'erase_1' WHERE n.nspname = %s",
        (schema,),
    )
    level = "keeper" if keeps else "writer" if writes else "reader"
    said = f"{user} has the rights of a {level} in schema {schema}"
    if owner:
        said = f"{user} owns schema {schema}: programs should connect as a writer"
    return StoreCheck("rights", (), said)


def _unsuitable(message: str) -> Problem:
    return Problem("storage_unsuitable", message)
