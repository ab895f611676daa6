"""One thread of conversation: the history read so far, and the only way to add to it.

A checkpoint is added after an existing one. If another writer has added one at that position in the meantime, the later
one is refused (`thread_moved`) and no part of it is stored: two answers to one question are never both kept silently.
To branch on purpose, read the older checkpoint by its id first, or put with the configuration that `list` or
`parent_config` returned for it. A namespace begins again after `list(before=...)` has found nothing in it, which is how
LangGraph replays a subgraph, or with a copy of its first checkpoint.

The history of a thread is a pure fold over its records. Values remain in their payloads until requested; a bounded
cache holds the contents read last, for all threads of a saver.

    langgraph.checkpoint   id, parent and namespace of a checkpoint; the record that its payload patches
    langgraph.writes       the writes of a task before the next checkpoint
    langgraph.deleted      the deleted checkpoints, and the records that lose their payloads
    langgraph.erased       that these are erased: the next writer finishes an interrupted deletion
    run.handed_over        that another store continues the thread; nothing is added after it

A thread with all its namespaces is one stream, so that its records have one order; it is not a run, and its name has no
'@'. Times, values and channel names are only in payloads.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast
from urllib.parse import quote, unquote

from workpacket.model.canonical import Json
from workpacket.runtime.errors import LogDamaged, PayloadErased, RunBlocked, VersionConflict
from workpacket.runtime.holders import Clock, Ids
from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.langgraph.parcels import Typed, Write, brought, unpacked
from workpacket.runtime.records.events import KINDS as KINDS_OF_RUNS
from workpacket.runtime.records.events import Event, NewEvent, RecordKind, current
from workpacket.runtime.records.jcs import SEALED
from workpacket.runtime.records.redaction import Redactor, clean_record, plain_payload, sealed_payload
from workpacket.runtime.stores.contract import Append, ErasesAtOnce, Store

CHECKPOINT, WRITES, DELETED, ERASED = (f"langgraph.{name}" for name in ("checkpoint", "writes", "deleted", "erased"))
MOVED = "run.handed_over"

KINDS: Mapping[str, RecordKind] = {
    kind.type: kind
    for kind in (
        # Since schema version 2, a payload may be deflated with its sources as the dictionary.
        RecordKind(
            CHECKPOINT,
            dict.fromkeys(("ns", "id", "parent", "base", "with", "depth", "grown", "run", "of"), "public"),
            schema_version=2,
            upcasters={1: dict},
        ),
        RecordKind(
            WRITES,
            dict.fromkeys(("ns", "id", "task", "base", "of"), "public"),
            schema_version=2,
            upcasters={1: dict},
        ),
        RecordKind(DELETED, {"checkpoints": "public", "records": "public", "reason": "public", "by": "scan"}),
        RecordKind(ERASED, {"deleted": "public"}),
        KINDS_OF_RUNS[MOVED],
    )
}

LONGEST_NAME = 200


class CheckpointPlace(NamedTuple):
    """One checkpoint of a thread."""

    namespace: str
    id: str


class OlderId(str):
    """The id of a checkpoint that was returned as an older one, by `list` or as the parent of one that was read.

    LangGraph passes the configuration that it read to `put`, so a put with such an id branches on purpose. A run that
    read the newest checkpoint has a plain id, even if another caller listed the history.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        """Compare as a plain string; otherwise the reflected comparison of the subclass would take precedence."""
        return str.__eq__(self, other) if type(other) in {str, OlderId} else NotImplemented


def stream_of(thread: str) -> str:
    """Return the stream of a thread. A very long name is replaced by its hash."""
    if len(thread) > LONGEST_NAME:
        thread = f"long-{hashlib.sha256(thread.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return THREADS + quote(thread, safe=" !()*+,:;=~", errors="surrogatepass")


def thread_of(stream: str) -> str:
    return unquote(stream.removeprefix(THREADS), errors="surrogatepass")


def run_mark(run_id: object) -> str:
    """Return the marker used to find the checkpoints of a run; the id itself is in the metadata, which can be
    erased."""
    return hashlib.sha256(str(run_id).encode("utf-8", "surrogatepass")).hexdigest()[:16]


STRIDE = 32  # after this many patches, one refers to the last such patch, so that few steps are needed to read a state


class PayloadRecord(NamedTuple):
    """A record with a payload. `origin` is the version of the first record with this content; `sources` are origins."""

    event: Event
    place: CheckpointPlace
    origin: int
    sources: tuple[int, ...]


class Saved(NamedTuple):
    """A checkpoint. `depth` counts the patches since the last full checkpoint, and `grown` counts their bytes; `anchor`
    is the older record that a periodic patch refers to.
    """

    record: PayloadRecord
    parent: str | None
    run: str
    depth: int
    grown: int
    anchor: int


@dataclass(slots=True)
class ThreadHistory:
    version: int = 0
    saved: dict[CheckpointPlace, Saved] = field(default_factory=dict)
    heads: dict[str, CheckpointPlace] = field(default_factory=dict)  # the checkpoint put last in each namespace
    writes: dict[CheckpointPlace, dict[int, PayloadRecord]] = field(default_factory=dict)
    records: dict[int, PayloadRecord] = field(default_factory=dict)  # by origin
    gone: set[CheckpointPlace] = field(default_factory=set)
    unfinished: dict[int, tuple[int, ...]] = field(default_factory=dict)
    positions: dict[CheckpointPlace, int] = field(default_factory=dict)  # the order in which checkpoints were first put
    ids: dict[int, str] = field(default_factory=dict)  # every checkpoint that ever existed, by origin
    superseded: dict[CheckpointPlace, list[int]] = field(default_factory=dict)
    moved_to: str = ""  # where the thread was exported to, if another store continues it

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
        elif event.type == MOVED:
            self.moved_to = str(data.get("to", ""))
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
        """Return the parent according to the checkpoint's record, or by its id if the record is missing."""
        return self.ids.get(said, "") if isinstance(said, int) else cast("str | None", said)

    def _deleted(self, event: Event, data: Mapping[str, Json]) -> None:
        for namespace, name in cast("list[list[str]]", data["checkpoints"]):
            place = CheckpointPlace(namespace, name)
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

    def head(self, namespace: str) -> CheckpointPlace | None:
        return self.heads.get(namespace)

    def newest_first(self, namespace: str | None) -> Iterator[CheckpointPlace]:
        for place in sorted(self.positions, key=self.positions.__getitem__, reverse=True):
            if namespace is None or place.namespace == namespace:
                yield place

    def is_before(
        self, place: CheckpointPlace, point: CheckpointPlace, parents: Callable[[CheckpointPlace], Mapping[str, str]]
    ) -> bool:
        """Whether a checkpoint existed when `point` was made.

        Within a namespace, the order is the store's. Across namespaces it is not: with durability="async", the first
        checkpoint of a subgraph may be stored before the checkpoint of the graph whose step it belongs to. Therefore
        LangGraph's own record is decisive: `parents` gives, for each enclosing namespace, the checkpoint in whose step
        this one was made. A checkpoint made in the step of `point`, or in a later one, does not count as earlier.
        """
        at, limit = self.positions[place], self.positions[point]
        if place.namespace == point.namespace:
            return at < limit
        if at > limit and place.id > point.id:  # stored late, for example by a move from another saver, but made before
            return False
        mine = {**parents(place), place.namespace: place.id}
        theirs = {**parents(point), point.namespace: point.id}
        for namespace in mine.keys() & theirs.keys():
            step, last = (self._position(CheckpointPlace(namespace, named[namespace])) for named in (mine, theirs))
            if step is None or last is None:
                continue
            if step > last or (step == last and namespace == point.namespace):
                return False
        return True

    def _position(self, place: CheckpointPlace) -> int | None:
        """Return where a checkpoint was first stored, even if it was deleted later; None if it was never stored."""
        found = self.positions.get(place)
        if found is not None:
            return found
        return next((origin for origin, name in self.ids.items() if name == place.id), None)

    def ancestors(self, place: CheckpointPlace) -> Iterator[CheckpointPlace]:
        """Yield the checkpoint's ancestors that exist, nearest first."""
        seen = {place}
        while (saved := self.saved.get(place)) is not None and saved.parent is not None:
            place = CheckpointPlace(place.namespace, saved.parent)
            if place in seen or place not in self.saved:
                return
            seen.add(place)
            yield place

    def records_of(self, place: CheckpointPlace) -> Iterator[PayloadRecord]:
        """Yield all records whose payloads belong to a checkpoint."""
        origins = [*self.superseded.get(place, ()), self.saved[place].record.origin] if place in self.saved else []
        yield from (self.records[origin] for origin in origins if origin in self.records)
        yield from self.writes.get(place, {}).values()


def _record(event: Event, data: Mapping[str, Json]) -> PayloadRecord:
    place = CheckpointPlace(str(data.get("ns", "")), str(data["id"]))
    base, others = data.get("base"), cast("list[int]", data.get("with", []))
    sources = (base, *others) if isinstance(base, int) else ()
    return PayloadRecord(event, place, _number(data, "of") or event.version, sources)


def _number(data: Mapping[str, Json], name: str) -> int:
    found = data.get(name)
    return found if isinstance(found, int) else 0


REMEMBERED = 64 * 1024 * 1024  # bytes


@dataclass(slots=True)
class ThreadContents:
    store: Store
    _known: OrderedDict[tuple[str, int], bytes] = field(default_factory=OrderedDict)
    _size: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, records: Mapping[int, PayloadRecord], record: PayloadRecord) -> bytes:
        """Return the content of a record. The records that it depends on are read as well, and released as soon as
        possible.
        """
        made: dict[int, bytes] = {}
        waiting = [record]
        while waiting:
            asked = waiting[-1]
            needed = [records[origin] for origin in asked.sources if origin in records]
            if len(needed) < len(asked.sources):
                raise LogDamaged(asked.event.stream, asked.event.version, "a checkpoint that it depends on was deleted")
            known = self._recall(asked)
            if known is None:
                missing = [one for one in needed if one.origin not in made]
                if missing:
                    waiting += reversed(missing)
                    continue
                known = self._read(asked, [made[one.origin] for one in needed])
                self.remember(asked, known)  # a list of checkpoints, newest first, needs each of these next
            waiting.pop()
            made[asked.origin] = known
            still = {origin for one in waiting for origin in one.sources} | {record.origin}
            for origin in [origin for origin in made if origin not in still]:
                del made[origin]
        return made[record.origin]

    def _read(self, record: PayloadRecord, sources: list[bytes]) -> bytes:
        payload = self.store.payload(record.event)
        if payload is None:
            raise LogDamaged(record.event.stream, record.event.version, "it should have a payload")
        return unpacked(plain_payload(payload), sources)

    def remember(self, record: PayloadRecord, content: bytes) -> None:
        with self._lock:
            self._forget((record.event.stream, record.event.version))
            self._known[record.event.stream, record.event.version] = content
            self._size += len(content)
            while self._size > REMEMBERED:
                self._forget(next(iter(self._known)))

    def forget(self, record: PayloadRecord) -> None:
        with self._lock:
            self._forget((record.event.stream, record.event.version))

    def _forget(self, key: tuple[str, int]) -> None:
        self._size -= len(self._known.pop(key, b""))

    def _recall(self, record: PayloadRecord) -> bytes | None:
        with self._lock:
            key = record.event.stream, record.event.version
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)


def said_in_thread(store: Store, stream: str) -> Iterator[tuple[Event, bytes | None]]:
    """Yield the events of a thread with what each payload adds to the records before it; see `said_in`."""
    history, contents = ThreadHistory(), ThreadContents(store)
    for event in store.read(stream):
        history.apply(event)
        said = None
        with suppress(PayloadErased):
            payload = store.payload(event)
            if payload is not None and not payload.startswith(SEALED):
                sources = _record(event, current(event, KINDS)).sources
                known = [history.records[origin] for origin in sources if origin in history.records]
                said = brought(payload, [contents.of(history.records, one) for one in known])
            yield event, said


@dataclass(slots=True)
class Pen:
    """What all threads of a saver share when writing."""

    store: Store
    contents: ThreadContents
    redactor: Redactor
    actor: str
    clock: Clock
    ids: Ids

    def nonce(self) -> str:
        """Return random bytes that make a payload unique."""
        return self.ids()[:16]

    def new(self, type_: str, data: Mapping[str, Json], payload: bytes | None = None) -> NewEvent:
        kind = KINDS[type_]
        if payload is not None and self.redactor.policy == "encrypt":
            payload = sealed_payload(payload)  # all of a thread: a patch may hold a part of a secret
        return NewEvent(type_, clean_record(kind, data, self.redactor), kind.schema_version, payload)


class NewRecord(NamedTuple):
    """A record to append. `content` is what its payload unpacks to."""

    type: str
    place: CheckpointPlace
    data: dict[str, Any]
    payload: bytes
    content: bytes


@dataclass(slots=True, eq=False)
class WaitingWrites:
    """The writes of a task that a caller waits for. `settled` says that they are durable or refused."""

    place: CheckpointPlace
    task: str
    path: str
    news: Sequence[Write]
    settled: bool = False
    refusal: VersionConflict | None = None


@dataclass(slots=True)
class Thread:
    stream: str
    pen: Pen
    lock: threading.Condition = field(default_factory=threading.Condition)  # notified when writes are settled
    waiting: list[WaitingWrites] = field(default_factory=list)
    versions: tuple[int, Mapping[str, Any]] = (0, {})  # of the channels of the checkpoint that was put last
    described: Typed | None = None  # metadata, apart from the step, that was found to be without secrets
    history: ThreadHistory = field(default_factory=ThreadHistory)
    writer: str = ""
    seq: int = 0
    branches: set[CheckpointPlace] = field(default_factory=set)  # older checkpoints that were asked for by their id
    seen_empty: set[str] = field(default_factory=set)  # namespaces that were empty when they were read
    own: set[CheckpointPlace] = field(default_factory=set)  # heads that were put here
    restarts: Counter[str] = field(default_factory=Counter)  # by namespace, how often nothing was found before a point

    def catch_up(self) -> ThreadHistory:
        head = self.pen.store.head(self.stream)
        if head is None:
            if self.history.version:
                self.forget()
        elif head.version != self.history.version:
            self._apply(self.pen.store.read(self.stream, self.history.version))
        return self.history

    def append(self, *news: NewEvent, expected: int | None = None) -> tuple[Event, ...]:
        """Append durably; raise `VersionConflict` if the thread is no longer at the expected version."""
        self._require_here()
        if not self.writer:
            self.writer, self.seq = self.pen.nonce(), 0
        now = self.pen.clock.now()
        request = Append(
            self.stream, news, self.writer, self.seq + 1, self.pen.actor, now, now, expected_version=expected
        )
        try:
            stored = self.pen.store.append(request).events
        except VersionConflict:
            raise
        except Exception:
            self.forget()  # it may or may not be stored: another writer reads again what is there
            raise
        self.seq += len(stored)
        if stored[0].version > self.history.version + 1:
            self._apply(self.pen.store.read(self.stream, self.history.version, stored[0].version - 1))
            self._require_here()  # it was moved just before this record, which no one will read
        self._apply(stored)
        return stored

    @contextmanager
    def gathering(self, mine: WaitingWrites, seconds: float) -> Iterator[None]:
        """Let these writes wait for another writer of this process, who may store them with its own records.

        LangGraph stores the writes of tasks beside the checkpoint that follows them; together they need one sync
        instead of two. Writes that were not stored when the time is over, or could not be, are the caller's again.
        """
        self.waiting.append(mine)
        try:
            if seconds:
                self.lock.wait_for(lambda: mine.settled, seconds)
            yield
        finally:
            if not mine.settled:
                self.waiting.remove(mine)

    def settled(self, writes: Sequence[WaitingWrites]) -> None:
        for one in writes:
            one.settled = True
            self.waiting.remove(one)
        self.lock.notify_all()

    def _require_here(self) -> None:
        if self.history.moved_to:
            raise RunBlocked(
                f"{self.stream} was moved: exported to {self.history.moved_to}",
                code="run_moved",
                hint="continue the thread in the store that imported it, or copy it here: copy_thread(id, new_id)",
            )

    def erase(self) -> None:
        """Finish every deletion: erase the payloads, then record it."""
        for deleted, records in list(self.history.unfinished.items()):
            if records:
                events = self.pen.store.read(self.stream, min(records) - 1, max(records))
                digests = [event.payload for event in events if event.version in set(records) and event.payload]
                self._erase_payloads(digests)
            self.append(self.pen.new(ERASED, {"deleted": deleted}))

    def _erase_payloads(self, digests: Sequence[str]) -> None:
        store = self.pen.store
        if isinstance(store, ErasesAtOnce):
            store.erase_all(digests)
        else:
            for digest in digests:
                store.erase(digest)

    def require_successor(self, place: CheckpointPlace, parent: str | None, *, branches: bool = False) -> None:
        """Require that this checkpoint may be the next one in its namespace; see the module docstring.

        `branches` says that the caller gives the parent as an older checkpoint, or asks for a second root.
        """
        head = self.history.head(place.namespace)
        if place in self.history.saved or (head is None and parent is None):
            return
        before = CheckpointPlace(place.namespace, parent) if parent is not None else None
        if before == head or before in self.branches:
            return
        if branches and (before is None or before in self.history.saved):
            return
        if before is None and self.restarts[place.namespace] > 0:
            return
        if before is not None and head is None and before not in self.history.gone:
            return  # a thread that was imported without its beginning
        if before is None and head in self.own and place.namespace not in self.seen_empty:
            return  # a second root, added by the writer of the first, which never read
        found = "it was deleted" if head is None else f"{head.id} followed it"
        raise VersionConflict(
            f"{self.stream}: checkpoint {place.id} continues from {parent or 'an empty thread'}, but meanwhile {found}",
            code="thread_moved",
            details={"stream": self.stream, "checkpoint": place.id, "parent": parent, "head": head and head.id},
        )

    def put_done(self, place: CheckpointPlace, parent: str | None) -> None:
        """Remember what this thread object has added, for later checks."""
        self.own.add(place)
        if parent is None and self.restarts[place.namespace] > 0:
            self.restarts[place.namespace] -= 1

    def forget(self) -> None:
        self.history, self.writer, self.own = ThreadHistory(), "", set()

    def _apply(self, events: Iterable[Event]) -> None:
        for event in events:
            self.history.apply(event)
