"""Which moves are legal in which history: docs/approvals/moves.md in Python, and nothing of the product.

`objections(history, base)` names every rule of the page that a history breaks. Slow on purpose: every view is computed
anew from the parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

FORKED = "FORKED"
_WORK = ("READY_FOR_DEV", "IN_PROGRESS", "IN_REVIEW", "MERGE_PENDING")
_ALL = ("STUB", *_WORK, "BLOCKED", "VALIDATED", "FAIL", "OUTDATED_ONLY", "SUPERSEDED", "ABANDONED")
TABLE: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("created", ""): (("",), "STUB"),
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
    ("blocked", ""): (_WORK, "BLOCKED"),
    ("superseded", ""): (tuple(lane for lane in _ALL if lane not in {"SUPERSEDED", "ABANDONED"}), "SUPERSEDED"),
    ("abandoned", ""): (("STUB", *_WORK, "BLOCKED", "FAIL"), "ABANDONED"),
}
_NAMING = frozenset({"claimed", "released", "handed_over", "submitted", "merged", "verdict.given", "fork.resolved"})


@dataclass(frozen=True)
class Move:
    """One move. Parents and `moves` are places in the history; `signed` says that an approval stands behind it."""

    type: str
    origin: str
    target: str
    parents: tuple[int, ...]
    verdict: str = ""
    holder: str = ""
    moves: tuple[int, ...] = ()
    came_from: str = ""
    signed: bool = False


class History:
    def __init__(self, moves: Sequence[Move]) -> None:
        self.moves = moves
        self._seen: list[frozenset[int]] = []
        for move in moves:
            self._seen.append(self.view(move.parents))

    def view(self, heads: Iterable[int]) -> frozenset[int]:
        """All moves that somebody sees who sees these."""
        return frozenset(one for head in heads for one in (head, *self._seen[head]))

    def seen(self, at: int) -> frozenset[int]:
        return self._seen[at]

    def latest(self, view: frozenset[int]) -> frozenset[int]:
        return view - frozenset(earlier for move in view for earlier in self._seen[move])

    def since(self, latest: frozenset[int]) -> Iterator[tuple[int, frozenset[int]]]:
        """For each latest move: what lies on its branch since the last move that all of them have seen."""
        shared = frozenset.intersection(*(self._seen[move] | {move} for move in latest))
        for move in latest:
            yield move, (self._seen[move] | {move}) - shared

    def lane(self, view: frozenset[int]) -> str:
        latest = self.latest(view)
        if not latest:
            return ""
        said = {(self.moves[at].type, self.moves[at].origin, self.moves[at].target) for at in latest}
        if len(latest) > 1:
            named = {self.moves[one].type for _, branch in self.since(latest) for one in branch}
            if len(said) > 1 or named & _NAMING:
                return FORKED
        return next(iter(said))[2]

    def blocked_in(self, view: frozenset[int]) -> str:
        """Rule 2. '' where nothing says it."""
        for at in sorted(self.latest(view)):
            move = self.moves[at]
            if move.type == "blocked":
                return move.origin
            if move.type == "fork.resolved":
                blocks = [self.moves[one] for one in move.moves if self.moves[one].target == "BLOCKED"]
                origins = {self._block_origin(one) for one in move.moves if self.moves[one].target == "BLOCKED"}
                return next(iter(origins)) if blocks and len(origins) == 1 else ""
        return ""

    def _block_origin(self, at: int) -> str:
        move = self.moves[at]
        return move.origin if move.type == "blocked" else self.blocked_in(frozenset({at, *self._seen[at]}))

    def holder(self, view: frozenset[int]) -> set[str]:
        """Who may hold the packet after a fork: the holders of its branches, and who held it before."""
        return {self.moves[at].holder for at in view if self.moves[at].holder}

    def block_origins(self, latest: Iterable[int]) -> set[str]:
        return {self._block_origin(at) for at in latest if self.moves[at].target == "BLOCKED"}


def objections(moves: Sequence[Move], base: frozenset[int]) -> list[str]:
    """What is wrong with a history whose moves in `base` stand on the base already; [] if it may land."""
    history = History(moves)
    found = [
        f"{at}: {said}" for at in range(len(moves)) if at not in base for said in _objections_to(history, at, base)
    ]
    if history.lane(frozenset(range(len(moves)))) == FORKED:
        found.append("rule 6: the history ends in a fork")
    return found


def _objections_to(history: History, at: int, base: frozenset[int]) -> Iterator[str]:
    move, view = history.moves[at], history.seen(at)
    lane = history.lane(view)
    if not base <= view:
        yield "rule 5: it has not seen every move of the base"
    if move.type == "fork.resolved":
        yield from _settlement(history, move, view)
        return
    if lane == FORKED:
        yield "rule 1: a fork is settled before anything else moves"
    elif move.origin != lane:
        yield f"rule 1: it leaves {move.origin}, and the packet was in {lane or 'no lane'}"
    elif move.type == "unblocked":
        if move.target != history.blocked_in(view) or move.origin != "BLOCKED":
            yield "rule 2: it does not lead back to where the packet was blocked"
    else:
        origins, target = TABLE.get((move.type, move.verdict), ((), ""))
        if move.origin not in origins or move.target != target:
            yield "rule 1: the table has no such row"


def _settlement(history: History, move: Move, view: frozenset[int]) -> Iterator[str]:
    latest = history.latest(view)
    if history.lane(view) != FORKED:
        yield "rule 3: there is no fork to settle"
        return
    if frozenset(move.moves) != latest:
        yield "rule 3: it does not name exactly the latest moves"
    if move.target not in {history.moves[one].target for one in latest}:
        yield "rule 3: it leads to a lane of none of them"
    if move.target == "BLOCKED":
        origins = history.block_origins(latest)
        if len(origins) != 1:
            yield "rule 3: the blocks come from several lanes"
        if move.came_from and {move.came_from} != origins:
            yield "rule 2: it says another lane than the block does"
    elif move.came_from:
        yield "rule 2: it says where a packet was blocked that is not"
    if move.holder and move.holder not in history.holder(view):
        yield "rule 3: it names a holder of none of them"
    if not move.signed and any(_dropped(history, move, latest)):
        yield "rule 4: it drops a signed verdict without an approval"


def _dropped(history: History, move: Move, latest: frozenset[int]) -> Iterator[int]:
    if len(latest) < 2:
        return
    for tip, branch in history.since(latest):
        if history.moves[tip].target != move.target:
            yield from (
                one for one in branch if history.moves[one].type == "verdict.given" and history.moves[one].signed
            )
