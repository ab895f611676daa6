"""`workpacket import`: checkpoints in a foreign form become part of the log, all of a file or nothing."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    from workpacket.cli.importing import carry_out

    return carry_out(arguments)


COMMAND = Command(
    "import",
    "take checkpoints in a foreign form into the log",
    run,
    arguments="FORMAT PATH...",
    description="""
A file that is not valid is refused with line and column; if one of several is refused, none is taken over. A file
that differs from what the log holds already is refused too: see `workpacket explain view_conflict`. Summaries, cost
files and templates that lie among the checkpoints of roles are passed over, and named.""",
    options=(Option("plan", "say what would be taken over; write nothing"),),
    examples=("workpacket import step mission.events.jsonl", "workpacket import step --plan mission.events.jsonl"),
)
