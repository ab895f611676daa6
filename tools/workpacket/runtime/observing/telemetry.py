"""Runs as OpenTelemetry spans and metrics, for `pip install 'workpacket[otel]'`. They contain no payloads, arguments or
error texts.

    with Runtime(telemetry.watch(store)) as runtime: ...        while it happens
    telemetry.replay(store.read(run))                           afterwards, from the log

Telemetry reads only events, so both ways result in the same spans. Each attempt of a run is a span, with its steps and
effects as child spans; a resumed attempt is linked to the previous one. A killed process cannot write its own span: the
process that resumes the run writes it from the log.

The trace of a run and its span ids are derived from the log (`StableIds`), so that the spans of a killed process and
those of its successor belong together, and replaying a run twice adds nothing. A provider without `StableIds` works
too, but connects only the spans of one process.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.events import Event
from workpacket.runtime.stores.contract import Append, Appended, Store

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

SCOPE = "workpacket"
_BEGINS = {"run.started", "attempt.started"}
_ENDS = {"run.completed": "completed", "run.cancelled": "cancelled", "run.stopped": "stopped", "run.blocked": "blocked",
         "run.handed_over": "moved"}  # fmt: skip
_EFFECT_ENDS = {"effect.succeeded": "succeeded", "effect.failed": "failed"}
_WANTED: ContextVar[tuple[int, int] | None] = ContextVar("ids of the next span", default=None)


def require_opentelemetry() -> None:
    if find_spec("opentelemetry") is None:
        raise RuntimeFault(
            "telemetry requires opentelemetry-api", code="storage_unsuitable", hint="pip install 'workpacket[otel]'"
        )


class StableIds:
    """For `TracerProvider(id_generator=StableIds(RandomIdGenerator()))`: our spans get ids derived from their events;
    all other spans get ids from the wrapped generator.
    """

    def __init__(self, others: Any) -> None:
        self._others = others

    def generate_trace_id(self) -> int:
        wanted = _WANTED.get()
        return wanted[0] if wanted else cast(int, self._others.generate_trace_id())

    def generate_span_id(self) -> int:
        wanted = _WANTED.get()
        return wanted[1] if wanted else cast(int, self._others.generate_span_id())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._others, name)


@dataclass(slots=True)
class _Attempt:
    span: Span
    number: int
    last: int
    effects: dict[str, tuple[int, str]] = field(default_factory=dict)  # when each began, and its kind


class Telemetry:
    def __init__(self, tracers: TracerProvider | None = None, meters: MeterProvider | None = None) -> None:
        require_opentelemetry()
        from opentelemetry import metrics, trace

        self._trace = trace
        self._tracer = (tracers or trace.get_tracer_provider()).get_tracer(SCOPE)
        meter = (meters or metrics.get_meter_provider()).get_meter(SCOPE)
        self._attempts = meter.create_counter("workpacket.attempts", description="attempts of runs that started")
        self._ended = meter.create_counter("workpacket.attempts.ended", description="attempts that ended, by outcome")
        self._steps = meter.create_counter("workpacket.steps", description="steps that ended, by outcome")
        self._effects = meter.create_counter("workpacket.effects", description="effects that ended, by outcome")
        self._seconds = meter.create_histogram("workpacket.step.duration", unit="s", description="time a step took")
        self._open: dict[str, _Attempt] = {}
        self._lock = threading.RLock()

    def watch(self, store: Store) -> Store:
        """Return the store, wrapped so that every event appended through it is reported as telemetry."""
        return cast(Store, _Watched(store, self))

    def replay(self, events: Iterable[Event]) -> None:
        """Report the spans and metrics of a stored run. An attempt without an end ends with its last event."""
        stream = ""
        for event in events:
            stream = event.stream
            self.see(event)
        with self._lock:
            self._end(stream, "interrupted", failed=True)

    def inherit(self, events: Iterable[Event]) -> None:
        """Take over a run whose process was killed: reopen its last attempt, so that the next attempt can end it."""
        with self._lock:
            last: list[Event] = []
            for event in events:
                last = [event] if event.type in _BEGINS or not last else [last[0], event]
            if last and last[0].stream not in self._open and last[0].type in _BEGINS:
                self._begin(last[0], last[0].values(), again=True)
                self._open[last[0].stream].last = last[-1].occurred_at

    def see(self, event: Event) -> None:
        data = event.values()
        with self._lock:
            if event.type in _BEGINS:
                self._begin(event, data)
            attempt = self._open.get(event.stream)
            if attempt is None:
                return
            attempt.last = max(attempt.last, event.occurred_at)
            if event.type in {"step.completed", "step.failed"}:
                self._step(attempt, event, data)
            elif event.type.startswith("effect."):
                self._effect(attempt, event, data)
            elif event.type in _ENDS:
                outcome = str(data.get("code", "")) or _ENDS[event.type]
                self._end(event.stream, outcome, failed=event.type in {"run.stopped", "run.blocked"})

    def _begin(self, event: Event, data: Mapping[str, Any], *, again: bool = False) -> None:
        number = int(data.get("attempt", 1))
        before = self._open.get(event.stream)
        links = []
        if before is not None:
            self._end(event.stream, "interrupted", failed=True)
            links = [self._trace.Link(before.span.get_span_context())]
        elif number > 1:
            links = [self._trace.Link(self._context(event.stream, f"attempt {number - 1}"))]
        resumed = number > 1
        with _ids(_number(event.stream, 16), _number(f"{event.stream} attempt {number}", 8)):
            span = self._tracer.start_span(
                f"run {_name(event.stream)}",
                context=self._trace.set_span_in_context(self._trace.INVALID_SPAN),
                start_time=event.occurred_at * 1000,
                links=links,
                attributes={
                    "workpacket.run": event.stream,
                    "workpacket.attempt": number,
                    "workpacket.resumed": resumed,
                },
            )
        self._open[event.stream] = _Attempt(span, number, event.occurred_at)
        if not again:  # the process that began it has counted it
            self._attempts.add(1, {"resumed": resumed})

    def _context(self, stream: str, what: str) -> Any:
        flags = self._trace.TraceFlags(self._trace.TraceFlags.SAMPLED)
        trace, span = _number(stream, 16), _number(f"{stream} {what}", 8)
        return self._trace.SpanContext(trace, span, is_remote=True, trace_flags=flags)

    def _end(self, stream: str, outcome: str, *, failed: bool) -> None:
        attempt = self._open.pop(stream, None)
        if attempt is None:
            return
        attempt.span.set_attribute("workpacket.outcome", outcome)
        if failed:
            attempt.span.set_status(self._trace.StatusCode.ERROR, outcome)
        attempt.span.end(attempt.last * 1000)
        self._ended.add(1, {"outcome": outcome})

    def _step(self, attempt: _Attempt, event: Event, data: Mapping[str, Any]) -> None:
        failed = event.type == "step.failed"
        seconds = int(data.get("ms", 0)) / 1000
        outcome = "failed" if failed else "completed"
        about = {"workpacket.step": str(data.get("step", "")), "workpacket.outcome": outcome}
        began = event.occurred_at - int(data.get("ms", 0)) * 1000
        self._child(attempt, event, "step", about, began, failed=failed)
        self._steps.add(1, {"outcome": outcome})
        self._seconds.record(seconds, {"outcome": outcome})

    def _effect(self, attempt: _Attempt, event: Event, data: Mapping[str, Any]) -> None:
        if event.type in {"effect.receipt", "effect.matched"}:
            return  # about an effect that has ended
        effect = str(data.get("effect", ""))
        began, kind = attempt.effects.get(effect, (event.occurred_at, ""))
        kind = str(data.get("kind", "")) or kind
        outcome = _EFFECT_ENDS.get(event.type)
        if outcome is None:
            attempt.effects.setdefault(effect, (began, kind))
            return
        attempt.effects.pop(effect, None)
        if outcome == "failed" and data.get("definite") is not True:
            outcome = "unknown"
        about = {"workpacket.effect": effect, "workpacket.effect.kind": kind, "workpacket.outcome": outcome}
        self._child(attempt, event, "effect", about, began, failed=outcome != "succeeded")
        self._effects.add(1, {"outcome": outcome, "kind": kind})

    def _child(
        self, attempt: _Attempt, event: Event, what: str, about: Mapping[str, str], began: int, *, failed: bool
    ) -> None:
        with _ids(_number(event.stream, 16), _number(f"{event.stream} event {event.version}", 8)):
            span = self._tracer.start_span(
                what,
                context=self._trace.set_span_in_context(attempt.span),
                start_time=began * 1000,
                attributes={"workpacket.run": event.stream, **about},
            )
        if failed:
            span.set_status(self._trace.StatusCode.ERROR)
        span.end(event.occurred_at * 1000)


class _Watched:
    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry

    def append(self, request: Append) -> Appended:
        appended = self._store.append(request)
        if not appended.duplicate:
            try:
                self._look(appended.events)
            except Exception:  # the record is stored; no fault of an observer may suggest otherwise
                logging.getLogger(SCOPE).exception("telemetry failed; the run continues")
        return appended

    def _look(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.type == "attempt.started" and event.values().get("interrupted") is True:
                self._telemetry.inherit(self._store.read(event.stream, 0, event.version - 1))
            self._telemetry.see(event)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@contextmanager
def _ids(trace: int, span: int) -> Iterator[None]:
    token = _WANTED.set((trace, span))
    try:
        yield
    finally:
        _WANTED.reset(token)


def _number(text: str, size: int) -> int:
    """Return a number that is never zero, because OpenTelemetry treats zero as an invalid id."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]) or 1


def _name(stream: str) -> str:
    return stream.rpartition("/")[2].partition("@")[0]
