"""Deleting, pruning and copying. What is kept and rests on what goes is first written whole; then payloads are erased.

All of one call is one append, so that a crash leaves the thread as it was or as it was asked to be; payloads that a
crash left behind are erased by whoever writes to the thread next.

A channel that LangGraph itself keeps as deltas (`DeltaChannel`) is put together from what its ancestors wrote. Those
ancestors are kept by `prune`, and to delete the run that made them is refused, because nobody would notice the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from workpacket.runtime.errors import RunBlocked, StoreUnavailable, VersionConflict
from workpacket.runtime.langgraph.history import Record, Saved
from workpacket.runtime.langgraph.parcels import CheckpointParts, packed, renamed
from workpacket.runtime.langgraph.records import DELETED, Place
from workpacket.runtime.langgraph.thread import Thread
from workpacket.runtime.records.events import NewEvent

Parts = Callable[[Thread, Saved], CheckpointParts]
TRIES = 100
COUNTERS = "counters_since_delta_snapshot"  # LangGraph's word for the channels that it keeps as deltas


def remove(thread: Thread, choose: Callable[[], Set[Place]], reason: str) -> None:
    """Delete the checkpoints that `choose` names, and the writes after them, and erase what they held."""
    for _ in range(TRIES):
        history = thread.catch_up()
        doomed = choose()
        if not doomed:
            return thread.erase()
        gone = {record.origin: record for place in doomed for record in history.records_of(place)}
        kept = [r for r in history.records.values() if r.origin not in gone and not gone.keys().isdisjoint(r.sources)]
        erased = sorted(record.event.version for record in (*gone.values(), *kept))
        data: dict[str, Any] = {
            "checkpoints": [list(place) for place in sorted(doomed)], "records": erased,
            "reason": reason, "by": thread.pen.actor,
        }  # fmt: skip
        news = (*(_whole(thread, record) for record in kept), thread.pen.new(DELETED, data))
        try:
            thread.append(*news, expected=history.version)
        except VersionConflict:
            continue
        for record in gone.values():
            thread.pen.contents.forget(record)
        return thread.erase()
    raise StoreUnavailable(f"{thread.stream}: others wrote first, {TRIES} times in a row", code="store_busy")


def everything(thread: Thread) -> Set[Place]:
    return set(thread.history.saved) | set(thread.history.writes)


def of_runs(thread: Thread, marks: Set[str], parts: Parts, serde: SerializerProtocol) -> Set[Place]:
    """The checkpoints of these runs. Refused if a checkpoint that stays could not be put together without them."""
    history = thread.history
    doomed = {place for place, saved in history.saved.items() if saved.run in marks}
    for place in history.saved.keys() - doomed if doomed else ():
        lost = doomed & set(_delta_ancestors(thread, place, parts, serde))
        if lost:
            raise RunBlocked(
                f"{thread.stream}: checkpoint {place.id} needs what {min(lost).id} wrote to a delta channel",
                code="thread_needs_run",
                details={"stream": thread.stream, "checkpoint": place.id, "needed": min(lost).id},
            )
    return doomed


def all_but_latest(thread: Thread, parts: Parts, serde: SerializerProtocol) -> Set[Place]:
    kept = set(thread.history.heads.values())
    for head in tuple(kept):
        kept |= set(_delta_ancestors(thread, head, parts, serde))
    return thread.history.saved.keys() - kept


def _delta_ancestors(thread: Thread, place: Place, parts: Parts, serde: SerializerProtocol) -> Iterator[Place]:
    """The ancestors from which LangGraph would put the delta channels of a checkpoint together."""
    own = parts(thread, thread.history.saved[place])
    counters = serde.loads_typed(own.metadata).get(COUNTERS) or {}
    left = set(counters) - set(own.channels)
    for ancestor in thread.history.ancestors(place):
        if not left:
            return
        yield ancestor
        left -= set(parts(thread, thread.history.saved[ancestor]).channels)


def _whole(thread: Thread, record: Record) -> NewEvent:
    """The record once more, resting on nothing."""
    content = thread.pen.contents.of(thread.history.records, record)
    values = record.event.values()
    data = {name: values[name] for name in ("ns", "id", "parent", "run", "task") if name in values}
    payload = packed(content, (), thread.pen.nonce()).payload
    return thread.pen.new(record.event.type, {**data, "of": record.origin}, payload)


def copied(source: Thread, target: Thread) -> None:
    """Every record of the source, with payloads of its own, in one append."""
    records = sorted(source.catch_up().records.values(), key=lambda record: record.origin)
    there = target.catch_up()
    if there.saved or there.writes:
        raise VersionConflict(
            f"{target.stream} holds checkpoints already; a thread is copied to a new one", code="thread_moved",
            details={"stream": target.stream, "checkpoint": "", "parent": None, "head": None},
        )  # fmt: skip
    if not records:
        return
    target.erase()
    place_of = {record.origin: there.version + number for number, record in enumerate(records, start=1)}
    target.append(*(_copy(source, record, place_of) for record in records), expected=there.version)


def _copy(source: Thread, record: Record, place_of: dict[int, int]) -> NewEvent:
    payload = source.pen.store.payload(record.event)
    assert payload is not None  # each of these records has one, or reading it has raised
    data = {name: value for name, value in record.event.values().items() if name != "of"}
    parent = data.get("parent")
    if isinstance(parent, int):
        data["parent"] = place_of.get(parent, source.history.ids[parent])
    if record.sources:
        data["base"] = place_of[record.sources[0]]
        if len(record.sources) > 1:
            data["with"] = [place_of[origin] for origin in record.sources[1:]]
    return source.pen.new(record.event.type, data, renamed(payload, source.pen.nonce()))
