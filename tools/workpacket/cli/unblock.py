"""`workpacket unblock`: work that was blocked goes on in the lane where it stopped."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command
from workpacket.cli.packet_command import ACTING, REASON, packet_command
from workpacket.cli.team_claims import in_step
from workpacket.lifecycle.side_moves import unblock


def run(arguments: Arguments) -> int:
    reason = arguments.value("reason")
    return in_step(arguments, packet_command(arguments, lambda facts, packet: unblock(facts, packet, reason=reason)))


COMMAND = Command(
    "unblock",
    "let blocked work go on, in the lane where it stopped",
    run,
    arguments="WP_ID",
    options=(REASON, *ACTING),
    examples=('workpacket unblock WP-1-Parser-v1 --reason "the samples are there"',),
)
