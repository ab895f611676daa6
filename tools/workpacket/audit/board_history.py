"""How many packets stood in each lane as time went by, by the times that the log gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from workpacket.model.event_types import FORKED
from workpacket.model.lanes import LaneTable
from workpacket.plans.facts import PacketFacts
from workpacket.value import Value

_POINTS = 60
_SHORTEST = timedelta(minutes=1)


class Point(Value):
    """The lanes at a moment, in the order of `lane_order`."""

    at: str
    counts: tuple[int, ...]


def lane_order(packets: Iterable[PacketFacts], lanes: LaneTable) -> tuple[str, ...]:
    """The lanes of the policy, then those that the logs name besides, then what is in none."""
    told = {event.lane_to or "" for packet in packets for event in packet.state.history if event.moves_lane}
    return (*lanes.tokens, *sorted(told - {"", FORKED, *lanes.tokens}), FORKED)


def board_history(packets: Iterable[PacketFacts], order: Sequence[str]) -> list[Point]:
    """At most some sixty moments between the first move and the last, evenly spaced."""
    told = [event for packet in packets for event in packet.state.history if event.moves_lane]
    # Of moves at the same time, those of one packet stay in the order of its log.
    moves = [(event.at, event.packet, event.lane_to or "") for event in sorted(told, key=lambda event: event.at)]
    if not moves:
        return []
    points: list[Point] = []
    lanes: dict[str, str] = {}
    counts: Counter[str] = Counter()
    waiting = iter([*moves, None])
    move = next(waiting)
    for written in _moments(moves[0][0], moves[-1][0]):
        while move is not None and move[0] <= written:
            counts[lanes.get(move[1], "")] -= 1
            lanes[move[1]] = move[2]
            counts[move[2]] += 1
            move = next(waiting)
        points.append(Point(written, tuple(max(counts[lane], 0) for lane in order)))
    return points


def _moments(first: str, last: str) -> list[str]:
    begin = datetime.fromisoformat(first)
    span = datetime.fromisoformat(last) - begin
    steps = max(1, min(_POINTS, span // _SHORTEST))
    return [*((begin + span * step / steps).strftime("%Y-%m-%dT%H:%M:%SZ") for step in range(steps)), last]
