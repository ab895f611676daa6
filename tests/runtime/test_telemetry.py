"""Spans and metrics of runs, as the SDK's own exporters in memory receive them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from workpacket.runtime import Runtime
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.observing.telemetry import StableIds, Telemetry
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore


class Collected:
    """A telemetry whose spans and figures can be looked at."""

    def __init__(self, *, stable: bool = True) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        ids: Any = StableIds(RandomIdGenerator()) if stable else RandomIdGenerator()
        tracers = TracerProvider(id_generator=ids)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracers = tracers
        self.telemetry = Telemetry(tracers, MeterProvider(metric_readers=[self.reader]))

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def told(self) -> list[tuple[str, dict[str, Any], int]]:
        """Every span without what differs between two runs of a program."""
        return [(s.name, dict(s.attributes or {}), s.context.span_id) for s in self.spans if s.context]

    def figures(self) -> dict[str, float]:
        found: dict[str, float] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        words = ",".join(f"{key}={value!s}" for key, value in sorted((point.attributes or {}).items()))
                        found[f"{metric.name}{{{words}}}"] = getattr(point, "value", getattr(point, "count", 0))
        return found


def boom() -> None:
    raise ValueError("hunter2 is my password")


def test_a_run_its_steps_and_effects_are_spans_of_one_trace_and_hold_no_payload() -> None:
    seen, store = Collected(), MemoryStore()
    with Runtime(seen.telemetry.watch(store)) as runtime:
        with runtime.run("nightly", inputs={"month": "swordfish"}) as run:
            run.step("fetch", lambda: {"secret": "swordfish"})
            run.effect("mail", lambda: "swordfish", key="mail-1")
        with pytest.raises(ValueError, match="hunter2"), runtime.run("broken") as run:
            run.step("explode", boom)
    spans = {(span.name, (span.attributes or {}).get("workpacket.outcome")): span for span in seen.spans}
    whole = spans["run nightly", "completed"]
    assert spans["effect", "succeeded"].parent == whole.context == spans["step", "completed"].parent
    assert len({span.context.trace_id for span in seen.spans if span.context}) == 2
    assert spans["step", "failed"].status.status_code.name == "ERROR"
    assert all(span.end_time and span.start_time and span.end_time >= span.start_time for span in seen.spans)
    everything = "".join(span.to_json() for span in seen.spans)
    assert "swordfish" not in everything
    assert "hunter2" not in everything
    figures = seen.figures()
    assert figures["workpacket.attempts{resumed=False}"] == 2
    assert figures["workpacket.attempts.ended{outcome=completed}"] == 1
    assert figures["workpacket.steps{outcome=completed}"] >= 1
    assert figures["workpacket.steps{outcome=failed}"] == 1
    assert sum(value for name, value in figures.items() if name.startswith("workpacket.effects{")) == 1
    assert figures["workpacket.step.duration{outcome=failed}"] == 1


def test_a_stored_run_gives_the_same_spans_when_it_is_replayed_and_again_the_same() -> None:
    live, store = Collected(), MemoryStore()
    with Runtime(live.telemetry.watch(store)) as runtime, runtime.run("nightly") as run:
        run.step("fetch", lambda: 1)
    for _ in range(2):
        later = Collected()
        later.telemetry.replay(store.read(run.id))
        assert later.told() == live.told()


PROGRAM = """
import os, signal, sys
from pathlib import Path
from workpacket.runtime import Runtime
with Runtime.open(Path(sys.argv[1])) as runtime, runtime.run("nightly") as run:
    run.step("fetch", lambda: 1)
    run.step("convert", lambda: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.parametrize("stable", [True, False])
def test_a_resumed_attempt_is_linked_to_the_one_that_was_killed(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "runs.db"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    seen = Collected(stable=stable)
    with Runtime(seen.telemetry.watch(SQLiteStore(path))) as runtime:
        with runtime.run("nightly") as run:
            run.step("fetch", lambda: 1)
            run.step("convert", lambda: 2)
        attempts = {(s.attributes or {})["workpacket.attempt"]: s for s in seen.spans if s.name == "run nightly"}
        assert (attempts[1].attributes or {})["workpacket.outcome"] == "interrupted"
        assert [link.context.span_id for link in attempts[2].links] == [attempts[1].context.span_id]
        assert seen.figures()["workpacket.attempts{resumed=True}"] == 1
        later = Collected()
        later.telemetry.replay(runtime.store.read(run.id))
    outcomes = [(s.attributes or {})["workpacket.outcome"] for s in later.spans if s.name == "run nightly"]
    assert outcomes == ["interrupted", "completed"]


def test_spans_of_others_keep_the_ids_of_their_generator() -> None:
    seen = Collected()
    with seen.tracers.get_tracer("theirs").start_as_current_span("outer") as outer:
        with Runtime(seen.telemetry.watch(MemoryStore())) as runtime, runtime.run("nightly"):
            pass
        assert outer.get_span_context().trace_id not in {
            span.context.trace_id for span in seen.spans if span.context and span.name == "run nightly"
        }


def test_a_run_goes_on_when_the_telemetry_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Collected()
    monkeypatch.setattr(seen.telemetry, "see", lambda event: 1 / 0)
    with Runtime(seen.telemetry.watch(MemoryStore())) as runtime:
        with runtime.run("nightly") as run:
            assert run.step("fetch", lambda: 1) == 1
        assert runtime.summary(run.id).liveness == "completed"
    assert "telemetry failed" in caplog.text


def test_the_error_names_the_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workpacket.runtime.observing.telemetry.find_spec", lambda name: None)
    with pytest.raises(RuntimeFault, match="opentelemetry-api") as caught:
        Telemetry()
    assert caught.value.hint == "pip install 'workpacket[otel]'"
