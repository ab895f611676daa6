"""Where a packet stands, when its history may have branched.

Every lane move rests on the moves that its writer saw. The *latest* moves of a history are those that no other move
rests on. If there is one, or if all of them say the same, the packet is in that lane. If they contradict each other,
the packet is forked, and stays so until a `fork.resolved` event names them all: any other move made upon a fork joins
the contradiction instead of hiding it.

Whether a move is legal is not judged here; the lanes are taken from the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from workpacket.ledger.log import Log, fault
from workpacket.model.event_types import FORKED
from workpacket.model.events import LogEvent
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import Problem
from workpacket.value import Value

Latest: TypeAlias = "tuple[str, ...]"


class LaneState(Value):
    """The lane that the history leads to, the latest moves (several when forked), and what is wrong on the way."""

    lane: str
    latest: tuple[LogEvent, ...]
    findings: tuple[Problem, ...]

    @property
    def came_from(self) -> str | None:
        """For a blocked packet, the lane in which it was blocked."""
        if self.lane == FORKED or not self.latest:
            return None
        move = self.latest[-1]
        return move.lane_from if move.type == "blocked" else move.text("came_from")


def standing(log: Log) -> LaneState:
    """Replay the lane moves of a log."""
    replay = _Replay(log.by_id)
    for event in log.by_id.values():
        replay.take(event)
    latest = tuple(log.by_id[identity] for identity in replay.join(log.heads))
    lane = _lane_of(latest)
    findings = replay.gaps
    if lane == FORKED:
        findings += [_forked(log, latest), *(_upon_fork(move) for move in latest if move.id in replay.upon_fork)]
    return LaneState(lane, latest, tuple(findings))


class _Replay:
    """For every event so far: the latest moves in its view, and (as bits) all moves that it rests on."""

    def __init__(self, by_id: Mapping[str, LogEvent]) -> None:
        self.gaps: list[Problem] = []
        self.upon_fork: set[str] = set()
        self._by_id = by_id
        self._latest: dict[str, Latest] = {}
        self._rests_on: dict[str, int] = {}
        self._bit: dict[str, int] = {}

    def take(self, event: LogEvent) -> None:
        seen = self.join(event.parents)
        rests_on = 0
        for parent in event.parents:
            rests_on |= self._rests_on[parent]
        if event.moves_lane:
            self._bit[event.id] = 1 << len(self._bit)
            rests_on |= self._bit[event.id]
            seen = self._after_move(event, seen)
        self._latest[event.id] = seen
        self._rests_on[event.id] = rests_on

    def join(self, events: Iterable[str]) -> Latest:
        """The latest moves in the view of somebody who sees all these events."""
        views = [self._latest[identity] for identity in events]
        if len(views) == 1:
            return views[0]
        moves = dict.fromkeys(move for view in views for move in view)
        return tuple(move for move in moves if not any(self._covers(other, move) for other in moves))

    def _covers(self, later: str, earlier: str) -> bool:
        # A move made upon a fork does not end the contradicting moves: they stand beside it.
        return earlier not in self._latest[later] and bool(self._rests_on[later] & self._bit[earlier])

    def _after_move(self, event: LogEvent, seen: Latest) -> Latest:
        before = _lane_of([self._by_id[identity] for identity in seen])
        if before == FORKED and not (event.type == "fork.resolved" and set(seen) <= set(event.texts("moves"))):
            kept = (identity for identity in seen if identity not in self.upon_fork)
            self.upon_fork.add(event.id)
            return (*kept, event.id)
        if (event.lane_from or "") != before:
            message = f"{event.type} leaves {event.lane_from}, but the packet was in {before or 'no lane'}"
            self.gaps.append(fault("log_lane_gap", event.path, message))
        return (event.id,)


def _lane_of(latest: Iterable[LogEvent]) -> str:
    """The lane that these moves agree on; FORKED if they do not; '' if there are none."""
    words = {_what_it_says(move) for move in latest}
    if len(words) > 1:
        return FORKED
    return next((lane for lane, *_ in words), "")


def _what_it_says(move: LogEvent) -> tuple[str, ...]:
    """Two moves made independently agree if they say the same: two claims by different holders do not."""
    parties = (move.text(key) or "" for key in ("holder", "to", "by", "verdict"))
    return (move.lane_to or "", move.type, *parties)


def _forked(log: Log, latest: Iterable[LogEvent]) -> Problem:
    moves = "; ".join(
        f"{move.type} by {move.actor.id} to {move.lane_to} ({move.id[:12]}, {move.at})"
        for move in sorted(latest, key=lambda move: move.order)
    )
    return fault("packet_forked", f"{LOG_FOLDER}/{log.packet}", f"{log.packet} was moved independently: {moves}")


def _upon_fork(move: LogEvent) -> Problem:
    message = f"{move.type} to {move.lane_to} was recorded while the packet was forked, and does not settle it"
    return fault("log_moved_while_forked", move.path, message)
