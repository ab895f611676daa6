"""`workpacket reopen`: go on with work that was accepted but is not merged."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required
from workpacket.cli.team_claims import in_step
from workpacket.lifecycle.side_moves import reopen


def run(arguments: Arguments) -> int:
    reason = required(arguments, "reason")
    return in_step(arguments, packet_command(arguments, lambda facts, packet: reopen(facts, packet, reason=reason)))


COMMAND = Command(
    "reopen",
    "go on with work that was accepted but is not merged",
    run,
    arguments="WP_ID",
    options=(REASON, *ACTING),
    examples=('workpacket reopen WP-1-Parser-v1 --reason "the merge broke the build"',),
)
