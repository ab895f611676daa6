"""Connections to one PostgreSQL server: a pool, statements that are sent again when that is safe, faults in our words.

Every call is one statement in autocommit mode on a connection that goes back to the pool before the call returns:
nothing is held while a user's code runs. A transaction that the server broke off by itself (serialization, deadlock) is
asked again at once. When the connection is lost nobody knows whether the statement was committed, so it is sent again
only because every statement here may be: appends are recognised by their sequence number, leases by their request.

The URL of a PostgreSQL store: libpq's own, and two words of ours.

    postgresql://writer@db1,db2/runs?sslmode=verify-full&workpacket_project=alpha&workpacket_schema=workpacket

Everything else is libpq's: several hosts, TLS, a password file. A writer asks for the one server that takes writes; a
URL that asks for a standby gives a store that only reads. What keeps a dead connection from being waited for is set
unless the URL says otherwise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, LiteralString, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolTimeout

from workpacket.runtime.errors import NewerSchema, RuntimeFault, StorageFailed, StoreCorrupt, StoreUnavailable

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


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is. `conninfo` may hold a password and is never shown; `shown` is what messages name."""

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
        raise StoreUnavailable("the URL of the store cannot be read", code="storage_unsuitable") from None
    schema = words.pop("workpacket_schema", "workpacket")
    project = words.pop("workpacket_project", "default")
    if not schema or not project or "\0" in schema + project or len(schema.encode()) > 63:
        raise StoreUnavailable("the schema or project of the store is not a valid name", code="storage_unsuitable")
    wants = words.get("target_session_attrs", "read-write")
    words = {**_UNLESS_SAID, **words}
    place = parts.netloc.rpartition("@")[2] or words.get("host", "")
    return Address(
        urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(words), "")),
        schema,
        project,
        f"postgresql://{place}{parts.path} (schema {schema}, project {project})",
        wants in _READING,
    )


T = TypeVar("T")
Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]

BROKEN_OFF = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
LOST = (psycopg.OperationalError, psycopg.InterfaceError, errors.AdminShutdown, PoolTimeout)
_FULL = (errors.DiskFull, errors.OutOfMemory, errors.TooManyConnections)
_NOT_ALLOWED = (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)
_OTHER_VERSION = (errors.UndefinedFunction, errors.UndefinedTable, errors.InvalidSchemaName)
_UNAVAILABLE: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (_NOT_ALLOWED, "store_read_only", "ask the owner of the store for permission"),
    ((errors.DiskFull,), "disk_full", ""),
    (LOST, "store_busy", "make sure that the server is running and accepts this user"),
    ((psycopg.DataError,), "storage_unsuitable", ""),
)
_NEVER = (errors.InvalidPassword, errors.InvalidAuthorizationSpecification, errors.InvalidCatalogName)
# libpq passes on no code of a refusal to connect, only the words of the server.
_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "is not permitted to log in",
             "certificate", "pg_hba.conf rejects", "permission denied for database",
             "server does not support SSL")  # fmt: skip
_COLLISIONS = 3  # how often two may insert the same at the same moment; after that it is no coincidence


class PostgresAccess:
    """`patience` is for how many seconds a server that is away is waited for."""

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
        """See once that the server is there and lets us in; a pool would only say that it waited in vain."""
        try:
            self.again(lambda: psycopg.connect(self.address.conninfo).close())
        except psycopg.Error as error:
            raise self.translated(error) from None
        self._pool.open()

    def statement(self, text: LiteralString) -> bytes:
        """The statement with the name of the schema in the place of {s}."""
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
        """Do something that may be done twice, on a connection of the pool."""
        self.require_own_process()

        def act() -> T:
            with self._borrowed() as connection:
                return action(connection)

        try:
            return self.again(act)
        except (psycopg.Error, PoolTimeout) as error:
            raise self.translated(error) from error

    def again(self, act: Callable[[], T]) -> T:
        """`act`, repeated while what failed may pass."""
        until = time.monotonic() + self.patience
        wait = 0.01
        collisions = 0
        while True:
            try:
                return act()
            except BROKEN_OFF + LOST as error:
                collisions += isinstance(error, errors.UniqueViolation)
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
        finally:
            self._pool.putconn(connection)

    def connect(self) -> Connection:
        """A connection of one's own, for who waits for notifications."""
        try:
            return psycopg.connect(self.address.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self.translated(error) from None

    # ---- faults --------------------------------------------------------------------------------------------------

    def require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreUnavailable(
                f"{self.address.shown} was opened by process {self._process}; a forked process must open its own",
                code="store_busy",
            )

    def require_writable(self) -> None:
        if self.address.read_only:
            raise StoreUnavailable(f"{self.address.shown} was opened at a replica", code="store_read_only")

    def translated(self, error: Exception) -> RuntimeFault:
        """A failure of the server under the name of what the user can do about it."""
        place = f"{self.address.shown}: {str(error).strip()}"
        if _refused(error):
            return StoreUnavailable(
                place, code="store_read_only", hint="create this user on the server, or correct the URL"
            )
        if isinstance(error, _OTHER_VERSION):
            return NewerSchema(f"{place}: the tables have a different version from this program")
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
    """A plan made while a table had ten rows is kept by this connection when it has ten million: it goes by indexes.

    Behind a pooler that lends a connection for a transaction nothing may be left on it: a statement that was prepared
    there may be another client's under the same name, and a setting would be another program's.
    """
    if is_lent(connection):
        connection.prepare_threshold = None
    else:
        connection.execute("SET enable_seqscan = off", prepare=False)


def is_lent(connection: Connection) -> bool:
    """Whether a pooler stands between. It makes up the number of the process that it names to its clients."""
    (process,) = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone() or (0,)
    return bool(process != connection.info.backend_pid)


def _refused(error: Exception) -> bool:
    """Whether the server knows us and does not want us: asking again changes nothing."""
    if isinstance(error, _NEVER):
        return True
    if not isinstance(error, psycopg.OperationalError) or error.sqlstate is not None:
        return False
    asked_for_password = error.pgconn is not None and error.pgconn.needs_password
    return asked_for_password or any(words in str(error) for words in _REFUSALS)
