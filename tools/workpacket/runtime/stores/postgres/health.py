"""What a person should know about the server of a store: whether acknowledged data is durable, and the role of the
login. Also the rights in each project. Only the owner of the schema may write to a table directly.

A reader can only select, and row-level security limits it to its own projects. A writer calls the functions that
append, hold leases and work on the queue; it has no right to change or delete an event. A keeper may also erase a
payload and remove a finished run. The administrator of the server creates the roles; this module grants them rights.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

from psycopg import sql

from workpacket.runtime.stores.health import StoreCheck, StoreProblem
from workpacket.runtime.stores.postgres.access import Connection, PostgresAccess
from workpacket.runtime.stores.postgres.migrations import SCHEMA_VERSION, schema_version
from workpacket.runtime.stores.postgres.reader import ReadablePostgres

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
    """Grant an existing role a right in the project of this address; requires the owner of the schema."""
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
    worse = "" if level == "read committed" else ": safe, but writers of the same run make each other retry"
    return StoreCheck("isolation", (), level + worse)


def _clock(store: ReadablePostgres) -> StoreCheck:
    """Compare the clocks, with a precision of half the round trip."""
    before = time.time()
    (at_server,) = store.access.one("SELECT extract(epoch FROM clock_timestamp())::float8")
    after = time.time()
    ahead = float(at_server) - (before + after) / 2
    if abs(ahead) <= SKEW + (after - before) / 2:
        return StoreCheck("clock", (), "as here")
    side = "ahead of" if ahead > 0 else "behind"
    return StoreCheck(
        "clock", (), f"{abs(ahead):.0f} s {side} this machine; leases use the server's clock, so they stay valid"
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
    said = f"{user} has the rights of a {level} in the schema {schema}"
    if owner:
        said = f"{user} owns the schema {schema}: programs should connect as a writer"
    return StoreCheck("rights", (), said)


def _unsuitable(message: str) -> StoreProblem:
    return StoreProblem("storage_unsuitable", message)
