"""`workpacket impact`: which packets rest on a file or on a passage of the specification."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command


def run(arguments: Arguments) -> int:
    from workpacket.cli.trace import show_impact

    return show_impact(arguments)


COMMAND = Command(
    "impact",
    "list the packets that rest on a file, a line of it, or an anchor",
    run,
    arguments="PATH|PATH:LINE|ANCHOR",
    examples=(
        "workpacket impact src/parser.py",
        "workpacket impact Spec_v1.md:120",
        "workpacket impact 'Spec_v1.md 4.2 Parser'",
    ),
)
