"""`workpacket activate`, also known as `create-task-packet`: a stub becomes a packet, if its gate lets it."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command
from workpacket.cli.packet_command import ACTING, packet_command
from workpacket.lifecycle.activation import activate
from workpacket.shell.approvals.gate_queries import ACTIVATION


def run(arguments: Arguments) -> int:
    return packet_command(arguments, activate, questions=(ACTIVATION,))


def declare(name: str) -> Command:
    return Command(
        name,
        "make a task packet of a stub, if the activation gate lets it",
        run,
        arguments="WP_ID",
        description="""
The seven items of the stub's checklist are derived from evidence. Either packet, board, registry and log all change, or
the answer lists everything that is missing, each with the command that supplies it.""",
        options=ACTING,
        examples=(f"workpacket {name} WP-1-Parser-v1", f"workpacket {name} WP-1-Parser-v1 --json"),
    )


COMMAND = declare("activate")
