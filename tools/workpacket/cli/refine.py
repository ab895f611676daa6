"""`workpacket refine`: the technical refinement of a stub, and showing it to the user."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, packet_command
from workpacket.lifecycle.backlog import present, refine


def run(arguments: Arguments) -> int:
    return packet_command(arguments, present if arguments.flag("present") else refine)


COMMAND = Command(
    "refine",
    "write the technical refinement of a stub, or show it to the user",
    run,
    arguments="WP_ID",
    description="""
Writes a scaffold that pins the specification in force by its digest. Called again, it pins the present version. With
--present the block is printed for the conversation with the user, and recorded that it was.""",
    options=(Option("present", "print the block for the user, and record its digest"), *ACTING),
    examples=("workpacket refine WP-1-Parser-v1", "workpacket refine WP-1-Parser-v1 --present"),
)
