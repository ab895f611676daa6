"""What is there of a thread: a pure fold over its records. Values stay in their payloads until somebody wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from workpacket.model.canonical import Json
from workpacket.runtime.langgraph.records import CHECKPOINT, DELETED, ERASED, KINDS, WRITES, Place
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.kinds import current

STRIDE = 32  # every so many patches there is one on the last such, so that a state is read in few steps


class Record(NamedTuple):
    """A record with a payload. `origin` is the version of the first that said it; `sources` are named by origins."""

    event: Event
    place: Place
    origin: int
    sources: tuple[int, ...]


class Saved(NamedTuple):
    """A checkpoint. `depth` counts the patches since the last that is whole and `grown` their bytes; `anchor` is the
    record that the next stride rests on."""

    record: Record
    parent: str | None
    run: str
    depth: int
    grown: int
    anchor: int


@dataclass(slots=True)
class History:
    version: int = 0
    saved: dict[Place, Saved] = field(default_factory=dict)
    heads: dict[str, Place] = field(default_factory=dict)  # of each namespace, the one put last
    writes: dict[Place, dict[int, Record]] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)  # by origin
    gone: set[Place] = field(default_factory=set)
    unfinished: dict[int, tuple[int, ...]] = field(default_factory=dict)
    positions: dict[Place, int] = field(default_factory=dict)  # the order in which checkpoints were first put
    ids: dict[int, str] = field(default_factory=dict)  # of every checkpoint there ever was, by origin
    superseded: dict[Place, list[int]] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        data = current(event, KINDS)
        if event.type == CHECKPOINT:
            self._checkpoint(event, data)
        elif event.type == WRITES:
            record = _record(event, data)
            self.records[record.origin] = record
            self.writes.setdefault(record.place, {})[record.origin] = record
        elif event.type == DELETED:
            self._deleted(event, data)
        elif event.type == ERASED:
            self.unfinished.pop(_number(data, "deleted"), None)
        self.version = event.version

    def _checkpoint(self, event: Event, data: Mapping[str, Json]) -> None:
        record = _record(event, data)
        place, depth = record.place, _number(data, "depth")
        before = self.saved.get(place)
        if before is not None and before.record.origin != record.origin:
            self.superseded.setdefault(place, []).append(before.record.origin)
        base = self.records.get(record.sources[0]) if record.sources else None
        rests_on = self.saved.get(base.place) if base is not None else None
        anchor = record.origin if depth % STRIDE == 0 or rests_on is None else rests_on.anchor
        parent = self._parent(data.get("parent"))
        self.records[record.origin] = record
        self.ids[record.origin] = place.id
        self.saved[place] = Saved(
            record,
            parent,
            str(data.get("run", "")),
            depth,
            _number(data, "grown"),
            anchor,
        )
        self.gone.discard(place)
        if place not in self.positions:
            self.positions[place] = record.origin
            self.heads[place.namespace] = place

    def _parent(self, said: Json) -> str | None:
        """A parent is named by its record, or by its id where it was not there."""
        return self.ids.get(said, "") if isinstance(said, int) else cast("str | None", said)

    def _deleted(self, event: Event, data: Mapping[str, Json]) -> None:
        for namespace, name in cast("list[list[str]]", data["checkpoints"]):
            place = Place(namespace, name)
            self.saved.pop(place, None)
            self.writes.pop(place, None)
            self.positions.pop(place, None)
            self.superseded.pop(place, None)
            self.gone.add(place)
        erased = tuple(cast("list[int]", data["records"]))
        for origin, record in list(self.records.items()):
            if record.event.version in set(erased):
                del self.records[origin]
        self.unfinished[event.version] = erased
        self.heads = {place.namespace: place for place in sorted(self.positions, key=self.positions.__getitem__)}

    def head(self, namespace: str) -> Place | None:
        return self.heads.get(namespace)

    def newest_first(self, namespace: str | None) -> Iterator[Place]:
        for place in sorted(self.positions, key=self.positions.__getitem__, reverse=True):
            if namespace is None or place.namespace == namespace:
                yield place

    def is_before(self, place: Place, point: Place, parents: Callable[[Place], Mapping[str, str]]) -> bool:
        """Whether a checkpoint was there when `point` was made.

        Within a namespace the order is the store's. Across namespaces it is not: with durability="async" the first
        checkpoint of a subgraph may be stored before the checkpoint of the graph whose step it belongs to. So what
        LangGraph recorded decides: `parents` names, for each enclosing namespace, the checkpoint in whose step this
        one was made. A checkpoint that was made in the step of `point`, or in a later one, is not before it.
        """
        at, limit = self.positions[place], self.positions[point]
        if place.namespace == point.namespace:
            return at < limit
        if at > limit and place.id > point.id:  # stored late, as by a move from another saver, but made before
            return False
        mine = {**parents(place), place.namespace: place.id}
        theirs = {**parents(point), point.namespace: point.id}
        for namespace in mine.keys() & theirs.keys():
            step, last = (self._position(Place(namespace, named[namespace])) for named in (mine, theirs))
            if step is None or last is None:
                continue
            if step > last or (step == last and namespace == point.namespace):
                return False
        return True

    def _position(self, place: Place) -> int | None:
        """Where a checkpoint was first stored, also if it was deleted since; None if it never was."""
        found = self.positions.get(place)
        if found is not None:
            return found
        return next((origin for origin, name in self.ids.items() if name == place.id), None)

    def ancestors(self, place: Place) -> Iterator[Place]:
        """The checkpoint's parent, its parent, and so on, as far as they are there."""
        seen = {place}
        while (saved := self.saved.get(place)) is not None and saved.parent is not None:
            place = Place(place.namespace, saved.parent)
            if place in seen or place not in self.saved:
                return
            seen.add(place)
            yield place

    def records_of(self, place: Place) -> Iterator[Record]:
        """Everything whose payload belongs to a checkpoint."""
        origins = [*self.superseded.get(place, ()), self.saved[place].record.origin] if place in self.saved else []
        yield from (self.records[origin] for origin in origins if origin in self.records)
        yield from self.writes.get(place, {}).values()


def _record(event: Event, data: Mapping[str, Json]) -> Record:
    place = Place(str(data.get("ns", "")), str(data["id"]))
    base, others = data.get("base"), cast("list[int]", data.get("with", []))
    sources = (base, *others) if isinstance(base, int) else ()
    return Record(event, place, _number(data, "of") or event.version, sources)


def _number(data: Mapping[str, Json], name: str) -> int:
    found = data.get(name)
    return found if isinstance(found, int) else 0
