"""The only writer of an attempt, the points at which a run may stop, and the outline of a long run.

A store that keeps derived data (`KeepsDerived`) keeps the outline: the versions of its events, and the hash of the
chain at the last event that it covers. A run is opened from these few events and the ones that came later, each
verified. Its finished steps are read in log order, and verified, as the program asks for them, and are then forgotten;
if a program asks in a different order, or looks at all steps, all of them are read at once (`load`). `runs verify` and
`resume --plan` always read the whole log.

The recorder turns records into events, appends them, and keeps the state in step with the log. A run may stop between
steps and chunks (`Boundary`), never between an intent and its outcome.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.runtime.errors import HandedOver, LogDamaged, RunBlocked, RunCancelled, RuntimeFault
from workpacket.runtime.holders import Clock
from workpacket.runtime.records.events import (
    KINDS,
    AnswerVerifier,
    Data,
    Event,
    NewEvent,
    RecordKind,
    current,
    require_payload,
)
from workpacket.runtime.records.jcs import jcs_text
from workpacket.runtime.records.redaction import Redactor, clean_data
from workpacket.runtime.records.state import RunState, StepRecord, step_record
from workpacket.runtime.stores.contract import Append, Appended, KeepsDerived, Lease, Store, lost_events

EVERY = 2000  # events after which an outline is kept again
LARGEST = 2000  # the events of an outline; a run that rests on more of them is read as a whole
BATCH = 500
MOST_WAITING = 5000  # finished steps that were read and not asked for yet, before all are read


class Outline(NamedTuple):
    """`steps` is None if the number of steps is not certain, because one may have been done twice."""

    version: int
    hash: str
    steps: int | None
    spent_ms: int
    last_recorded_at: int
    events: list[int]


def keep_outline(store: Store, state: RunState, last: Event) -> None:
    """Keep the outline of a run whose log ends with event `last`."""
    if not isinstance(store, KeepsDerived) or len(state.outline) > LARGEST:
        return
    known = state.steps.count if isinstance(state.steps, FinishedSteps) else len(state.steps)
    outline = Outline(last.version, last.hash, known, state.spent_ms, state.last_recorded_at, state.outline)
    with suppress(RuntimeFault):  # the event itself is stored; the next outline is due after as many events again
        store.keep_derived(state.stream, json.dumps(outline, separators=(",", ":")).encode("utf-8"))


def outlined_state(store: Store, stream: str, verifier: AnswerVerifier | None = None) -> RunState | None:
    """Return the state of a run, opened from its outline; None if the whole log must be read."""
    if not isinstance(store, KeepsDerived):
        return None
    try:
        content, head = store.derived(stream), store.head(stream)
        if content is None or head is None:
            return None
        outline = Outline(*json.loads(content))
        versions = {*outline.events, outline.version}
        found = {event.version: event for event in store.events_at(stream, sorted(versions))}
        if found.keys() != versions or found[outline.version].hash != outline.hash:
            return None
        last = found[outline.version]
        state = RunState(verifier=verifier)
        for version in outline.events:
            state.apply(found[version])
        state.spent_ms, state.last_recorded_at = outline.spent_ms, outline.last_recorded_at
        state.stream, state.version = stream, outline.version
        state.steps = steps = FinishedSteps(store, stream, outline.steps)
        for event in store.read(stream, outline.version, head.version):
            state.apply(event)
            last = event
        steps.opened(last)
    except (RuntimeFault, ValueError, TypeError):
        return None  # what is wrong is said by those who read the whole log
    return state


class FinishedSteps(MutableMapping[str, StepRecord]):
    """The finished steps of a run that was opened from its outline."""

    def __init__(self, store: KeepsDerived, stream: str, count: int | None) -> None:
        self._store = store
        self._stream = stream
        self._count = count  # of the steps up to the end, apart from the new ones
        self._end: Event | None = None  # the last event when the run was opened; None until then
        self._read = 0  # the version up to which the log has been read
        self._waiting: dict[str, dict[str, StepRecord]] = {}  # by outermost step: what was not asked for yet
        self._held = 0
        self._new: dict[str, StepRecord] = {}
        self._absent: set[str] = set()
        self._all: dict[str, StepRecord] | None = None
        self._lock = threading.RLock()

    def opened(self, last: Event) -> None:
        """Record which event was the last when the log was opened."""
        self._end = last

    @property
    def count(self) -> int | None:
        """The number of steps, if it is known without reading them all."""
        if self._all is not None:
            return len(self._all)
        return None if self._count is None else self._count + len(self._new)

    def hand_out(self, key: str) -> StepRecord | None:
        """Return the record of a step that a program asks for. An attempt asks for each outermost step only once, so
        its record, and the records of the steps in it, are then forgotten.
        """
        with self._lock:
            if self._all is None:
                found = self._new.get(key) or self._next(key)
                if self._all is None:
                    if found is None:
                        self._absent.add(key)
                    return found
            return self._all.get(key)

    def not_handed_out(self) -> Mapping[str, StepRecord]:
        """Return the steps of earlier attempts, except those that the program is known to have requested."""
        with self._lock:
            # Each call reads one part of the log, so a question about one step reads no more than it needs.
            while self._read_on():
                pass
            end = self._last.version
            if self._all is not None:
                return {key: record for key, record in self._all.items() if record.event.version <= end}
            return {key: record for inside in self._waiting.values() for key, record in inside.items()}

    def load(self) -> dict[str, StepRecord]:
        """Read all steps, and keep them."""
        with self._lock:
            if self._all is None:
                events = self._store.read(self._stream, 0, self._last.version)
                records = (step_record(event, current(event)) for event in events if event.type == "step.completed")
                self._all = {record.key: record for record in records} | self._new
                self._waiting, self._new = {}, {}
            return self._all

    @property
    def _last(self) -> Event:
        assert self._end is not None, "the run is still being opened"
        return self._end

    def _next(self, key: str) -> StepRecord | None:
        outermost, nested, _ = key.partition("/")
        while True:
            inside = self._waiting.get(outermost)
            if inside is not None and key in inside:
                record = inside[key]
                if not nested:
                    del self._waiting[outermost]
                    self._held -= len(inside)
                if record.stored is not None:
                    require_payload(record.event, (record.stored,))
                return record
            if not self._read_on():
                return None

    def _read_on(self) -> bool:
        """Read some more steps; return False if there were none, or if all of them had to be read."""
        last = self._last
        if self._all is not None or self._read >= last.version:
            return False
        until = min(self._read + BATCH, last.version)
        events = list(self._store.read(self._stream, self._read, until))
        if until == last.version and events[-1].hash != last.hash:
            raise LogDamaged(self._stream, until, "it is not the event that opened the run")
        stored = self._store.stored_payloads(events)
        for event in events:
            if event.type == "step.completed":
                record = step_record(event, current(event), stored.get(event.payload or ""))
                inside = self._waiting.setdefault(record.key.partition("/")[0], {})
                self._held += record.key not in inside
                inside[record.key] = record
        self._read = until
        if self._held > MOST_WAITING:
            self.load()
        return self._all is None

    # ---- as any mapping ------------------------------------------------------------------------------------------

    def __getitem__(self, key: str) -> StepRecord:
        with self._lock:
            found = self._new.get(key)
            return self.load()[key] if found is None else found

    def __setitem__(self, key: str, record: StepRecord) -> None:
        with self._lock:
            if self._end is None:  # it is read with the others
                again = record.event.values().get("maybe_repeated") is True
                self._count = None if again or self._count is None else self._count + 1
            elif self._all is None and (key in self._absent or key in self._new):
                self._absent.discard(key)
                self._new[key] = record
            else:
                self.load()[key] = record

    def __delitem__(self, key: str) -> None:
        del self.load()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.load())

    def __len__(self) -> int:
        known = self.count
        return len(self.load()) if known is None else known


def asked_for(steps: Mapping[str, StepRecord], key: str) -> StepRecord | None:
    """Return the record of a step that a program asks for at this point."""
    return steps.hand_out(key) if isinstance(steps, FinishedSteps) else steps.get(key)


class RecordDraft(NamedTuple):
    """A record before redaction; its payload is already redacted.

    This type differs from `NewEvent` so that nothing reaches a store without having been searched for secrets. `own`
    means that the data contain no float and nothing that others can change, so reading them back would yield the same
    data.
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
        """Append the first records of a stream. If a stream with this name was lost, the new one records the loss,
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
        """Check the run before a call that no earlier attempt finished."""
        self.check()
        self.before(place)

    def check(self) -> None:
        """Check before new work; raise if the run is finished, cancelled or handed over, or if its deadline has
        passed."""
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
            raise RunBlocked("the run's deadline has passed", code="timeout")
        steps = recorder.state.budget.get("steps")
        if isinstance(steps, int) and len(recorder.state.steps) >= steps:
            raise RunBlocked(f"the run has used all of its {steps} steps", code="max_ticks")

    def wait(self, seconds: float) -> None:
        """Sleep, waking up often enough to detect a cancellation."""
        ends = self.recorder.clock.ticks() + seconds
        while (left := ends - self.recorder.clock.ticks()) > 0:
            self.recorder.clock.sleep(min(left, SLICE))
            self.check()
