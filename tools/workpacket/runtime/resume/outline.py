"""The outline of a long run: the part of its log that its state rests on, besides the finished steps.

A store that keeps derived data (`KeepsDerived`) keeps the outline: the versions of those events, and the hash of the
chain at the event up to which it goes. A run is opened from these few events and the ones that came later, each
verified. Its finished steps are read in the order of the log, and verified, as the program asks for them, and are then
forgotten; a program that asks in another order, or looks at all steps, has them all read at once (`load`). `runs
verify` and `resume --plan` always read the whole log.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from typing import NamedTuple

from workpacket.runtime.errors import LogDamaged, RuntimeFault
from workpacket.runtime.records.events import Event, current, require_payload
from workpacket.runtime.records.questions import AnswerVerifier
from workpacket.runtime.records.state import RunState, StepRecord, step_record
from workpacket.runtime.stores.contract import KeepsDerived, Store

EVERY = 2000  # events after which an outline is kept again
LARGEST = 2000  # the events of an outline; a run that rests on more of them is read as a whole
BATCH = 500
MOST_WAITING = 5000  # finished steps that were read and not asked for yet, before all are read


class Outline(NamedTuple):
    """`steps` is None if their number is not certain, because one may have been done twice."""

    version: int
    hash: str
    steps: int | None
    spent_ms: int
    last_recorded_at: int
    events: list[int]


def keep_outline(store: Store, state: RunState, last: Event) -> None:
    """Keep the outline of a run whose log ends with the event `last`."""
    if not isinstance(store, KeepsDerived) or len(state.outline) > LARGEST:
        return
    known = state.steps.count if isinstance(state.steps, FinishedSteps) else len(state.steps)
    outline = Outline(last.version, last.hash, known, state.spent_ms, state.last_recorded_at, state.outline)
    with suppress(RuntimeFault):  # the event itself is stored; the next outline is due after as many events again
        store.keep_derived(state.stream, json.dumps(outline, separators=(",", ":")).encode("utf-8"))


def outlined_state(store: Store, stream: str, verifier: AnswerVerifier | None = None) -> RunState | None:
    """Return the state of a run, opened from its outline; None if the log must be read as a whole."""
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
        """Record which event was the last one when the log was opened."""
        self._end = last

    @property
    def count(self) -> int | None:
        """The number of steps, if it is known without reading them all."""
        if self._all is not None:
            return len(self._all)
        return None if self._count is None else self._count + len(self._new)

    def hand_out(self, key: str) -> StepRecord | None:
        """Return the record of a step that a program asks for. An attempt asks for each outermost step only once, so
        its record, and those of the steps in it, are forgotten.
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
        """Return the steps of earlier attempts, without those that can be known to have been asked for."""
        with self._lock:
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
        """Read some more steps; return whether there were any, and not all had to be read."""
        last = self._last
        if self._all is not None or self._read >= last.version:
            return False
        until = min(self._read + BATCH, last.version)
        events = list(self._store.read(self._stream, self._read, until))
        if until == last.version and events[-1].hash != last.hash:
            raise LogDamaged(self._stream, until, "it is not the event with which the run was opened")
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
    """Return the record of a step that a program asks for now, at its place."""
    return steps.hand_out(key) if isinstance(steps, FinishedSteps) else steps.get(key)
