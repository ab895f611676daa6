"""The links between a packet and the runs that work on it: made before a run begins, closed after it has ended.

Store and log are two places and no transaction spans both. In this order a crash between them leaves a link open of a
run that never began, or that has ended; never a run at work that no log knows of.
"""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.ledger.fold import LinkedRun, PacketState
from workpacket.ledger.log import EventWriter, Log, NewLogEvent, next_event
from workpacket.lifecycle.drafts import Draft
from workpacket.lifecycle.facts import PacketFacts
from workpacket.model.canonical import Json
from workpacket.model.plan import Plan, log_seen
from workpacket.value import Value


class Ending(Value):
    """How a run ended. `digest` and `events` are those of its stream, where the store was asked."""

    outcome: str
    code: str = ""
    reason: str = ""
    digest: str = ""
    events: int = 0

    def as_data(self) -> dict[str, Json]:
        said: dict[str, Json] = {"outcome": self.outcome}
        said |= {name: text for name, text in (("code", self.code), ("reason", self.reason)) if text}
        return {**said, "stream_sha256": self.digest, "events": self.events} if self.digest else said


def link_plan(log: Log, state: PacketState, writer: EventWriter, run: str, store: str) -> Plan | None:
    """None if the link stands already."""
    if open_link(state, run, store) is not None:
        return None
    data: dict[str, Json] = {"run": run, "stream": run}
    return _plan(log, writer, NewLogEvent("run.linked", {**data, "store": store} if store else data))


def close_plan(log: Log, writer: EventWriter, run: LinkedRun, ending: Ending) -> Plan:
    return _plan(log, writer, NewLogEvent("run.closed", {**_names(run), **ending.as_data()}))


def open_link(state: PacketState, run: str, store: str) -> LinkedRun | None:
    return next((one for one in state.open_runs if (one.run, one.store) == (run, store)), None)


def close_all(draft: Draft, packet: PacketFacts, outcome: str) -> tuple[str, ...]:
    """The packet ends, so that its runs count no more; what to say of each. What they do is not stopped by that."""
    for run in packet.state.open_runs:
        draft.happened(packet, "run.closed", {**_names(run), **Ending(outcome).as_data()})
    return tuple(f"{run.run} no longer counts; if it is at work: workpacket cancel {run.run}"
                 for run in packet.state.open_runs)  # fmt: skip


def _names(run: LinkedRun) -> Mapping[str, Json]:
    return {"run": run.run, **({"store": run.store} if run.store else {})}


def _plan(log: Log, writer: EventWriter, happening: NewLogEvent) -> Plan:
    after = [log.by_id[head] for head in log.heads]
    event = next_event(writer, log.packet, happening, after=after)
    return Plan("run", writer.tx, (), (event,), (log_seen(log.packet, log.events),))
