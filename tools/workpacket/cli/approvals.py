"""`workpacket approvals`: which decisions there are, and whether all that rests on them holds."""

from __future__ import annotations

from workpacket.cli.approve import BASE_OPTION
from workpacket.cli.options import Arguments, Command, chosen

SUBCOMMANDS = ("list", "verify")


def run(arguments: Arguments) -> int:
    from workpacket.cli.judging import list_approvals, verify_approvals

    return list_approvals(arguments) if chosen(arguments, SUBCOMMANDS) == "list" else verify_approvals(arguments)


COMMAND = Command(
    "approvals",
    "list and verify approvals",
    run,
    arguments="list|verify [WP_ID...]",
    description="""
`list` shows every decision, and for each gate whether it would open now or what is missing. `verify` is for CI: every
envelope is sound, everything that rests on an approval has one under the policy of the base, and nothing that the base
holds of log and attestations was changed or deleted. Reading needs no ssh-keygen.""",
    options=(BASE_OPTION,),
    examples=(
        "workpacket approvals list",
        "workpacket approvals list WP-1-Parser-v1 --json",
        "workpacket approvals verify --base origin/main",
    ),
)
