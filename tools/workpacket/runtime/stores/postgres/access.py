"""Connections to one PostgreSQL server: a pool, statements that are repeated when that is safe, and the package's error
codes.

Every call is one statement in autocommit mode on a connection that returns to the pool before the call does: nothing is
held while user code runs. A transaction that the server itself aborted (serialization, deadlock) is repeated
immediately. When the connection is lost, it is unknown whether the statement was committed. The statement can be
repeated, like every statement here: appends are recognized by their sequence number, leases by their request.

The URL of a PostgreSQL store: libpq's own syntax, with two more parameters.

    postgresql://writer@db1,db2/runs?sslmode=verify-full&workpacket_project=alpha&workpacket_schema=workpacket

Everything else is standard libpq: several hosts, TLS, a password file. A writer asks for the one server that accepts
writes; a URL that asks for a standby gives a read-only store. Settings that limit the wait for a dead connection are
added unless the URL has its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, LiteralString, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolTimeout

from workpacket.runtime.errors import NewerSchema, RuntimeFault, StorageFailed, StoreCorrupt, StoreUnavailable
from workpacket.value import Value

_READING = frozenset({"any", "read-only", "standby", "prefer-standby"})
_UNLESS_SAID = {
    "target_session_attrs": "read-write",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "workpacket",
    "client_encoding": "UTF8",
}


class Address(Value):
    """The location of a store. `conninfo` may contain a password and is never shown; messages contain `shown`."""

    conninfo: str
    schema: str
    project: str
    shown: str
    read_only: bool


def address_of_url(url: str) -> Address:
    try:
        parts = urlsplit(url)
        words = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise StoreUnavailable("the store's URL cannot be read", code="storage_unsuitable") from None
    schema = words.pop("workpacket_schema", "workpacket")
    project = words.pop("workpacket_project", "default")
    if not schema or not project or "\0" in schema + project or len(schema.encode()) > 63:
        raise StoreUnavailable("the store's schema or project is not a valid name", code="storage_unsuitable")
    wants = words.get("target_session_attrs", "read-write")
    words = {**_UNLESS_SAID, **words}
    place = parts.netloc.rpartition("@")[2] or words.get("host", "")
    return Address(
        urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(words, quote_via=quote), "")),
        schema,
        project,
        f"postgresql://{place}{parts.path} (schema {schema}, project {project})",
        wants in _READING,
    )


T = TypeVar("T")
Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]

# A check is also violated where the process of the server lacks a partition that another one has just made.
BROKEN_OFF = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation, errors.CheckViolation)
LOST = (psycopg.OperationalError, psycopg.InterfaceError, errors.AdminShutdown, PoolTimeout)
_FULL = (errors.DiskFull, errors.OutOfMemory, errors.TooManyConnections)
_NOT_ALLOWED = (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)
_OTHER_VERSION = (errors.UndefinedFunction, errors.UndefinedTable, errors.InvalidSchemaName)
_UNAVAILABLE: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (_NOT_ALLOWED, "store_read_only", "ask the store's owner for permission"),
    ((errors.DiskFull,), "disk_full", ""),
    (LOST, "store_busy", "make sure that the server is running and accepts this user"),
    ((psycopg.DataError,), "storage_unsuitable", ""),
)
_NEVER = (errors.InvalidPassword, errors.InvalidAuthorizationSpecification, errors.InvalidCatalogName)
# libpq passes on no code for a refused connection, only the words of the server.
_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "is not permitted to log in",
             "certificate", "pg_hba.conf rejects", "permission denied for database",
             "server does not support SSL")  # fmt: skip
_COLLISIONS = 3  # how often two writers may insert the same row at the same time; beyond that, it is no coincidence


class PostgresAccess:
    """Access to one server. `patience` is how many seconds to wait for an unreachable server."""

    def __init__(self, address: Address, *, patience: float = 30.0, connections: int = 8) -> None:
        self.address = address
        self.patience = patience
        self._process = os.getpid()
        self._schema = sql.Identifier(address.schema)
        self._composed = cache(self._compose)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address.conninfo,
            min_size=1,
            max_size=connections,
            timeout=max(patience, 1.0),
            reconnect_timeout=2.0,
            kwargs={"autocommit": True, "prepare_threshold": 0},
            configure=_prepared,
            name="workpacket",
            open=False,
        )

    def open(self) -> None:
        """Check once that the server is reachable and accepts the login; a pool would only report that its wait timed
        out.
        """
        try:
            self.again(lambda: psycopg.connect(self.address.conninfo).close())
        except psycopg.Error as error:
            raise self.translated(error) from None
        self._pool.open()

    def statement(self, text: LiteralString) -> bytes:
        """Return the statement with the schema name in place of {s}."""
        return self._composed(text)

    def _compose(self, text: LiteralString) -> bytes:
        return sql.SQL(text).format(s=self._schema).as_bytes(None)

    # ---- asking --------------------------------------------------------------------------------------------------

    def rows(self, text: LiteralString, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        statement = self.statement(text)
        return self.doing(lambda connection: connection.execute(statement, parameters).fetchall())

    def row(self, text: LiteralString, parameters: Sequence[object] = ()) -> Row | None:
        statement = self.statement(text)
        return self.doing(lambda connection: connection.execute(statement, parameters).fetchone())

    def one(self, text: LiteralString, parameters: Sequence[object] = ()) -> Row:
        found = self.row(text, parameters)
        if found is None:
            raise StoreCorrupt(f"{self.address.shown}: no answer to {text[:40]!r}")
        return found

    def doing(self, action: Callable[[Connection], T]) -> T:
        """Run an action that may be repeated, on a connection from the pool."""
        self.require_own_process()

        def act() -> T:
            with self._borrowed() as connection:
                return action(connection)

        try:
            return self.again(act)
        except (psycopg.Error, PoolTimeout) as error:
            raise self.translated(error) from error

    def again(self, act: Callable[[], T]) -> T:
        """Call `act`, repeating the call while the failure is transient."""
        until = time.monotonic() + self.patience
        wait = 0.01
        collisions = 0
        while True:
            try:
                return act()
            except BROKEN_OFF + LOST as error:
                collisions += isinstance(error, (errors.UniqueViolation, errors.CheckViolation))
                lasting = isinstance(error, _FULL) or _refused(error) or collisions > _COLLISIONS
                if lasting or time.monotonic() + wait > until:
                    raise
            time.sleep(wait)
            wait = min(wait * 2, 0.5)

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        connection = self._pool.getconn(timeout=max(self.patience, 1.0))
        try:
            yield connection
        except errors.CheckViolation:
            # A list of partitions that the process made while another partition was added stays out of date.
            connection.close()
            raise
        finally:
            self._pool.putconn(connection)

    def connect(self) -> Connection:
        """Return a separate connection, used to wait for notifications."""
        try:
            return psycopg.connect(self.address.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self.translated(error) from None

    # ---- faults --------------------------------------------------------------------------------------------------

    def require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreUnavailable(
                f"{self.address.shown} was opened by process {self._process}; a forked process must open its own "
                "connection",
                code="store_busy",
            )

    def require_writable(self) -> None:
        if self.address.read_only:
            raise StoreUnavailable(f"{self.address.shown} was opened on a replica", code="store_read_only")

    def translated(self, error: Exception) -> RuntimeFault:
        """Translate a server failure into a code that says what the user can do about it."""
        place = f"{self.address.shown}: {str(error).strip()}"
        if _refused(error):
            return StoreUnavailable(
                place, code="store_read_only", hint="create this user on the server, or correct the URL"
            )
        if isinstance(error, _OTHER_VERSION):
            return NewerSchema(f"{place}: the tables and this program have different versions")
        if isinstance(error, errors.IoError):
            return StorageFailed(place)
        for kinds, code, hint in _UNAVAILABLE:
            if isinstance(error, kinds):
                return StoreUnavailable(place, code=code, hint=hint)
        return StoreCorrupt(place)

    def close(self) -> None:
        if os.getpid() == self._process:
            self._pool.close()


def _prepared(connection: Connection) -> None:
    """Prefer index plans, because this connection would keep a plan made for ten rows when the table has ten million.
    On a connection that a pooler lends for one transaction, leave nothing behind: another client's prepared statement
    may have the same name, and a setting would affect other programs.
    """
    if is_lent(connection):
        connection.prepare_threshold = None
    else:
        connection.execute("SET enable_seqscan = off", prepare=False)


def is_lent(connection: Connection) -> bool:
    """Whether there is a pooler in between, which makes up the process number that it reports to its clients."""
    (process,) = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone() or (0,)
    return bool(process != connection.info.backend_pid)


def _refused(error: Exception) -> bool:
    """Whether the server rejects the login, so trying again is useless."""
    if isinstance(error, _NEVER):
        return True
    if not isinstance(error, psycopg.OperationalError) or error.sqlstate is not None:
        return False
    asked_for_password = error.pgconn is not None and error.pgconn.needs_password
    return asked_for_password or any(words in str(error) for words in _REFUSALS)
