"""`workpacket supersede`: a later revision takes the place of a packet."""

from __future__ import annotations

from workpacket.cli.open_roles import noting_roles
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required
from workpacket.cli.team_claims import in_step
from workpacket.lifecycle.side_moves import supersede
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.commanding import here


def run(arguments: Arguments) -> int:
    by = packet_called(str(here().root), required(arguments, "by")).text
    reason = arguments.value("reason")
    return in_step(
        arguments,
        packet_command(
            arguments,
            noting_roles(here(), lambda facts, packet: supersede(facts, packet, by=facts.packets[by], reason=reason)),
            also=(by,),
        ),
    )


COMMAND = Command(
    "supersede",
    "let a later revision take the place of a packet",
    run,
    arguments="WP_ID",
    options=(Option("by", "the packet that takes its place", value="WP_ID"), REASON, *ACTING),
    examples=("workpacket supersede WP-1-Parser-v1 --by WP-1-Parser-v2",),
)
