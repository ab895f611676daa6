"""Every history up to three branches and four moves, asked of the product and of the model: where do they differ?

`PYTHONPATH=tools:tests python -m trust.enumerate_moves [--every N] [--from N] [--show N]` takes every Nth history. The
order is fixed, so shares with the same N and different beginnings add up to the whole.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from trust.docs_model import Event, History
from workpacket.ledger.fold import fold
from workpacket.ledger.log import EventWriter, NewLogEvent, join_events, next_event, read_log
from workpacket.lifecycle.change_checks import SubmittedWork
from workpacket.lifecycle.event_checks import Around, judge_change
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.canonical import Json
from workpacket.model.events import Actor, LogEvent

PACKET = "WP-1-Parser-v1"
DIGEST = "a" * 64
MOST_MOVES, MOST_BRANCHES = 4, 3
FORKED = "FORKED"  # what the product's commands write as the lane that a settlement leaves


def new_event(at: int, type_: str, origin: str, target: str, parents: Iterable[int], **more: Any) -> Event:
    """Its name is its place."""
    return Event(str(at), type_, frozenset(map(str, parents)), origin, target, **more)


# From where histories begin: what the base has had for long.
READY = (new_event(0, "created", "", "STUB", ()), new_event(1, "activated", "STUB", "READY_FOR_DEV", (0,), signed=True))
IN_REVIEW = (
    *READY,
    new_event(2, "claimed", "READY_FOR_DEV", "IN_PROGRESS", (1,), holder="coder"),
    new_event(3, "submitted", "IN_PROGRESS", "IN_REVIEW", (2,)),
)
MERGE_PENDING = (
    *IN_REVIEW,
    new_event(4, "verdict.given", "IN_REVIEW", "MERGE_PENDING", (3,), verdict="PASS", signed=True),
)
BEGINNINGS = (READY, IN_REVIEW, MERGE_PENDING)
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


@cache
def all_histories() -> tuple[tuple[tuple[Event, ...], frozenset[str]], ...]:
    """To make them takes as long as to judge one in a hundred of them."""
    return tuple(histories())


def histories() -> Iterator[tuple[tuple[Event, ...], frozenset[str]]]:
    """Each with the names of the moves that the base has: those it begins with, and the first few of the others."""
    for beginning in BEGINNINGS:
        old = len(beginning)
        for events in _longer(beginning, old):
            for landed in range(len(events) - old):
                yield events, frozenset(map(str, range(old + landed)))


def _longer(events: tuple[Event, ...], old: int) -> Iterator[tuple[Event, ...]]:
    if len(events) > old:
        yield events
    if len(events) - old == MOST_MOVES:
        return
    history = History(events)
    for parents in _parents(history, old):
        view = history.closure(map(str, parents))
        lane = history.lane(view)
        tried = _settlements(history, view, parents) if lane is None else _moves(len(events), lane, parents)
        for event in tried:
            if len(History((*events, event)).latest()) <= MOST_BRANCHES:
                yield from _longer((*events, event), old)


def _parents(history: History, old: int) -> Iterator[tuple[int, ...]]:
    """Sets of moves none of which has seen another, none of them older than the last that all begin with."""
    places = range(old - 1, len(history.events))
    for count in range(1, MOST_BRANCHES + 1):
        for chosen in itertools.combinations(places, count):
            if len(history.latest(history.closure(map(str, chosen)))) == count:
                yield chosen


def _moves(at: int, lane: str, parents: tuple[int, ...]) -> Iterator[Event]:
    for kind, target, holder in TRIED.get(lane, ()):
        verdict = kind if kind.isupper() else ""
        type_ = "verdict.given" if verdict else kind
        yield new_event(at, type_, lane, target, parents, verdict=verdict, holder=holder, signed=bool(verdict))


def _settlements(history: History, view: frozenset[str], parents: tuple[int, ...]) -> Iterator[Event]:
    """In each lane of the latest moves and one of none; of all of them, of one less, of one more; with inventions."""
    latest = sorted(history.latest(view), key=_place)
    names = frozenset(event.name for event in latest)
    approval = frozenset(map(str, parents))
    for target in sorted({event.lane_to for event in latest}):
        settled = partial(settlement, history, parents, target)
        blocks = [event for event in latest if event.lane_to == target == "BLOCKED"]
        yield settled()
        yield settled(approvals=(approval,))
        for lane in sorted({"VALIDATED"}.union(*map(history.blocked_in, blocks))) if blocks else ():
            yield settled(came_from=lane)
        for holder in sorted({"eve", *(history.events[name].holder for name in view)} - {""}):
            yield settled(holder=holder)
        if len(latest) > 2:
            yield settled(moves=frozenset(event.name for event in latest[:2]))
    older = max((history.events[name] for name in view - names), key=_place)
    yield settlement(history, parents, older.lane_to, moves=frozenset({older.name, *names}))
    yield settlement(history, parents, "VALIDATED")


def settlement(history: History, parents: tuple[int, ...], target: str, **more: Any) -> Event:
    """The next event: of all the latest moves that it sees, if it does not say which."""
    latest = history.latest(history.closure(map(str, parents)))
    said = {"moves": frozenset(event.name for event in latest), **more}
    return new_event(len(history.events), "fork.resolved", FORKED, target, parents, **said)


def _place(event: Event) -> int:
    return int(event.name)


def model_answer(events: Sequence[Event], base: frozenset[str]) -> tuple[list[str], str]:
    """The same of the model. A settlement with an approval is one where the policy names the gate `resolve`."""
    gate = any(event.type == "fork.resolved" and event.approvals for event in events)
    history = History(events, base, gate=gate)
    return list(history.objections()), history.lane() or FORKED


def product_answer(history: Sequence[Event], base: frozenset[str]) -> tuple[list[str], str]:
    """What `check --base` says of the moves, every gate beside them open, and in which lane they end."""
    events: list[LogEvent] = []
    for at, event in enumerate(history):
        parents = [events[int(parent)] for parent in sorted(event.parents, key=int)]
        writer = EventWriter(Actor(_writer(at, event, events), "agent"), f"2026-03-01T08:00:{at:02}Z", _tx(at), "model")
        attest = ("b" * 64,) if event.signed or event.approvals else ()
        events.append(
            next_event(writer, PACKET, NewLogEvent(event.type, _data(event, events), (), attest), after=parents)
        )
    log = read_log(PACKET, {f"{event.id}.json": event.encode() for event in events})
    known = frozenset(events[int(name)].id for name in base)
    around = Around({}, (), lambda _: True, lambda _: SubmittedWork(("It works.",), (), ()), tuple)
    judged = judge_change(
        log,
        known,
        lambda _: DIGEST,
        lambda: around,
        clock="2026-06-01T00:00:00Z",
        governed=True,
        reports=(),
        policy=LifecyclePolicy(),
    )
    state = fold(log)
    said = [f"{one.code} {one.message}" for one in judged]
    said += [f"{one.code} {one.message}" for one in state.findings if one.severity == "error"]
    return said, state.lane


def _writer(at: int, move: Event, events: list[LogEvent]) -> str:
    """Who holds the packet, for what only they may write: the model says nothing of writers."""
    if move.type not in {"submitted", "released"}:
        return f"writer-{at}"
    log = join_events(PACKET, events)
    lease = fold(log.as_of(events[int(parent)].id for parent in move.parents)).lease
    return lease.holder if lease is not None else f"writer-{at}"


def _tx(at: int) -> str:
    return f"0190a5de-ac96-774b-bcce-{at:012x}"


def _data(move: Event, events: list[LogEvent]) -> dict[str, Json]:
    lanes: dict[str, Json] = {"lane_from": move.lane_from or None, "lane_to": move.lane_to}
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
        "fork.resolved": {"moves": sorted(events[int(name)].id for name in move.moves), "reason": "x"}
        | (lease if move.holder else {}),
    }
    reasons: dict[str, Json] = {"reason": "x", **({"until": "y"} if move.type == "blocked" else {})}
    without = {"unblocked"}
    found = more.get(move.type, {} if move.type in without else reasons)
    return {**lanes, **found, **({"came_from": move.came_from} if move.came_from else {})}


def differences(every: int = 1, beginning: int = 0) -> Iterator[tuple[str, tuple[Event, ...], frozenset[str]]]:
    """For each Nth history what differs, and the history; '' where product and model answer alike."""
    for events, base in all_histories()[beginning::every]:
        model, its_lane = model_answer(events, base)
        product, lane = product_answer(events, base)
        if bool(model) != bool(product):
            said = f"the product accepts: {model[0]}" if model else f"the product refuses: {product[0][:60]}"
            yield said, events, base
        elif not model and lane != its_lane:
            yield f"the product says {lane}, the model {its_lane}", events, base
        else:
            yield "", events, base


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="beginning")
    parser.add_argument("--show", type=int, default=3, help="so many differences of each kind")
    options = parser.parse_args()
    asked, kinds = 0, Counter[str]()
    for kind, events, base in differences(options.every, options.beginning):
        asked += 1
        if not kind:
            continue
        kinds[kind] += 1
        if kinds[kind] <= options.show:
            print(kind, *(f"  {'(base) ' if event.name in base else ''}{event}" for event in events), sep="\n")
    for kind, count in kinds.most_common():
        print(f"{count:8}  {kind}")
    print(f"{kinds.total()} of {asked} histories are answered otherwise")
    return 1 if kinds else 0


if __name__ == "__main__":
    raise SystemExit(main())
