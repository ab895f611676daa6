"""`workpacket export`: checkpoints of the log in a foreign form."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    from workpacket.cli.exporting import carry_out

    return carry_out(arguments)


COMMAND = Command(
    "export",
    "write checkpoints of the log in a foreign form",
    run,
    arguments="FORMAT [KEY]",
    description="""
Without a key, or with the beginning of one up to a '/', everything that came out of one file. What the form cannot
carry is listed by --json and in docs/runtime/formats.md.""",
    options=(Option("out", "write into this file, which must not exist yet", value="FILE"),),
    examples=("workpacket export step --out mission.events.jsonl", "workpacket export session review-42"),
)
