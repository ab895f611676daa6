"""`workpacket resolve`: say which of two contradicting moves holds."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required
from workpacket.lifecycle.side_moves import resolve


def run(arguments: Arguments) -> int:
    lane, reason = required(arguments, "lane"), required(arguments, "reason")
    return packet_command(arguments, lambda facts, packet: resolve(facts, packet, lane=lane, reason=reason))


COMMAND = Command(
    "resolve",
    "settle a packet that was moved independently on two branches",
    run,
    arguments="WP_ID",
    options=(
        Option("lane", "where the packet is", value="LANE"),
        REASON,
        *ACTING,
    ),
    examples=('workpacket resolve WP-1-Parser-v1 --lane IN_PROGRESS --reason "coder-1 began first"',),
)
