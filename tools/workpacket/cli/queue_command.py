"""`workpacket queue`: offer runs to the workers of a server, look at what waits, let the dead try again."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, subcommand

ACTIONS = ("offer", "list", "revive")


def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    from workpacket.cli.queueing import carry_out

    return carry_out(arguments, action)


COMMAND = Command(
    "queue",
    "offer runs to workers, and look at what waits",
    run,
    arguments="offer NAME | list | revive JOB",
    description="""
The queue lies on the server that WORKPACKET_STORE names. What is finished is gone from it; what failed for good stays,
with its reason, until it is revived.""",
    options=(
        Option("queue", "which queue (default)", value="QUEUE"),
        Option("packet", "offer: the work packet the run belongs to", value="WP_ID"),
        Option("key", "offer: names one run for good; offered again, it is not done twice", value="KEY"),
        Option("input", "offer: what the results depend on", value="NAME=VALUE", many=True),
        Option("priority", "offer: the highest is done first (0)", value="N"),
        Option("delay", "offer: not before so many seconds are over", value="SECONDS"),
        Option("lane", "offer: of one lane only --limit runs are at work at a time", value="LANE"),
        Option("limit", "offer: how many of the lane (1)", value="N"),
        Option("tries", "offer: how often it may fail (5)", value="N"),
    ),
    examples=(
        "workpacket queue offer import --key 2026-10 --input month=10 --lane bank --limit 2",
        "workpacket queue list",
        "workpacket queue revive 17",
    ),
)
