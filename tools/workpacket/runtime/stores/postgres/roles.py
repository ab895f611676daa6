"""Rights: who may do what in which project. Nobody but the owner of the schema may write to a table directly.

A reader selects, and row-level security shows it its own projects only. A writer calls the functions that append, hold
leases and work on the queue; no right of its own lets it change or delete an event. A keeper may also erase a payload
and remove a finished run. The roles themselves are made by whoever governs the server; here they are let in.
"""

from __future__ import annotations

from typing import Literal

from psycopg import sql

from workpacket.runtime.stores.postgres.access import Access, Connection

Right = Literal["reader", "writer", "keeper"]
LEVELS: dict[Right, int] = {"reader": 1, "writer": 2, "keeper": 3}

_FUNCTIONS: dict[Right, tuple[str, ...]] = {
    "reader": ("moment", "my_projects", "open_project_1", "follow_1"),
    "writer": ("append_1", "append_last_1", "acquire_1", "renew_1", "release_1", "arrive_1", "bring_1",
               "bring_payloads_1", "arrived_1", "reindex_1", "offer_1", "refresh_1", "claim_1", "settle_1", "revive_1"),
    "keeper": ("erase_1", "remove_1"),
}  # fmt: skip
_READABLE = ("schema_migrations", "projects", "streams", "events", "payloads", "entries", "jobs")


def let_in(access: Access, role: str, right: Right) -> None:
    """Give an existing role a right in the project of this address; needs the owner of the schema."""
    access.doing(lambda connection: _let_in(access, connection, role, right))


def shut_out(access: Access, role: str) -> bool:
    """Take the right away; whether there was one. What the role may call is left, and refuses it."""
    gone = access.row(
        "DELETE FROM {s}.members m USING {s}.projects p WHERE p.id = m.project AND p.name = %s AND m.role = %s "
        "RETURNING m.role",
        (access.address.project, role),
    )
    return gone is not None


def _let_in(access: Access, connection: Connection, role: str, right: Right) -> None:
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
