"""`workpacket advance`: bring a packet on from a lane that the policy adds."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, REASON, packet_command
from workpacket.lifecycle.side_moves import advance


def run(arguments: Arguments) -> int:
    to, reason = arguments.value("to"), arguments.value("reason")
    return packet_command(arguments, lambda facts, packet: advance(facts, packet, to=to, reason=reason))


COMMAND = Command(
    "advance",
    "bring a packet on from a lane that the policy adds",
    run,
    arguments="WP_ID",
    description="""
The lanes that every repository has are left by commands of their own, which ask for what that lane has to show. A lane
of `[lifecycle.lanes]` is left by this one, behind the gates that `[lifecycle.gates]` puts on it.""",
    options=(
        Option("to", "the lane that you expect it to come to; refused if the way leads elsewhere", value="LANE"),
        REASON,
        *ACTING,
    ),
    examples=("workpacket advance WP-1-Parser-v1", "workpacket advance WP-1-Parser-v1 --to MERGE_PENDING"),
)
