"""`workpacket block`: stop work that cannot go on."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, REASON, packet_command, required
from workpacket.cli.team_claims import in_step
from workpacket.lifecycle.side_moves import block


def run(arguments: Arguments) -> int:
    reason, until = required(arguments, "reason"), required(arguments, "until")
    return in_step(
        arguments, packet_command(arguments, lambda facts, packet: block(facts, packet, reason=reason, until=until))
    )


COMMAND = Command(
    "block",
    "stop work that cannot go on",
    run,
    arguments="WP_ID",
    options=(Option("until", "what would unblock it", value="TEXT"), REASON, *ACTING),
    examples=('workpacket block WP-1-Parser-v1 --reason "no test data" --until "the samples arrive"',),
)
