"""The schema of the PostgreSQL store: made when it is not there, upgraded when its owner says so, refused otherwise.

All migrations run in one transaction behind an advisory lock, so that any number of machines may begin at once.
Functions carry the number of the protocol that their callers speak. A migration that changes what an append means makes
`append_2` and drops `append_1`: a program of the version before is refused by its next call, in the middle of its work,
with the name of the reason, and never writes to tables it does not know.
"""

from __future__ import annotations

from psycopg import sql

from workpacket.runtime.errors import NewerSchema, StoreUnavailable
from workpacket.runtime.stores.postgres.access import Access, Connection
from workpacket.runtime.stores.postgres.functions import ACCESS, APPENDS, LEASES
from workpacket.runtime.stores.postgres.jobs import JOBS
from workpacket.runtime.stores.postgres.keeping import KEEPING
from workpacket.runtime.stores.postgres.tables import GUARDS, TABLES, row_security

_FIRST: tuple[str, ...] = (*TABLES, *GUARDS, *ACCESS, *APPENDS, *LEASES, *KEEPING, *JOBS, *row_security())

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST,)
SCHEMA_VERSION = len(MIGRATIONS)


def prepare_schema(access: Access) -> None:
    """Make the schema if there is none; else require that it is of this version."""
    present = schema_version(access)
    if present == 0:
        access.require_writable()
        migrate(access)
        present = schema_version(access)
    require_version(access, present)


def require_version(access: Access, present: int) -> None:
    if present > SCHEMA_VERSION:
        raise NewerSchema(f"{access.address.shown} has schema {present}; this version knows {SCHEMA_VERSION}")
    if present < SCHEMA_VERSION:
        raise StoreUnavailable(
            f"{access.address.shown} has schema {present}, older than {SCHEMA_VERSION}",
            code="storage_unsuitable",
            hint="let its owner upgrade it: workpacket store upgrade",
        )


def schema_version(access: Access) -> int:
    """0 if there is no schema."""
    (found,) = access.one("SELECT to_regclass(%s) IS NOT NULL", (_table(access, "schema_migrations"),))
    if not found:
        return 0
    (version,) = access.one("SELECT coalesce(max(version), 0) FROM {s}.schema_migrations")
    return int(version)


def migrate(access: Access, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> int:
    """Bring the schema to the last of the migrations; how many were made."""
    return access.doing(lambda connection: _migrate(access, connection, migrations))


def _migrate(access: Access, connection: Connection, migrations: tuple[tuple[str, ...], ...]) -> int:
    with connection.transaction():
        connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('workpacket ' || %s, 0))", (access.address.schema,)
        )
        (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
        if encoding != "UTF8":
            raise StoreUnavailable(
                f"{access.address.shown}: the database is in {encoding}, not UTF8", code="storage_unsuitable"
            )
        connection.execute(access.statement("CREATE SCHEMA IF NOT EXISTS {s}"))
        connection.execute(
            access.statement(
                "CREATE TABLE IF NOT EXISTS {s}.schema_migrations("
                "version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
            )
        )
        (present,) = connection.execute(
            access.statement("SELECT coalesce(max(version), 0) FROM {s}.schema_migrations")
        ).fetchone() or (0,)
        for version, statements in enumerate(migrations[present:], start=present + 1):
            for text in statements:
                connection.execute(access.statement(text))  # a constant of this package
            connection.execute(access.statement("INSERT INTO {s}.schema_migrations VALUES (%s)"), (version,))
        if present < len(migrations):
            connection.execute(access.statement("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {s} FROM PUBLIC"))
    return len(migrations) - int(present)


def _table(access: Access, name: str) -> str:
    return sql.Identifier(access.address.schema, name).as_string(None)
