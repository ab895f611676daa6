"""`workpacket handover`: pass a packet on."""

from __future__ import annotations

from workpacket.cli.open_roles import noting_roles
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required
from workpacket.cli.team_claims import in_step
from workpacket.lifecycle.claims import release
from workpacket.shell.governing.commanding import here


def run(arguments: Arguments) -> int:
    reason, to = required(arguments, "reason"), required(arguments, "to")
    return in_step(
        arguments,
        packet_command(
            arguments, noting_roles(here(), lambda facts, packet: release(facts, packet, reason=reason, to=to))
        ),
    )


COMMAND = Command(
    "handover",
    "pass a packet on to somebody",
    run,
    arguments="WP_ID",
    options=(Option("to", "who goes on", value="NAME"), REASON, *ACTING),
    examples=('workpacket handover WP-1-Parser-v1 --to coder-2 --reason "end of my shift"',),
)
