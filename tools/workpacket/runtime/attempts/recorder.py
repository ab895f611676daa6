"""The one writer of one attempt: turns records into events, appends them, and keeps the state in step with the log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.runtime.records.events import Event, NewEvent
from workpacket.runtime.records.kinds import KINDS, Data, Kind
from workpacket.runtime.records.redaction import Redactor, clean_record
from workpacket.runtime.records.state import RunState
from workpacket.runtime.stores.contract import Append, Appended, Lease, Store, lost_events
from workpacket.runtime.ticks import Clock


class Draft(NamedTuple):
    """A record before redaction. The payload was redacted by whoever made it."""

    type: str
    data: Data
    payload: bytes | None = None


@dataclass(slots=True)
class Recorder:
    store: Store
    state: RunState
    stream: str
    writer: str
    actor: str
    clock: Clock
    redactor: Redactor
    lease: Lease | None = None
    kinds: Mapping[str, Kind] = field(default_factory=lambda: KINDS)
    seq: int = 0
    last_contact: float = 0.0
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def record(
        self,
        *drafts: Draft,
        key: str | None = None,
        expected_version: int | None = None,
        append: Callable[[Append], Appended] | None = None,
    ) -> tuple[Event, ...]:
        """Append the records as one; when this returns they are durable. `append` does it in the place of the store."""
        news = tuple([self._new(draft) for draft in drafts])
        with self._lock:
            now = self.clock.now()
            fence = self.lease.token if self.lease else None
            request = Append(
                self.stream, news, self.writer, self.seq + 1, self.actor, now, now, key, fence, expected_version
            )
            appended = (append or self.store.append)(request)
            self.last_contact = self.clock.ticks()
            if appended.events[0].writer == self.writer:
                self.seq = max(self.seq, appended.events[-1].writer_seq)
            self._follow(appended.events)
            return appended.events

    def begin(self, *drafts: Draft) -> None:
        """The first records of a stream. If one of this name was lost, the new one is told: it may have acted."""
        had = lost_events(self.store, self.stream)
        told = (Draft("rolled_back", {"had": had, "has": 0}),) if had else ()
        self.record(*drafts, *told, expected_version=0)

    def catch_up(self) -> None:
        """Take in what others have appended: a cancellation, a confirmation."""
        with self._lock:
            self.last_contact = self.clock.ticks()
            head = self.store.head(self.stream)
            if head is not None and head.version > self.state.version:
                self._apply(self.store.read(self.stream, self.state.version))

    def _follow(self, events: tuple[Event, ...]) -> None:
        if events[0].version > self.state.version + 1:
            self._apply(self.store.read(self.stream, self.state.version, events[0].version - 1))
        self._apply(events if events[0].version > self.state.version else self._unseen(events))

    def _unseen(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Of a repeated request, what the state does not know yet."""
        return tuple(event for event in events if event.version > self.state.version)

    def _apply(self, events: Iterable[Event]) -> None:
        for event in events:
            self.state.apply(event, self.kinds)

    def _new(self, draft: Draft) -> NewEvent:
        kind = self.kinds[draft.type]
        return NewEvent(draft.type, clean_record(kind, draft.data, self.redactor), kind.schema_version, draft.payload)
