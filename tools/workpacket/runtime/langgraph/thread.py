"""One thread of conversation: its history as far as it was read, and the one way to add to it.

Whoever puts a checkpoint goes on from one that exists. If meanwhile somebody else went on from there, the second is
refused (`thread_moved`) and nothing of his is stored: two answers to one question are never both kept in silence.
To branch on purpose, read the older checkpoint by its id first, or put with the configuration that `list` or
`parent_config` handed out for it. A namespace is begun again after `list(before=...)` found nothing in it, which is how
LangGraph replays a subgraph, and by a copy of its first checkpoint.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from workpacket.model.canonical import Json
from workpacket.runtime.errors import VersionConflict
from workpacket.runtime.ids import Ids
from workpacket.runtime.langgraph.contents import ThreadContents
from workpacket.runtime.langgraph.history import ERASED, KINDS, CheckpointPlace, ThreadHistory
from workpacket.runtime.records.events import Event, NewEvent
from workpacket.runtime.records.redaction import Redactor, clean_record
from workpacket.runtime.stores.contract import Append, ErasesAtOnce, Store
from workpacket.runtime.ticks import Clock


@dataclass(slots=True)
class Pen:
    """What every thread of a saver writes with."""

    store: Store
    contents: ThreadContents
    redactor: Redactor
    actor: str
    clock: Clock
    ids: Ids

    def nonce(self) -> str:
        """What makes a payload unlike every other."""
        return self.ids()[:16]

    def new(self, type_: str, data: Mapping[str, Json], payload: bytes | None = None) -> NewEvent:
        kind = KINDS[type_]
        return NewEvent(type_, clean_record(kind, data, self.redactor), kind.schema_version, payload)


@dataclass(slots=True)
class Thread:
    stream: str
    pen: Pen
    lock: threading.RLock = field(default_factory=threading.RLock)
    history: ThreadHistory = field(default_factory=ThreadHistory)
    writer: str = ""
    seq: int = 0
    branches: set[CheckpointPlace] = field(default_factory=set)  # older checkpoints that were asked for by their id
    seen_empty: set[str] = field(default_factory=set)  # namespaces in which there was nothing when they were read
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
        """Durable when it returns. `VersionConflict` if the thread is not at the expected version any more."""
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
            self.forget()  # it may be stored or not: what is there is read again, by another writer
            raise
        self.seq += len(stored)
        if stored[0].version > self.history.version + 1:
            self._apply(self.pen.store.read(self.stream, self.history.version, stored[0].version - 1))
        self._apply(stored)
        return stored

    def erase(self) -> None:
        """Finish every deletion: erase the payloads, then say that it was done."""
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
        """Whether this checkpoint may be the next one of its namespace; see the module docstring.

        `branches` says that the caller names the parent as an older checkpoint, or asks for a second beginning.
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
            return  # a thread that is brought from elsewhere without its beginning
        if before is None and head in self.own and place.namespace not in self.seen_empty:
            return  # a second root, put by who put the first and never looked
        found = "it was deleted" if head is None else f"{head.id} followed it"
        raise VersionConflict(
            f"{self.stream}: checkpoint {place.id} goes on from {parent or 'an empty thread'}, but meanwhile {found}",
            code="thread_moved",
            details={"stream": self.stream, "checkpoint": place.id, "parent": parent, "head": head and head.id},
        )

    def put_done(self, place: CheckpointPlace, parent: str | None) -> None:
        """Remember what was put here, for the checks of those who put next."""
        self.own.add(place)
        if parent is None and self.restarts[place.namespace] > 0:
            self.restarts[place.namespace] -= 1

    def forget(self) -> None:
        self.history, self.writer, self.own = ThreadHistory(), "", set()

    def _apply(self, events: Iterable[Event]) -> None:
        for event in events:
            self.history.apply(event)
