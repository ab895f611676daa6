"""Every history up to three branches and four moves, asked of the product and of the model: where do they differ?

`PYTHONPATH=tools:tests python -m trust.enumerate_moves [--every N] [--from N] [--show N]` takes every Nth history. The
order is fixed, so shares with the same N and different beginnings add up to the whole.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterator

from trust.move_model import FORKED, History, Move, objections
from workpacket.ledger.fold import fold
from workpacket.ledger.log import EventWriter, NewLogEvent, join_events, next_event, read_log
from workpacket.lifecycle.event_checks import Around, judge_change
from workpacket.lifecycle.submission_checks import SubmittedWork
from workpacket.model.canonical import Json
from workpacket.model.events import Actor, LogEvent

PACKET = "WP-1-Parser-v1"
DIGEST = "a" * 64
MOST_MOVES, MOST_BRANCHES = 4, 3
# From where histories begin: what the base has had for long.
BEGINNINGS: dict[str, tuple[Move, ...]] = {
    "READY_FOR_DEV": (Move("created", "", "STUB", ()), Move("activated", "STUB", "READY_FOR_DEV", (0,), signed=True)),
}
BEGINNINGS["IN_REVIEW"] = (
    *BEGINNINGS["READY_FOR_DEV"],
    Move("claimed", "READY_FOR_DEV", "IN_PROGRESS", (1,), holder="coder"),
    Move("submitted", "IN_PROGRESS", "IN_REVIEW", (2,)),
)
BEGINNINGS["MERGE_PENDING"] = (
    *BEGINNINGS["IN_REVIEW"],
    Move("verdict.given", "IN_REVIEW", "MERGE_PENDING", (3,), verdict="PASS", signed=True),
)
# What is tried in each lane, legal or not; in a fork what `_settlements` makes.
TRIED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "READY_FOR_DEV": (("claimed", "IN_PROGRESS", "ann"), ("claimed", "IN_PROGRESS", "bob"), ("blocked", "BLOCKED", "")),
    "IN_PROGRESS": (("submitted", "IN_REVIEW", ""), ("released", "READY_FOR_DEV", ""), ("blocked", "BLOCKED", "")),
    "IN_REVIEW": (
        ("PASS", "MERGE_PENDING", ""),
        ("FAIL", "FAIL", ""),
        ("CHANGES", "IN_PROGRESS", ""),
        ("blocked", "BLOCKED", ""),
    ),
    "MERGE_PENDING": (("merged", "VALIDATED", ""), ("reopened", "IN_PROGRESS", ""), ("blocked", "BLOCKED", "")),
    "BLOCKED": tuple(("unblocked", lane, "") for lane in ("READY_FOR_DEV", "IN_REVIEW", "VALIDATED")),
    "FAIL": (("claimed", "IN_PROGRESS", "ann"), ("abandoned", "ABANDONED", "")),
    "VALIDATED": (("OUTDATED_ONLY", "OUTDATED_ONLY", ""), ("claimed", "IN_PROGRESS", "ann")),
}


def histories() -> Iterator[tuple[tuple[Move, ...], frozenset[int]]]:
    """Each with the places of the moves that the base has: those it begins with, and the first few of the others."""
    for beginning in BEGINNINGS.values():
        old = len(beginning)
        for moves in _longer(beginning, old):
            for landed in range(len(moves) - old):
                yield moves, frozenset(range(old + landed))


def _longer(moves: tuple[Move, ...], old: int) -> Iterator[tuple[Move, ...]]:
    if len(moves) > old:
        yield moves
    if len(moves) - old == MOST_MOVES:
        return
    history = History(moves)
    for parents in _parents(history, old):
        view = history.view(parents)
        lane = history.lane(view)
        tried = _settlements(history, view, parents) if lane == FORKED else _moves(lane, parents)
        for move in tried:
            if _branches((*moves, move)) <= MOST_BRANCHES:
                yield from _longer((*moves, move), old)


def _parents(history: History, old: int) -> Iterator[tuple[int, ...]]:
    """Sets of moves none of which has seen another, none of them older than the last that all begin with."""
    places = range(old - 1, len(history.moves))
    for count in range(1, MOST_BRANCHES + 1):
        for chosen in itertools.combinations(places, count):
            if not any(one in history.seen(other) for one in chosen for other in chosen):
                yield chosen


def _branches(moves: tuple[Move, ...]) -> int:
    return len(History(moves).latest(frozenset(range(len(moves)))))


def _moves(lane: str, parents: tuple[int, ...]) -> Iterator[Move]:
    for kind, target, holder in TRIED.get(lane, ()):
        verdict = kind if kind.isupper() else ""
        yield Move("verdict.given" if verdict else kind, lane, target, parents, verdict, holder, signed=bool(verdict))


def _settlements(history: History, view: frozenset[int], parents: tuple[int, ...]) -> Iterator[Move]:
    """In each lane of the latest moves and one of none; of all of them, of one less, of one more; with inventions."""
    latest = tuple(sorted(history.latest(view)))
    targets = sorted({history.moves[at].target for at in latest})
    for target in targets:
        said = {"VALIDATED", *history.block_origins(latest)} if target == "BLOCKED" else set()
        yield Move("fork.resolved", FORKED, target, parents, moves=latest)
        yield Move("fork.resolved", FORKED, target, parents, moves=latest, signed=True)
        for lane in sorted(said):
            yield Move("fork.resolved", FORKED, target, parents, moves=latest, came_from=lane)
        if len(latest) > 2:
            yield Move("fork.resolved", FORKED, target, parents, moves=latest[:2])
    older = max(view - set(latest))
    yield Move("fork.resolved", FORKED, history.moves[older].target, parents, moves=(older, *latest))
    yield Move("fork.resolved", FORKED, "VALIDATED", parents, moves=latest)


def product_objections(moves: tuple[Move, ...], base: frozenset[int]) -> list[str]:
    """What `check --base` says of the moves; every gate beside them is open."""
    events: list[LogEvent] = []
    for at, move in enumerate(moves):
        parents = [events[parent] for parent in move.parents]
        writer = EventWriter(Actor(_writer(at, move, events), "agent"), f"2026-03-01T08:00:{at:02}Z", _tx(at), "model")
        attest = ("b" * 64,) if move.signed else ()
        events.append(
            next_event(writer, PACKET, NewLogEvent(move.type, _data(move, events), (), attest), after=parents)
        )
    log = read_log(PACKET, {f"{event.id}.json": event.encode() for event in events})
    known = frozenset(events[at].id for at in base)
    around = Around({}, (), lambda _: True, lambda _: SubmittedWork(("It works.",), (), ()), tuple)
    judged = judge_change(log, known, lambda _: DIGEST, lambda: around, governed=True, reports=())
    said = [f"{one.code} {one.message}" for one in judged]
    return said + [f"{one.code} {one.message}" for one in fold(log).findings if one.severity == "error"]


def _writer(at: int, move: Move, events: list[LogEvent]) -> str:
    """Who holds the packet, for what only they may write: the model says nothing of holders."""
    if move.type not in {"submitted", "released"}:
        return f"writer-{at}"
    log = join_events(PACKET, events)
    lease = fold(log.as_of(events[parent].id for parent in move.parents)).lease
    return lease.holder if lease is not None else f"writer-{at}"


def _tx(at: int) -> str:
    return f"0190a5de-ac96-774b-bcce-{at:012x}"


def _data(move: Move, events: list[LogEvent]) -> dict[str, Json]:
    lanes: dict[str, Json] = {"lane_from": move.origin or None, "lane_to": move.target}
    lease: dict[str, Json] = {"holder": move.holder, "lease": f"l-{move.holder}", "expires_at": "2026-03-02T00:00:00Z"}
    file: Json = {"path": ".GOV/x.md", "sha256": DIGEST}
    met: Json = [{"criterion": "It works.", "result": "met", "command": "true", "exit_code": 0}]
    merged: dict[str, Json] = {"commit": "c" * 40, "target": "main", "target_commit": "c" * 40, "proof": "commit"}
    more: dict[str, dict[str, Json]] = {
        "created": {"base": "WP-1-Parser"},
        "activated": {"refinement": file, "checklist": []},
        "claimed": lease,
        "submitted": {"commit": "c" * 40, "evidence": met},
        "verdict.given": {"verdict": move.verdict, "report": file},
        "merged": merged,
        "fork.resolved": {"moves": sorted(events[at].id for at in move.moves), "reason": "x"},
    }
    reasons: dict[str, Json] = {"reason": "x", **({"until": "y"} if move.type == "blocked" else {})}
    without = {"unblocked"}
    found = more.get(move.type, {} if move.type in without else reasons)
    return {**lanes, **found, **({"came_from": move.came_from} if move.came_from else {})}


def differences(every: int = 1, beginning: int = 0) -> Iterator[tuple[str, tuple[Move, ...], frozenset[int]]]:
    """For each Nth history what differs, and the history; '' where product and model answer alike."""
    for moves, base in itertools.islice(histories(), beginning, None, every):
        model, product = objections(moves, base), product_objections(moves, base)
        if bool(model) == bool(product):
            yield "", moves, base
        elif model:
            yield f"the product accepts: {model[0].partition(': ')[2]}", moves, base
        else:
            yield f"the product refuses: {product[0][:60]}", moves, base


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="beginning")
    parser.add_argument("--show", type=int, default=3, help="so many differences of each kind")
    options = parser.parse_args()
    asked, kinds = 0, Counter[str]()
    for kind, moves, base in differences(options.every, options.beginning):
        asked += 1
        if not kind:
            continue
        kinds[kind] += 1
        if kinds[kind] <= options.show:
            print(kind, *(f"  {at}{' (base)' if at in base else ''} {move}" for at, move in enumerate(moves)), sep="\n")
    for kind, count in kinds.most_common():
        print(f"{count:8}  {kind}")
    print(f"{kinds.total()} of {asked} histories are answered otherwise")
    return 1 if kinds else 0


if __name__ == "__main__":
    raise SystemExit(main())
