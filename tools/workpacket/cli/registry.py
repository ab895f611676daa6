"""`workpacket registry`: which packet is in force for each base."""

from __future__ import annotations

from functools import partial

from workpacket.cli.board_moves import to_go_on
from workpacket.cli.options import Arguments, Command, chosen
from workpacket.cli.packet_command import ACTING, actor_of, conclude
from workpacket.cli.read_only import NOBODY, open_for_reading, show_json
from workpacket.lifecycle.board_sync import sync
from workpacket.lifecycle.projections import in_force
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.shell.governing.execution import carry_out, gather, here


def run(arguments: Arguments) -> int:
    action = chosen(arguments, ("show", "audit", "sync"))
    if action == "sync":
        repository = here()
        draw = partial(sync, board=False)
        actor = actor_of(arguments, repository)
        carried = carry_out(repository, "registry sync", None, actor, draw, during_merge=True)
        return conclude(arguments, to_go_on(repository, carried))
    if action == "audit":
        from workpacket.cli.trace import audit_registry

        return audit_registry(arguments)
    return _show(arguments)


def _show(arguments: Arguments) -> int:
    facts = gather(open_for_reading(), None, NOBODY)
    bases = sorted({packet.id.base for packet in facts.packets.values()})
    rows = [row for base in bases if (row := in_force(facts, base, {}, {})) is not None]
    if arguments.flag("json"):
        listed: list[Json] = [
            {"base": row.base, "id": row.id, "path": row.path, "lane": row.lane.token} for row in rows
        ]
        return show_json(arguments, {"bases": listed})
    for row in rows:
        print(f"{row.base}  {row.id}  {row.lane.token}  {row.path}")
    print("next: workpacket registry sync")
    return exits.OK


COMMAND = Command(
    "registry",
    "show or audit which packet is in force for each base, or draw the registry anew",
    run,
    arguments="show|audit|sync",
    options=ACTING,
    examples=("workpacket registry show", "workpacket registry audit", "workpacket registry sync"),
)
