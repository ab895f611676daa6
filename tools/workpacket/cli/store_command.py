"""`workpacket store`: the tables on a server, and who may use them."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, subcommand

ACTIONS = ("show", "upgrade", "let-in", "shut-out")


def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    from workpacket.cli.storing import carry_out

    return carry_out(arguments, action)


COMMAND = Command(
    "store",
    "make or upgrade the tables of runs on a server, and let roles in",
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
