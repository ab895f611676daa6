"""`serve`: the board in a browser, on this machine only."""

from __future__ import annotations

import sys

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.wording import counted
from workpacket.problem import WorkpacketError
from workpacket.report.terminal import escape

_HIGHEST_PORT = 65535


def _run(arguments: Arguments) -> int:
    from workpacket.cli.open_store import number_of

    try:
        from workpacket.cli.live_listener import Listener
    except ImportError as error:
        message = f"the server needs the extra workpacket[serve]: {error}"
        raise WorkpacketError("extra_missing", message, hint="pip install 'workpacket[serve]'") from error
    port = number_of(arguments, "port", 0)
    if port != int(port) or port > _HIGHEST_PORT:
        raise usage(arguments.command, "invalid_value", f"invalid --port: expected a number up to {_HIGHEST_PORT}")
    write = arguments.flag("write")
    with Listener(arguments.words or ["."], int(port), write=write, actor=arguments.value("as")) as listener:
        _tell(arguments, listener.address, listener.names, write=write)
        listener.serve()
    return exits.OK


def _tell(arguments: Arguments, address: str, names: list[str], *, write: bool) -> None:
    if arguments.flag("json"):
        from workpacket.report.json_report import render_envelope

        data: dict[str, Json] = {"address": address, "write": write, "repositories": [*names]}
        sys.stdout.write(render_envelope("serve", exits.OK, [], data))
    else:
        listed = escape(", ".join(names)) if len(names) < 4 else counted(len(names), "repository")
        print(f"serving {listed}" + ("" if write else ", read-only"))
        print(f"Open this page (the address works only once): {address}")
        print("next: press Ctrl-C to stop the server")
    sys.stdout.flush()


COMMAND = Command(
    "serve",
    _run,
    arguments="[FOLDER...]",
    description="""
Serves the board, packets, runs and the audit as pages that follow every change within a second, to browsers of this
machine. Without --write, the pages only read. With it, actions are forms: each runs the command that it shows, signed
by the event key of who started the server, and refused as in a terminal; approvals are given by touch only. FOLDER is a
repository or work tree (default: the current one). Needs the extra workpacket[serve].""",
    options=(
        Option("write", "allow actions in your name"),
        Option("port", "the port (default: a free one)", value="N"),
        Option("as", "the actor (default: WORKPACKET_ACTOR, then git's user.name)", value="NAME"),
    ),
    examples=(
        "workpacket board serve",
        "workpacket board serve --write --port 8765",
        "workpacket board serve ../one ../two",
    ),
)
