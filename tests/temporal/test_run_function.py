"""One run function on three engines has the same results and effects: SQLite, a worker of a queue, Temporal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer, Worker

from postgres.conftest import running_server
from temporal import run_functions
from temporal.conftest import played
from temporal.jobs import JOBS, happened, write_down
from temporal.server import TemporalServer
from workpacket.runtime import Runtime
from workpacket.runtime.queue import Offer, queue_of
from workpacket.runtime.queue import Worker as QueueWorker
from workpacket.temporal import WorkpacketPlugin, answer, move, questions, start
from workpacket.temporal.client import effects_of
from workpacket.temporal.run_function import PUBLISHED

_NUMBERS = count(1)


@asynccontextmanager
async def working(server: TemporalServer, **options: Any) -> AsyncIterator[tuple[Client, str]]:
    """A worker with a task queue of its own."""
    queue = f"queue-{next(_NUMBERS)}"
    client = await Client.connect(server.address, plugins=[WorkpacketPlugin(jobs=JOBS, **options)])
    async with Worker(client, task_queue=queue):
        yield client, queue


async def begun(client: Client, queue: str, name: str, **inputs: Any) -> WorkflowHandle[Any, Any]:
    return await start(client, name, key=queue, task_queue=queue, inputs=inputs)


async def asked(client: Client, run: str) -> dict[str, Any]:
    """The question that the run waits for."""
    while not (found := await questions(client, run)):
        await asyncio.sleep(0.05)
    return dict(found[0])


def on_temporal(server: TemporalServer, name: str, **inputs: Any) -> Any:
    async def story() -> Any:
        async with working(server) as (client, queue):
            return await (await begun(client, queue, name, **inputs)).result()

    return played(story)


def on_sqlite(folder: Path, name: str, **inputs: Any) -> Any:
    async def story() -> Any:
        with Runtime.open(folder / "runs.db") as runtime:
            async with runtime.async_run(name, inputs=inputs) as run:
                return await JOBS[name](run, **inputs)

    return played(story)


@pytest.mark.parametrize(
    ("name", "inputs"), [("simple", {"number": 4}), ("declined", {}), ("retried", {}), ("loops", {"rounds": 5})]
)
def test_a_run_function_gives_the_same_result_and_does_the_same_on_both(
    name: str, inputs: dict[str, Any], temporal_server: TemporalServer, world: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    embedded, done = on_sqlite(tmp_path, name, **inputs), happened()
    monkeypatch.setenv("WORKPACKET_TEST_LEDGER", str(tmp_path / "other.db"))
    assert on_temporal(temporal_server, name, **inputs) == embedded
    assert happened() == done


def test_a_timer_a_signal_and_a_signal_that_does_not_come(temporal_server: TemporalServer) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "waits")
            for _ in range(2):  # a signal with a key counts once
                await run.signal("go", {"key": "one", "value": 7})
            return await run.result()

    assert played(story) == {"value": 7, "late": True}


@pytest.mark.parametrize(("said", "outcome"), [("yes", "deployed"), ("no", "confirmation_denied")])
def test_a_question_waits_for_a_person(said: str, outcome: str, temporal_server: TemporalServer) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "asks")
            question = await asked(client, run.id)
            assert (question["question"], question["about"]) == ("deploy?", {"to": "production"})
            await answer(client, run.id, question["subject"], "retry")  # not one of the choices
            await answer(client, run.id, question["subject"], said)  # type: ignore[arg-type]  # yes or no
            return await ended(run)

    assert played(story) == outcome


async def ended(run: WorkflowHandle[Any, Any]) -> Any:
    """The result, or the stop reason."""
    try:
        return await run.result()
    except WorkflowFailureError as failure:
        cause = failure.cause
    return cause.type if isinstance(cause, ApplicationError) else cause


@pytest.mark.parametrize(
    ("choice", "result", "done"),
    [
        ("mark_done", "then receipt 3", ["paid 3"]),
        ("compensate", "effect_failed", ["paid 3", "refunded"]),
        ("end", "effect_outcome_unknown", ["paid 3"]),
    ],
)
def test_an_effect_that_failed_without_saying_whether_it_happened_waits_for_a_decision(
    choice: str, result: str, done: list[str], temporal_server: TemporalServer, world: str
) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "unknown")
            question = await asked(client, run.id)
            assert question["choices"] == ["mark_done", "retry", "compensate", "end"]
            assert happened() == ["paid 3"]
            await answer(client, run.id, question["subject"], choice, value="receipt 3")  # type: ignore[arg-type]
            if stop := await stopped_again(client, run):
                await answer(client, run.id, stop["subject"], "end")
            outcome = await ended(run)
            assert await effects_of(client, run.id) == [["pay", "1", "failed"]]
            return outcome

    assert played(story) == result
    assert happened() == done


async def stopped_again(client: Client, run: WorkflowHandle[Any, Any]) -> dict[str, Any] | None:
    """The question whether a stopped run goes on, once it is asked; None if the run has ended."""
    while True:
        status = (await run.describe()).status
        if status is not None and status.name != "RUNNING":
            return None
        found = await questions(client, run.id)
        if found and found[0]["choices"] == ["resume", "end"]:
            return dict(found[0])
        await asyncio.sleep(0.05)


def test_a_probe_finds_out_what_became_of_an_effect(temporal_server: TemporalServer, world: str) -> None:
    assert on_temporal(temporal_server, "probed") == "receipt found"
    assert happened() == ["paid 3 k"]


def test_published_values_can_be_read_while_the_run_goes_on_and_afterwards(
    temporal_server: TemporalServer, world: str
) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "simple", number=2)
            await run.result()
            return await run.query(PUBLISHED)

    assert played(story) == {"progress": {"at": "end"}}


def test_a_long_run_continues_as_new_and_knows_what_it_did(
    temporal_server: TemporalServer, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    suggested: list[bool] = []

    def every_second_time(_: Any) -> bool:
        suggested.append(True)
        return len(suggested) % 2 == 0

    monkeypatch.setattr("temporalio.workflow.Info.is_continue_as_new_suggested", every_second_time)

    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "loops", rounds=5)
            first = run.first_execution_run_id
            result = await run.result()
            return result, (await client.get_workflow_handle(run.id).describe()).run_id != first

    assert played(story) == (5, True)


def test_a_key_names_one_run(temporal_server: TemporalServer, world: str) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            first = await begun(client, queue, "simple", number=4)
            result = await first.result()
            again = await begun(client, queue, "simple", number=4)
            assert await again.result() == result

    played(story)
    assert happened() == ["paid 8 k4"]


def test_a_history_is_replayed_without_another_effect(temporal_server: TemporalServer, world: str) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "simple", number=4)
            await run.result()
            history = await run.fetch_history()
        result = await Replayer(workflows=[], plugins=[WorkpacketPlugin(jobs=JOBS)]).replay_workflow(history)
        return result.replay_failure

    assert played(story) is None
    assert happened() == ["paid 8 k4"]


def test_a_secret_never_reaches_the_history(temporal_server: TemporalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAYMENT_TOKEN", "sk-ThisIsTheSecret-9f8e7d6c5b4a")

    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "leaks")
            code = await ended(run)
            return code, "".join(str(event) for event in (await run.fetch_history()).events)

    code, history = played(story)
    assert code == "would_be_altered"
    assert "ThisIsTheSecret" not in history


def test_a_value_of_several_megabytes_goes_through_the_store(temporal_server: TemporalServer, tmp_path: Path) -> None:
    async def story() -> Any:
        with Runtime.open(tmp_path / "runs.db") as runtime:
            async with working(temporal_server, store=runtime.store) as (client, queue):
                run = await begun(client, queue, "large", size=5_000_000)
                assert await run.result() == 5_000_000
                sizes = [event.ByteSize() for event in (await run.fetch_history()).events]
                return max(sizes), len(runtime.store.heads("temporal/")), runtime.runs()

    largest, kept, runs = played(story)
    assert largest < 10_000
    assert (kept, runs) == (2, ())  # what `make` returned and `echo` received is wrapped differently


def test_a_run_that_has_begun_in_a_store_goes_on_where_it_was(
    temporal_server: TemporalServer, world: str, tmp_path: Path
) -> None:
    async def story() -> Any:
        with Runtime.open(tmp_path / "runs.db") as runtime:
            with pytest.raises(RuntimeError, match="not yet"):
                await half(runtime)
            write_down("go on")
            run, inputs = "interrupted@1", {"number": 4}
            async with working(temporal_server) as (client, queue):
                await move(client, runtime, run, task_queue=queue, inputs=inputs)
                moved = await move(client, runtime, run, task_queue=queue, inputs=inputs)  # the same run
                result = await moved.result()
            return run, moved.id, runtime.state(run).status, result

    async def half(runtime: Runtime) -> None:
        async with runtime.async_run("interrupted", key="1", inputs={"number": 4}) as run:
            await asyncio.to_thread(runtime.signal, run.id, "go", 7)
            await JOBS["interrupted"](run, number=4)

    run, moved, status, result = played(story)
    assert (moved, status) == (run, "moved")
    assert result == {"first": 8, "receipt": "receipt k", "value": 7, "second": "receipt k2"}
    assert happened() == ["paid 8 k", "go on", "paid 8 k2"]


def test_a_function_that_is_not_fit_is_refused_when_the_worker_is_made() -> None:
    with pytest.raises(Exception, match=r"cannot run on Temporal: reads_time, line \d+: time.time \(clock\)"):
        WorkpacketPlugin(jobs={"job": run_functions.reads_time})


def test_a_run_function_runs_unchanged_on_the_workers_of_a_queue(server_url: str, world: str) -> None:
    with Runtime.open(server_url) as runtime:
        queue = queue_of(runtime.store, "jobs")
        run = queue.offer(Offer("simple", key="1", inputs={"number": 4}))
        assert QueueWorker(runtime, queue, JOBS).work(until_empty=True) == 1
        assert runtime.state(run).status == "completed"
    assert happened() == ["paid 8 k4"]


@pytest.fixture
def server_url() -> Iterator[str]:
    with running_server() as server:
        yield server.url(workpacket_project="temporal")
