"""`workpacket log recover`: complete or undo an interrupted change of several files."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.read_only import show_json
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.report.escape import escape
from workpacket.shell.governing.execution import here
from workpacket.shell.transactions.recovery import recover, unfinished


def run(arguments: Arguments) -> int:
    repository = here()
    if arguments.flag("forward") and arguments.flag("back"):
        raise usage(arguments.command, "conflicting_options", "give either --forward or --back")
    left = unfinished(repository)
    if not (arguments.flag("forward") or arguments.flag("back")):
        return _show(arguments, [(one.command, one.tx, one.paths, one.third_state) for one in left])
    done = recover(repository, "new" if arguments.flag("forward") else "old")
    rows: list[Json] = [{"command": one.command, "tx": one.tx, "set_aside": list(one.set_aside)} for one in done]
    if arguments.flag("json"):
        return show_json(arguments, {"recovered": rows})
    for one in done:
        print(f"{escape(one.command)} ({one.tx}) was " + ("finished" if one.way == "new" else "undone"))
        for path in one.set_aside:
            print(f"  saved in the git directory: {escape(path)}")
    print(f"{len(done)} interrupted commands")
    print("next: workpacket check")
    return exits.OK


def _show(arguments: Arguments, left: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]) -> int:
    if arguments.flag("json"):
        rows: list[Json] = [
            {"command": command, "tx": tx, "paths": list(paths), "changed_since": list(third)}
            for command, tx, paths, third in left
        ]
        return show_json(arguments, {"unfinished": rows})
    for command, tx, paths, third in left:
        print(f"{escape(command)} ({tx}) stopped between: {escape(', '.join(paths))}")
        for path in third:
            print(f"  changed since: {escape(path)}")
    if not left:
        print("nothing is unfinished")
    print(
        "next: workpacket log recover --forward, or workpacket log recover --back"
        if left
        else "next: workpacket status"
    )
    return exits.OK


COMMAND = Command(
    "recover",
    run,
    description="Without an option, shows what is unfinished. Files that were changed since then are saved first.",
    options=(Option("forward", "finish it"), Option("back", "undo it")),
    examples=("workpacket log recover", "workpacket log recover --forward"),
)
