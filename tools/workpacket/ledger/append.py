"""Making the next event of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workpacket.model.canonical import Json
from workpacket.model.event_schema import VERSION, event_misfit
from workpacket.model.events import Actor, Event, Subject, encode_event, event_id, event_of
from workpacket.value import Value


class Writer(Value):
    """Who writes, when, in which transaction and with what: the same for all events of one command."""

    actor: Actor
    at: str
    tx: str
    tool: str


class Happening(Value):
    """What happened to a packet, before it has a place in the log."""

    type: str
    data: Mapping[str, Json]
    subjects: Sequence[Subject] = ()
    attest: Sequence[str] = ()


def next_event(writer: Writer, packet: str, happening: Happening, *, after: Sequence[Event]) -> Event:
    """The event that follows `after`: all heads of the log, or the event made just before in the same command.

    Data of a wrong shape is a mistake in the program, not in a document, and raises ValueError.
    """
    value: dict[str, Json] = {
        "v": VERSION,
        "type": happening.type,
        "packet": packet,
        "clock": 1 + max((event.clock for event in after), default=0),
        "parents": sorted({event.id for event in after}),
        "at": writer.at,
        "actor": {"id": writer.actor.id, "kind": writer.actor.kind},
        "tool": writer.tool,
        "tx": writer.tx,
        "subjects": [{"path": s.path, "prev": s.prev, "sha256": s.sha256} for s in happening.subjects],
        "attest": sorted(set(happening.attest)),
        "data": dict(happening.data),
    }
    misfit = event_misfit(value)
    if misfit is not None:
        raise ValueError(f"event {happening.type} of {packet}: {misfit}")
    return event_of(value, event_id(encode_event(value)))
