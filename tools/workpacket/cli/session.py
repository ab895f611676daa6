"""`workpacket session`: what became of sessions with a model, and what an operator decides about them."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, subcommand

ACTIONS = ("list", "show", "decide", "continue")


def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    from workpacket.cli.sessions import carry_out

    return carry_out(arguments, action)


COMMAND = Command(
    "session",
    "look at sessions with a model, decide about those that are stopped, carry them over",
    run,
    arguments="list | show ID | decide ID cancel|repair|retry | continue KEY",
    description="""
`show` says what became of a session and writes nothing: its status and reason, every call without an outcome, and what
may be decided. `decide` answers a session that is blocked: `cancel` ends it, `repair` takes what is in doubt as done
and what is damaged as lost, `retry` has it done again. `continue` begins here, as it stood then, a session of another
machine whose artifact was taken in by `workpacket import session`.""",
    options=(Option("note", "decide: a sentence to store with the decision", value="TEXT"),),
    examples=(
        "workpacket session show session@review-42",
        "workpacket session decide session@review-42 repair --note 'the comment is there'",
        "workpacket session continue WP-1-Invoices-v1/review-42",
    ),
)
