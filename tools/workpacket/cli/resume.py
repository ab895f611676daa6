"""`workpacket resume`: what can go on, what cannot and why, and the answers that let it."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    from workpacket.cli.resuming import carry_out

    return carry_out(arguments)


COMMAND = Command(
    "resume",
    "say what an unfinished run would go on with, and answer what it asks",
    run,
    arguments="[ID]",
    description="""
Without an id, every unfinished run is decided upon and nothing is written. With one, a question is put to the person at
the terminal, or answered by --yes; the answer holds for exactly the differences that were shown. Then the run goes on
as it began: by its program, or by `workpacket run start NAME`.""",
    options=(
        Option("plan", "decide and show every check; write nothing"),
        Option("yes", "answer the question with yes"),
        Option("no", "answer the question with no"),
        Option("mark-done", "this effect of unknown outcome did happen", value="STEP", many=True),
        Option("retry", "have this effect of unknown outcome done again", value="STEP", many=True),
        Option("compensate", "have this effect of unknown outcome undone", value="STEP", many=True),
        Option("note", "a sentence to store with the answer", value="TEXT"),
    ),
    examples=(
        "workpacket resume",
        "workpacket resume nightly@00000003 --plan",
        "workpacket resume nightly@00000003 --mark-done send-mail --note 'it is in the outbox'",
    ),
)
