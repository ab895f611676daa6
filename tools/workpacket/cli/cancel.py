"""`workpacket cancel`: ask a run to end at its next boundary."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, usage


def run(arguments: Arguments) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "name one run")
    from workpacket.cli.resume import cancel

    return cancel(arguments)


COMMAND = Command(
    "cancel",
    "ask a run to end at its next boundary",
    run,
    arguments="ID",
    description="""
A run that somebody works on ends before its next step, chunk or effect, never between an effect and its record. One
that nobody works on is cancelled at once. Either can be resumed later, in so many words.""",
    options=(Option("reason", "why, for those who read the log", value="TEXT"),),
    examples=("workpacket cancel nightly@00000003 --reason 'wrong month'",),
)
