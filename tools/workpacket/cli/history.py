"""`workpacket history`: what happened to a packet, in the order of its log."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command
from workpacket.cli.read_only import packet_facts, show_json
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.report.escape import escape

_SHOWN = ("holder", "to", "by", "verdict", "reason", "branch", "commit", "until", "rule", "target")


def run(arguments: Arguments) -> int:
    _, _, packet = packet_facts(arguments)
    events = packet.state.history
    if arguments.flag("json"):
        rows: list[Json] = [{"id": event.id, **event.json()} for event in events]
        heads: list[Json] = [*packet.log.heads]
        return show_json(arguments, {"id": packet.id.text, "lane": packet.lane, "heads": heads, "events": rows})
    for event in events:
        print(escape(_line(event)))
    print(
        f"{packet.id} is {packet.lane or 'without a log'}" + (", on two branches" if len(packet.log.heads) > 1 else "")
    )
    print(f"next: workpacket {'why' if events else 'adopt'}{f' {packet.id}' if events else ''}")
    return exits.OK


def _line(event: LogEvent) -> str:
    move = f" {event.lane_from or '(none)'} -> {event.lane_to}" if event.lane_to else ""
    said = "".join(f"; {key}: {value}" for key in _SHOWN if (value := event.text(key)))
    return (
        f"{event.clock:4}  {event.id[:12]}  {event.at}  {event.actor.id} ({event.actor.kind})  {event.type}{move}{said}"
    )


COMMAND = Command(
    "history",
    "show what happened to a packet",
    run,
    arguments="WP_ID",
    examples=("workpacket history WP-1-Parser-v1", "workpacket history WP-1-Parser-v1 --json"),
)
