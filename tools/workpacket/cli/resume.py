"""`workpacket resume`: what can go on, what cannot and why, and the answers that let it."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    from workpacket.cli.resuming import carry_out

    return carry_out(arguments)


COMMAND = Command(
    "resume",
    "go on with what is unfinished: say where and why, or what stops it",
    run,
    arguments="[ID [QUESTION]]",
    description="""
Without an id, everything unfinished is looked at: runs, sessions, batches, roles, steps, checkpoint commits. What would
go on is said, and what stops the rest; --yes lets it go on, and at a terminal the person chooses. An agent's work is
leased and recorded, and what the agent does next is printed.
With the id of a run, what waits for a person is shown: what its program asks, a value that changed, an effect of
unknown outcome or result; each with an id, what it is about, and a digest. QUESTION is that id; it may be left out
where one is open. --yes holds for exactly what the digest was printed for: at a terminal by the same call, elsewhere
--confirm names it. Then the run goes on as it began: by its program, or by `workpacket run start NAME`.""",
    options=(
        Option("team", "without an id: the roles of this team only", value="TEAM"),
        Option("owner", "the process that does the work of an agent; else the one that called", value="PID"),
        Option("instance", "who of several with a role writes; else that process", value="NAME"),
        Option("plan", "decide and show every check; write nothing"),
        Option("yes", "answer the question with yes"),
        Option("no", "answer the question with no"),
        Option("confirm", "the digest that was printed with the question", value="DIGEST"),
        Option(
            "mark-done", "this effect of unknown outcome or result did happen", value="STEP", many=True, optional=True
        ),
        Option("value", "what the effect of --mark-done gave, as JSON; without it that is null", value="JSON"),
        Option("retry", "have this effect of unknown outcome done again", value="STEP", many=True, optional=True),
        Option("compensate", "have this effect of unknown outcome undone", value="STEP", many=True, optional=True),
        Option("note", "a sentence to store with the answer", value="TEXT"),
    ),
    examples=(
        "workpacket resume",
        "workpacket resume --team build --yes",
        "workpacket resume nightly@00000003 --plan",
        "workpacket resume nightly@00000003 q1 --no",
        "workpacket resume nightly@00000003 --mark-done send-mail --note 'it is in the outbox'",
        """workpacket resume nightly@00000003 --mark-done send-mail --value '{"id": "<1@example.org>"}'""",
    ),
)
