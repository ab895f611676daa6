"""`workpacket store`: the tables on a server, and who may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workpacket.cli.open_store import answer, refusing, require_server
from workpacket.cli.options import Arguments, Command, subcommand, usage
from workpacket.model.canonical import Json
from workpacket.report.escape import escape

if TYPE_CHECKING:
    from workpacket.runtime.stores.postgres.health import Right


RIGHTS: dict[str, Right] = {"reader": "reader", "writer": "writer", "keeper": "keeper"}
TAKES = {"show": 0, "upgrade": 0, "let-in": 2, "shut-out": 1}


@refusing
def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    if len(arguments.words) != TAKES[action]:
        code = "missing_argument" if len(arguments.words) < TAKES[action] else "unexpected_argument"
        raise usage(arguments.command, code, f"`store {action}` takes {TAKES[action] or 'no'} words")
    if action == "let-in" and arguments.words[1] not in RIGHTS:
        raise usage(arguments.command, "invalid_value", f"a right is {', '.join(RIGHTS)}; not {arguments.words[1]!r}")
    url = require_server(arguments)
    from workpacket.runtime.stores.postgres.access import PostgresAccess, address_of_url
    from workpacket.runtime.stores.postgres.health import let_in, shut_out
    from workpacket.runtime.stores.postgres.migrations import SCHEMA_VERSION, migrate, schema_version

    access = PostgresAccess(address_of_url(url), connections=1)
    access.open()
    try:
        said = ""
        if action == "upgrade":
            made = migrate(access)
            said = f"{made} migration{'s' * (made != 1)} made\n"
        elif action == "let-in":
            role, right = arguments.words
            let_in(access, role, RIGHTS[right])
            said = f"{escape(role)} is a {right} now\n"
        elif action == "shut-out":
            known = shut_out(access, arguments.words[0])
            said = f"{escape(arguments.words[0])} {'is shut out' if known else 'did not have access'}\n"
        present = schema_version(access)
    finally:
        access.close()
    shown = access.address.shown
    data: dict[str, Json] = {"store": shown, "schema_version": present, "known_version": SCHEMA_VERSION}
    then = "workpacket store upgrade" if present < SCHEMA_VERSION else ""
    return answer(arguments, f"{said}{shown}: version {present} of {SCHEMA_VERSION}\n", data, then=then)


ACTIONS = ("show", "upgrade", "let-in", "shut-out")


COMMAND = Command(
    "store",
    run,
    arguments="show | upgrade | let-in ROLE reader|writer|keeper | shut-out ROLE",
    description="""
For the owner of the store that WORKPACKET_STORE names. `upgrade` makes the tables or brings them to the version of this
program; programs of the version before are then refused by name. A role has to exist; `let-in` gives it a right in the
project of the URL, `shut-out` takes it away.""",
    examples=(
        "workpacket store show",
        "workpacket store upgrade",
        "workpacket store let-in ci writer",
        "workpacket store shut-out ci",
    ),
)
