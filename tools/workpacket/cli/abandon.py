"""`workpacket abandon`: give a packet up."""

from __future__ import annotations

from workpacket.cli.open_roles import noting_roles
from workpacket.cli.options import Arguments, Command
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required
from workpacket.cli.team_claims import in_step
from workpacket.lifecycle.side_moves import abandon
from workpacket.shell.governing.commanding import here


def run(arguments: Arguments) -> int:
    reason = required(arguments, "reason")
    return in_step(
        arguments,
        packet_command(arguments, noting_roles(here(), lambda facts, packet: abandon(facts, packet, reason=reason))),
    )


COMMAND = Command(
    "abandon",
    "give a packet up",
    run,
    arguments="WP_ID",
    options=(REASON, *ACTING),
    examples=('workpacket abandon WP-1-Parser-v1 --reason "nobody needs it any more"',),
)
