"""`workpacket release`: give a packet back."""

from __future__ import annotations

from workpacket.cli.open_roles import noting_roles
from workpacket.cli.options import Arguments, Command
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required
from workpacket.cli.team_claims import in_step
from workpacket.lifecycle.claims import release
from workpacket.shell.governing.commanding import here


def run(arguments: Arguments) -> int:
    reason = required(arguments, "reason")
    return in_step(
        arguments,
        packet_command(arguments, noting_roles(here(), lambda facts, packet: release(facts, packet, reason=reason))),
    )


COMMAND = Command(
    "release",
    "give a packet back, so that somebody else can claim it",
    run,
    arguments="WP_ID",
    options=(REASON, *ACTING),
    examples=('workpacket release WP-1-Parser-v1 --reason "needs somebody who knows CommonMark"',),
)
