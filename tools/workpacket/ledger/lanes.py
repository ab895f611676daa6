"""The lane of a packet whose history may have branched. Every move depends on the moves that its writer saw. The
*latest* moves of a history are those on which no other move depends. If there is only one, or if all agree, the packet
is in that lane. If they contradict each other, the packet is forked until a `fork.resolved` event names them all: any
other move on a fork joins the contradiction instead of hiding it. Moves that agree still contradict each other if a
holder, a commit or a verdict was recorded on the way to one of them: otherwise a packet done and judged on two branches
would be one packet with two pieces of work.

This does not judge whether a move is legal; the lanes come from the events (docs/approvals/moves.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import and_
from typing import Final, TypeAlias

from workpacket.ledger.log import Log, fault
from workpacket.model.event_types import FORKED
from workpacket.model.events import LogEvent
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import Problem
from workpacket.value import Value

Latest: TypeAlias = "tuple[str, ...]"

# Moves that name a holder, a commit or a verdict. A settlement stands for all that it settled.
_NAMING: Final = frozenset(
    {"claimed", "released", "handed_over", "submitted", "merged", "verdict.given", "fork.resolved"}
)


class LaneState(Value):
    """The resulting lane, the latest moves (several if forked), and errors on the way. `came_from` is the lane from
    which the packet was blocked.
    """

    lane: str
    latest: tuple[LogEvent, ...]
    findings: tuple[Problem, ...]
    came_from: str | None = None


def standing(log: Log) -> LaneState:
    """LaneReplay the lane moves of a log."""
    replay = LaneReplay(log)
    ends = replay.join(log.heads)
    latest = tuple(log.by_id[identity] for identity in ends)
    lane = replay.lane(ends)
    findings = replay.gaps
    if lane == FORKED:
        findings += [_forked(log, latest), *(_upon_fork(move) for move in latest if move.id in replay.upon_fork)]
    return LaneState(lane, latest, tuple(findings), replay.blocked_in(ends) if lane == "BLOCKED" else None)


class LaneReplay:
    """For every event of a log: the latest moves in its view, and (as bits) all moves that it depends on."""

    def __init__(self, log: Log) -> None:
        self.gaps: list[Problem] = []
        self.upon_fork: set[str] = set()
        self._by_id = log.by_id
        self._latest: dict[str, Latest] = {}
        self._rests_on: dict[str, int] = {}
        self._bit: dict[str, int] = {}
        self._naming = 0
        self._blocked_in: dict[str, str | None] = {}
        for event in log.by_id.values():
            self._take(event)

    def _take(self, event: LogEvent) -> None:
        seen = self.join(event.parents)
        rests_on = 0
        for parent in event.parents:
            rests_on |= self._rests_on[parent]
        if event.moves_lane:
            bit = self._bit[event.id] = 1 << len(self._bit)
            rests_on |= bit
            self._naming |= bit if event.type in _NAMING else 0
            if event.lane_to == "BLOCKED":
                self._blocked_in[event.id] = self._block_origin(event)
            seen = self._after_move(event, seen)
        self._latest[event.id] = seen
        self._rests_on[event.id] = rests_on

    def join(self, events: Iterable[str]) -> Latest:
        """The latest moves for a viewer who sees all these events."""
        views = [self._latest[identity] for identity in events]
        if len(views) == 1:
            return views[0]
        moves = dict.fromkeys(move for view in views for move in view)
        return tuple(move for move in moves if not any(self._covers(other, move) for other in moves))

    def lane(self, latest: Latest) -> str:
        """The lane that these moves agree on; FORKED if they do not; '' if there are none."""
        if len(latest) > 1 and self._contradict(latest):
            return FORKED
        return next((self._by_id[identity].lane_to or "" for identity in latest), "")

    def blocked_in(self, latest: Iterable[str]) -> str | None:
        """The lane from which a packet was blocked, if the latest moves that block it agree."""
        origins = {self._blocked_in[identity] for identity in latest if identity in self._blocked_in}
        return next(iter(origins)) if len(origins) == 1 else None

    def has_seen(self, event: LogEvent, moves: Iterable[str]) -> bool:
        """Whether the event depends on all these moves."""
        return all(self._rests_on[event.id] & self._bit[move] for move in moves)

    def since_fork(self, latest: Latest) -> Iterator[tuple[LogEvent, Sequence[LogEvent]]]:
        """For each of these moves, the moves on its branch since the last common one."""
        shared = self._shared(latest)
        for identity in latest:
            own = self._rests_on[identity] & ~shared
            yield self._by_id[identity], [self._by_id[move] for move, bit in self._bit.items() if own & bit]

    def _shared(self, latest: Latest) -> int:
        return reduce(and_, (self._rests_on[identity] for identity in latest))

    def _contradict(self, latest: Latest) -> bool:
        moves = [self._by_id[identity] for identity in latest]
        named = ("by", "contract", "refinement")
        if len({(m.type, m.lane_from, m.lane_to, *(str(m.data.get(key)) for key in named)) for m in moves}) > 1:
            return True
        shared = self._shared(latest)
        return any(self._rests_on[identity] & ~shared & self._naming for identity in latest)

    def _block_origin(self, event: LogEvent) -> str | None:
        """The lane in the block itself. A settlement is trusted about what it settled, not about where that was."""
        if event.type == "fork.resolved":
            return self.blocked_in(event.texts("moves"))
        return event.lane_from if event.type == "blocked" else event.text("came_from")

    def _covers(self, later: str, earlier: str) -> bool:
        # A move made upon a fork does not end the contradicting moves: they stand beside it.
        return earlier not in self._latest[later] and bool(self._rests_on[later] & self._bit[earlier])

    def _after_move(self, event: LogEvent, seen: Latest) -> Latest:
        before = self.lane(seen)
        if before == FORKED and not (event.type == "fork.resolved" and set(seen) <= set(event.texts("moves"))):
            kept = (identity for identity in seen if identity not in self.upon_fork)
            self.upon_fork.add(event.id)
            return (*kept, event.id)
        if (event.lane_from or "") != before:
            message = f"{event.type} leaves {event.lane_from}, but the packet was in {before or 'no lane'}"
            self.gaps.append(fault("log_lane_gap", event.path, message))
        return (event.id,)


def _forked(log: Log, latest: Iterable[LogEvent]) -> Problem:
    moves = "; ".join(
        f"{move.type} by {move.actor.id} to {move.lane_to} ({move.id[:12]}, {move.at})"
        for move in sorted(latest, key=lambda move: move.order)
    )
    return fault("packet_forked", f"{LOG_FOLDER}/{log.packet}", f"{log.packet} was moved independently: {moves}")


def _upon_fork(move: LogEvent) -> Problem:
    message = f"{move.type} to {move.lane_to} was recorded while the packet was forked, and does not settle it"
    return fault("log_moved_while_forked", move.path, message)
