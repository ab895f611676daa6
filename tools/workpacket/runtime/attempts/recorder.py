"""The only writer of an attempt, and the points at which a run may end.

The recorder turns records into events, appends them, and keeps the state in step with the log. A run may end between
steps and chunks (`Boundary`), never between an intent and its outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.runtime.clock import Clock
from workpacket.runtime.errors import HandedOver, RunBlocked, RunCancelled
from workpacket.runtime.records.events import KINDS, Data, Event, NewEvent, RecordKind
from workpacket.runtime.records.jcs import jcs_text
from workpacket.runtime.records.redaction import Redactor, clean_data
from workpacket.runtime.records.state import RunState
from workpacket.runtime.resume.outline import EVERY, keep_outline
from workpacket.runtime.stores.contract import Append, Appended, Lease, Store, lost_events


class RecordDraft(NamedTuple):
    """A record before redaction; its payload is redacted already.

    This type differs from `NewEvent` so that nothing reaches a store without having been searched for secrets. `own`
    means that the data contain no float and nothing that others can change, so reading them back would yield the same.
    """

    type: str
    data: Data
    payload: bytes | None = None
    own: bool = False


def cleaned(draft: RecordDraft, kinds: Mapping[str, RecordKind], redactor: Redactor) -> tuple[NewEvent, Data | None]:
    """Return the event to store and, if the draft owns its data, the data as they would be if read back."""
    type_, said, payload, own = draft
    kind = kinds[type_]
    data = clean_data(kind, said, redactor)
    return NewEvent(type_, jcs_text(data), kind.schema_version, payload), data if own else None


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
    kinds: Mapping[str, RecordKind] = field(default_factory=lambda: KINDS)
    seq: int = 0
    last_contact: float = 0.0
    outlined: int = 0  # the version up to which an outline was kept
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def record(
        self,
        *drafts: RecordDraft,
        key: str | None = None,
        expected_version: int | None = None,
        append: Callable[[Append], Appended] | None = None,
    ) -> tuple[Event, ...]:
        """Append the records in one step; they are durable when this returns.

        `append` replaces the store's own method.
        """
        key = None if key is None else self.redactor.name(key)
        news, known = zip(*[cleaned(draft, self.kinds, self.redactor) for draft in drafts], strict=True)
        with self._lock:
            now = self.clock.now()
            fence = self.lease.token if self.lease else None
            request = Append(
                self.stream, news, self.writer, self.seq + 1, self.actor, now, now, key, fence, expected_version
            )
            appended = (append or self.store.append)(request)
            self.last_contact = self.clock.ticks()
            events = appended.events
            if events[0].writer == self.writer:
                self.seq = max(self.seq, events[-1].writer_seq)
            if appended.duplicate or events[0].version != self.state.version + 1:
                self._follow(events)
            else:
                for event, data in zip(events, known, strict=True):
                    self.state.apply(event, self.kinds, data)
                if self.state.version - self.outlined >= EVERY and self.lease is not None:
                    self.outlined = self.state.version
                    keep_outline(self.store, self.state, events[-1])
            return events

    def begin(self, *drafts: RecordDraft) -> None:
        """Append the first records of a stream. If a stream of this name was lost, the new one records the loss,
        because the lost run may have acted.
        """
        had = lost_events(self.store, self.stream)
        told = (RecordDraft("rolled_back", {"had": had, "has": 0}),) if had else ()
        self.record(*drafts, *told, expected_version=0)

    def catch_up(self) -> None:
        """Apply the events that others have appended, such as a cancellation or a confirmation."""
        with self._lock:
            self.last_contact = self.clock.ticks()
            head = self.store.head(self.stream)
            if head is not None and head.version > self.state.version:
                self._apply(self.store.read(self.stream, self.state.version))

    def _follow(self, events: tuple[Event, ...]) -> None:
        if events[0].version > self.state.version + 1:
            self._apply(self.store.read(self.stream, self.state.version, events[0].version - 1))
        known = self.state.version
        if events[0].version <= known:  # the events of a repeated request that the state does not have yet
            events = tuple(event for event in events if event.version > known)
        self._apply(events)

    def _apply(self, events: Iterable[Event]) -> None:
        for event in events:
            self.state.apply(event, self.kinds)


FINISHING: ContextVar[bool] = ContextVar("workpacket_finishing", default=False)  # in a child that is to finish
FRESH = 0.005  # seconds for which the last read of the log counts as current
SLICE = 0.2


@dataclass(slots=True)
class Boundary:
    recorder: Recorder
    leaving: Callable[[], bool] = bool  # whether the process was asked to stop; by default, never
    replaying: bool = False  # the run is finished: nothing can end it between two chunks any more
    before: Callable[[str], object] = str  # called with the place of each new call

    def check_now(self) -> None:
        """Run `check` on a fresh view of the log, at a point where no new work is about to begin."""
        if self.replaying:
            return
        self.recorder.catch_up()
        self.check()

    def begin(self, place: str) -> None:
        """Check before a call that no earlier attempt has finished."""
        self.check()
        self.before(place)

    def check(self) -> None:
        """Check before new work; raise if the run is finished, cancelled or handed over, or its deadline has passed."""
        recorder = self.recorder
        if recorder.clock.ticks() - recorder.last_contact > FRESH:
            recorder.catch_up()
        if recorder.state.status == "completed":
            raise RunBlocked(f"{recorder.stream} is finished; nothing can be added to it", code="step_changed")
        if recorder.state.cancel_reason is not None and not FINISHING.get():
            raise RunCancelled(recorder.state.cancel_reason)
        if self.leaving():
            raise HandedOver
        until = recorder.state.budget.get("until")
        if isinstance(until, int) and recorder.clock.now() > until:
            raise RunBlocked("the deadline of the run has passed", code="timeout")
        steps = recorder.state.budget.get("steps")
        if isinstance(steps, int) and len(recorder.state.steps) >= steps:
            raise RunBlocked(f"the run has used its {steps} steps", code="max_ticks")

    def wait(self, seconds: float) -> None:
        """Sleep, waking up often enough to notice a cancellation."""
        ends = self.recorder.clock.ticks() + seconds
        while (left := ends - self.recorder.clock.ticks()) > 0:
            self.recorder.clock.sleep(min(left, SLICE))
            self.check()
