"""What lists and boards say about a packet, as a function of its log alone.

A repository can have hundreds of thousands of events. A list of all packets needs a few facts about each, which are
small enough to be cached until the log of that packet changes (`shell.kept_logs`).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from workpacket.ledger.fold import PacketLease, PacketState, setting_events
from workpacket.ledger.log import Log
from workpacket.model.event_types import FORKED

_encode = json.JSONEncoder(separators=(",", ":")).encode  # making one takes as long as encoding a glance


class Move(NamedTuple):
    """One of the latest moves: usually there is one, but there are several if the packet is forked."""

    at: str
    actor: str
    reason: str
    until: str


class Glance(NamedTuple):
    """The facts about one packet. `began` and `last` are the times of the first and of the latest event; `""` means
    that there is none.

    `lease_given` is the latest time at which the lease was granted, and `lease_signed` says whether the holder signed
    for it. `signed` says whether every event has a signature, which was not verified here. `title`, `risk` and
    `dependencies` are the last ones recorded in the events, None if there are none. `runs` says whether any run of the
    packet needs attention, and `open_runs` says whether one is open.
    """

    lane: str
    sound: bool
    light: bool
    heads: tuple[str, ...]
    began: str
    last: str
    title: str | None
    risk: str | None
    dependencies: tuple[str, ...] | None
    standing: bool
    lease: PacketLease | None
    lease_given: str
    lease_signed: bool
    signed: bool
    assignee: str
    moves: tuple[Move, ...]
    presented: str
    superseded_by: str
    runs: bool
    open_runs: bool

    @property
    def forked(self) -> bool:
        return self.lane == FORKED

    def dump(self) -> str:
        """Return the text from which `load_glance` restores an equal value."""
        lease = self.lease
        row = self
        if lease is not None:
            row = self._replace(lease=(lease.holder, lease.lease, lease.expires_at))  # type: ignore[arg-type]
        return _encode(row)


def glance_at(log: Log, state: PacketState) -> Glance:
    history, lease = state.history, state.lease
    given = next((event for event in reversed(history) if lease and event.text("holder") == lease.holder), None)
    contract = next((event for event in reversed(history) if event.type in ("activated", "amended")), None)
    needed = contract.data.get("dependencies") if contract is not None else None
    closed = (run.closed.text("outcome") for run in state.runs if run.closed is not None)
    return Glance(
        lane=state.lane,
        sound=state.sound,
        light=state.light,
        heads=state.heads,
        began=history[0].at if history else "",
        last=max((event.at for event in history), default=""),
        title=next((text for event in reversed(history) if (text := event.text("title"))), None),
        risk=contract.text("risk") if contract is not None else None,
        dependencies=tuple(map(str, needed)) if isinstance(needed, list) else None,
        standing=any(event.text("standing") for event in setting_events(log)),
        lease=lease,
        lease_given=state.lease_given,
        lease_signed=given is not None and lease is not None and given.actor.id == lease.holder and bool(given.sig),
        signed=bool(log.events) and all(event.sig for event in log.events),
        assignee=state.assignment.assignee,
        moves=tuple(
            Move(move.at, move.actor.id, move.text("reason") or "", move.text("until") or "")
            for move in state.latest_moves
        ),
        presented=state.presented.at if state.presented is not None else "",
        superseded_by=state.superseded_by,
        runs=bool(state.open_runs) or "stopped" in closed,
        open_runs=bool(state.open_runs),
    )


def load_glance(row: list[object]) -> Glance:
    """Return the glance from the JSON value of its text."""
    said = Glance(*row)  # type: ignore[arg-type]
    lease = PacketLease(*said.lease) if said.lease is not None else None  # type: ignore[misc]
    return said._replace(
        heads=tuple(said.heads),
        dependencies=tuple(said.dependencies) if said.dependencies is not None else None,
        lease=lease,
        moves=tuple(Move(*move) for move in said.moves),
    )
