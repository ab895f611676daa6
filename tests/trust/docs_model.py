"""Which histories of a packet are legal, as docs/approvals/moves.md and format.md say it: nothing else was read.

A history is a list of events in which each stands behind its parents. Pure, and without a line of the product, so that
the two can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

NO_LANE = ""
OPEN = ("READY_FOR_DEV", "IN_PROGRESS", "IN_REVIEW", "MERGE_PENDING")
LANES = ("STUB", *OPEN, "BLOCKED", "FAIL", "VALIDATED", "OUTDATED_ONLY", "SUPERSEDED", "ABANDONED")

# (event, verdict): from which lanes, and to which one. `unblocked` and `fork.resolved` have rules of their own.
TABLE: Mapping[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("created", ""): ((NO_LANE,), "STUB"),
    ("activated", ""): (("STUB",), "READY_FOR_DEV"),
    ("claimed", ""): (("READY_FOR_DEV", "FAIL"), "IN_PROGRESS"),
    ("released", ""): (("IN_PROGRESS",), "READY_FOR_DEV"),
    ("handed_over", ""): (("IN_PROGRESS",), "READY_FOR_DEV"),
    ("submitted", ""): (("IN_PROGRESS",), "IN_REVIEW"),
    ("verdict.given", "PASS"): (("IN_REVIEW",), "MERGE_PENDING"),
    ("verdict.given", "CHANGES"): (("IN_REVIEW",), "IN_PROGRESS"),
    ("verdict.given", "FAIL"): (("IN_REVIEW",), "FAIL"),
    ("verdict.given", "OUTDATED_ONLY"): (("IN_REVIEW", "VALIDATED"), "OUTDATED_ONLY"),
    ("merged", ""): (("MERGE_PENDING",), "VALIDATED"),
    ("reopened", ""): (("MERGE_PENDING",), "IN_PROGRESS"),
    ("blocked", ""): (OPEN, "BLOCKED"),
    ("superseded", ""): (tuple(set(LANES) - {"SUPERSEDED", "ABANDONED"}), "SUPERSEDED"),
    ("abandoned", ""): (
        tuple(set(LANES) - {"VALIDATED", "OUTDATED_ONLY", "SUPERSEDED", "ABANDONED"}), "ABANDONED",
    ),
}  # fmt: skip
NAMES_SOMETHING = frozenset(
    {"claimed", "released", "handed_over", "submitted", "merged", "verdict.given", "fork.resolved"}
)
SAYS_WHO_HOLDS = frozenset({"released", "handed_over", "merged", "superseded", "abandoned", "fork.resolved"})


class Event(NamedTuple):
    """One event of a log. Without `lane_to` it moves nothing."""

    name: str
    type: str
    parents: frozenset[str]
    lane_from: str = ""
    lane_to: str = ""
    verdict: str = ""
    signed: bool = False  # whether the verdict uses an approval
    holder: str = ""
    subject: str = ""  # the successor, contract or refinement that it names
    moves: frozenset[str] = frozenset()  # of `fork.resolved`: what it settles
    came_from: str = ""  # what it says about where the packet was blocked, if anything
    approvals: tuple[frozenset[str], ...] = ()  # the heads that each approval saw that it uses


class History:
    """A log whose events are legal or not; `base` names the events that the base has."""

    def __init__(self, events: Iterable[Event], base: frozenset[str] = frozenset(), *, gate: bool = False) -> None:
        self.events = {event.name: event for event in events}
        self._base_moves = frozenset(name for name in base if self.events[name].lane_to)
        self._base = base
        self._gate = gate  # whether the policy names the gate `resolve`
        self._seen: dict[str, frozenset[str]] = {}
        for event in self.events.values():
            self._seen[event.name] = self.closure(event.parents)

    def closure(self, heads: Iterable[str]) -> frozenset[str]:
        """These events, and all that they have seen."""
        found: set[str] = set()
        for head in heads:
            found |= {head} | self._seen[head]
        return frozenset(found)

    def objections(self) -> Iterator[str]:
        """Which rules of docs/approvals/moves.md new events break, and the end; what the base has was judged before."""
        for event in self.events.values():
            if event.name not in self._base:
                yield from self._unseen(event)
                if event.lane_to:
                    yield from self._wrong(event)
        if self.lane() is None:
            yield "6: it ends in a fork"

    def lane(self, view: frozenset[str] | None = None) -> str | None:
        """The lane of a view, of the whole if none is given; None if it is forked there."""
        latest = self.latest(view)
        if not latest:
            return NO_LANE
        return latest[0].lane_to if self._agree(latest) else None

    def _unseen(self, event: Event) -> Iterator[str]:
        views = [self._seen[event.name]] if event.lane_to else []
        if any(not self._base_moves <= view for view in (*views, *map(self.closure, event.approvals))):
            yield "5: it has not seen every move of the base"

    def _wrong(self, event: Event) -> Iterator[str]:
        view = self._seen[event.name]
        lane = self.lane(view)
        froms, to = TABLE.get((event.type, event.verdict), ((), ""))
        if event.type == "fork.resolved":
            yield from self._wrong_settlement(event, view)
        elif lane is None:
            yield "1: only a settlement may follow a fork"
        elif event.lane_from != lane:
            yield "1: it starts from another lane"
        elif event.type == "unblocked":
            yield from self._wrong_return(event, view)
        elif lane not in froms or event.lane_to != to:
            yield "1: the table has no such row"

    # ---- forks ---------------------------------------------------------------------------------------------------

    def latest(self, view: frozenset[str] | None = None) -> list[Event]:
        moves = [event for name, event in self.events.items() if (view is None or name in view) and event.lane_to]
        seen = frozenset().union(*(self._seen[move.name] for move in moves))
        return [move for move in moves if move.name not in seen]

    def _branch(self, move: Event, latest: Sequence[Event]) -> Iterator[Event]:
        """What is on the branch of one of the latest moves since the last move that all of them have seen."""
        common = frozenset.intersection(*(self._seen[other.name] for other in latest))
        shared = self.closure(name for name in common if self.events[name].lane_to)
        return (self.events[name] for name in self.closure([move.name]) - shared)

    def _agree(self, latest: Sequence[Event]) -> bool:
        if len(latest) == 1:
            return True
        if len({(move.type, move.lane_from, move.lane_to, move.subject) for move in latest}) > 1:
            return False
        return not any(event.type in NAMES_SOMETHING for move in latest for event in self._branch(move, latest))

    def _wrong_settlement(self, event: Event, view: frozenset[str]) -> Iterator[str]:
        latest = self.latest(view)
        if not latest or self._agree(latest):
            yield "3: there is no fork"
            return
        if event.moves != {move.name for move in latest}:
            yield "3: it settles other moves"
        if event.lane_to not in {move.lane_to for move in latest}:
            yield "3: none of the moves leads there"
        if event.lane_to == "SUPERSEDED" and len({move.subject for move in latest if move.lane_to == "SUPERSEDED"}) > 1:
            yield "3: the moves name several packets"
        places = self.blocked_in(event) if event.lane_to == "BLOCKED" else frozenset({""})
        if len(places) != 1 or event.came_from not in {"", *places}:
            yield "3: the blocks come from several lanes, or from another"
        before = frozenset.intersection(*(self._seen[move.name] for move in latest))
        if event.holder and event.holder not in {self._holder(before), *(self._held_after(move) for move in latest)}:
            yield "3: the holder held nothing"
        drops = any(
            other.type == "verdict.given" and other.signed and event.lane_to != move.lane_to
            for move in latest
            for other in self._branch(move, latest)
        )
        if self._gate and not event.approvals:
            yield "4: the gate asks for an approval"
        if drops and not self._gate:
            yield "4: a signed verdict is dropped"

    # ---- where it was blocked, and who held it -------------------------------------------------------------------

    def _wrong_return(self, event: Event, view: frozenset[str]) -> Iterator[str]:
        places = {place for move in self.latest(view) for place in self.blocked_in(move)}
        if event.lane_from != "BLOCKED" or places != {event.lane_to} or event.came_from not in {"", *places}:
            yield "2: it does not lead back to where it was blocked"

    def blocked_in(self, move: Event) -> frozenset[str]:
        """Rule 2: from which lane a move that leads to BLOCKED comes; several where a settlement is illegal."""
        if move.type == "blocked":
            return frozenset({move.lane_from})
        settled = (self.events[name] for name in move.moves)
        return frozenset(place for one in settled if one.lane_to == "BLOCKED" for place in self.blocked_in(one))

    def _held_after(self, move: Event) -> str:
        if move.type in SAYS_WHO_HOLDS or move.verdict in {"FAIL", "OUTDATED_ONLY"}:
            return move.holder
        return move.holder or self._holder(self._seen[move.name])

    def _holder(self, view: frozenset[str]) -> str:
        holders = {self._held_after(move) for move in self.latest(view)}
        return holders.pop() if len(holders) == 1 else ""
