"""`workpacket next`: the work that is ready."""

from __future__ import annotations

from workpacket.cli.looking import NOBODY, looking, show_json
from workpacket.cli.options import Arguments, Command, Option
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.plans.direction import ready
from workpacket.shell.gathering import gather


def run(arguments: Arguments) -> int:
    rows = ready(gather(looking(), None, NOBODY), arguments.value("for"))
    if arguments.flag("json"):
        listed: list[Json] = [
            {
                "id": row.id,
                "lane": row.lane,
                "next": row.command,
                "risk": row.risk,
                "waiting": row.waiting,
                "since": row.since,
            }
            for row in rows
        ]
        return show_json(arguments, {"ready": listed})
    for row in rows:
        waiting = f"  {row.waiting} wait for it" if row.waiting else ""
        print(f"{row.id}  {row.lane}  {row.risk or '-'}  since {row.since}{waiting}")
    if rows:
        print(f"next: {rows[0].command}")
    else:
        print("nothing is ready")
        print("next: workpacket status")
    return exits.OK


COMMAND = Command(
    "next",
    "list the work that is ready, the most wanted first",
    run,
    options=(Option("for", "also what this one holds, and nothing that is assigned to others", value="NAME"),),
    description="In the order of what most packets wait for, then risk, then age.",
    examples=("workpacket next", "workpacket next --for coder-1"),
)
