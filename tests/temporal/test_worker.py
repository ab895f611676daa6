"""Workflows that exist already, with the plug-in: links in the packet's log, effects, gates, questions, lanes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from lifecycle.governed import Governed
from temporal.conftest import played
from temporal.jobs import JOBS, happened
from temporal.server import TemporalServer
from temporal.workflows import ACTIVITIES, WORKFLOWS
from workpacket.git.repository import find_repository
from workpacket.runtime.records.events import AnswerToJudge, JudgedAnswer
from workpacket.temporal import Mismatch, WorkpacketPlugin, answer, differences, questions, settle, start, tell_gate
from workpacket.temporal.client import effects_of

NAME = "WP-1-Greeting-v1"
_NUMBERS = count(1)


@asynccontextmanager
async def working(
    server: TemporalServer, governed: Governed | None = None, **options: Any
) -> AsyncIterator[tuple[Client, str]]:
    queue = f"flows-{next(_NUMBERS)}"
    folder = str(governed.root) if governed is not None else ""
    plugin = WorkpacketPlugin(repository=folder, jobs=JOBS, **options)
    client = await Client.connect(server.address, plugins=[plugin])
    with ThreadPoolExecutor(4) as threads:
        async with Worker(
            client, task_queue=queue, workflows=WORKFLOWS, activities=ACTIVITIES, activity_executor=threads
        ):
            yield client, queue


async def begun(client: Client, queue: str, name: str, *args: Any, packet: str = "") -> WorkflowHandle[Any, Any]:
    memo = {"packet": packet} if packet else None
    return await client.start_workflow(name, args=args, id=f"{name}-{queue}", task_queue=queue, memo=memo)


async def asked(client: Client, run: str) -> dict[str, Any]:
    while not (found := await questions(client, run)):
        await asyncio.sleep(0.05)
    return dict(found[0])


async def ended(run: WorkflowHandle[Any, Any]) -> Any:
    try:
        return await run.result()
    except WorkflowFailureError as failure:
        cause = failure.cause
        return cause.type if isinstance(cause, ApplicationError) else type(cause).__name__


def links(governed: Governed) -> list[tuple[str, ...]]:
    """Each run of the packet by its log: its name, the outcome, the stop reason."""
    return [
        (run.run, *((run.closed.text("outcome") or "", run.closed.text("code") or "") if run.closed else ()))
        for run in governed.state(NAME).runs
    ]


async def found_by(client: Client, governed: Governed, queue: str) -> list[Mismatch]:
    query = f"TaskQueue = '{queue}'"
    return [one async for one in differences(client, find_repository(governed.root), query=query)]


@pytest.fixture
def active(governed: Governed) -> Governed:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    return governed


# ---- effects -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["transfer", "transfer_in_a_thread"])
def test_an_effect_that_succeeds_costs_nobody_a_decision(how: str, temporal_server: TemporalServer, world: str) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "Transfer", 7, how)
            return await run.result(), await effects_of(client, run.id)

    assert played(story) == ("receipt 7", [[how, "1", "done"]])
    assert happened() == ["read", "read", "transferred 7"]  # only what is no effect was repeated


@pytest.mark.parametrize(
    ("choice", "result", "more"),
    [
        ("mark_done", "receipt by hand", []),
        ("end", "ConnectionError", []),
        ("compensate", "effect_failed", ["gave back 101"]),
    ],
)
def test_an_effect_with_an_unknown_outcome_waits_for_a_decision(
    choice: str, result: str, more: list[str], temporal_server: TemporalServer, world: str
) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "Transfer", 101)
            question = await asked(client, run.id)
            assert question["question"] == "it is unknown whether the bank (transfer) happened"
            await answer(client, run.id, question["subject"], choice, value="receipt by hand")  # type: ignore[arg-type]
            return await ended(run)

    expected = "effect_outcome_unknown" if choice == "end" else result
    assert played(story) == expected
    assert happened() == ["read", "read", "transferred 101", *more]


def test_a_retry_that_a_person_chose_is_the_second_call(temporal_server: TemporalServer, world: str) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "Transfer", 101)
            for choice in ("retry", "mark_done"):
                question = await asked(client, run.id)
                await answer(client, run.id, question["subject"], choice, value="r")
                said = {"subject": question["subject"], "answer": choice, "value": "r"}
                await run.signal("workpacket.answer", said)  # sent twice, it answers no later question
                while await questions(client, run.id) == (question,):
                    await asyncio.sleep(0.02)
            return await run.result(), await effects_of(client, run.id)

    assert played(story) == ("r", [["transfer", "1", "failed"], ["transfer", "2", "failed"]])
    assert happened().count("transferred 101") == 2


def test_an_effect_that_certainly_did_not_happen_fails_at_once(temporal_server: TemporalServer, world: str) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            run = await begun(client, queue, "Transfer", 7, "refuse")
            return await ended(run), await effects_of(client, run.id)

    assert played(story) == ("ActivityError", [["refuse", "1", "not_done"]])


def test_a_probe_decides_without_a_person(temporal_server: TemporalServer, world: str) -> None:
    async def story() -> Any:
        async with working(temporal_server) as (client, queue):
            return await (await begun(client, queue, "Transfer", 7, "send")).result()

    assert played(story) == "found 7"
    assert happened().count("sent 7") == 1


# ---- packets -----------------------------------------------------------------------------------------------------


def test_a_workflow_of_a_packet_is_linked_and_closed_with_its_stop_reason(
    temporal_server: TemporalServer, active: Governed, world: str
) -> None:
    async def story() -> Any:
        async with working(temporal_server, active) as (client, queue):
            transfer = await begun(client, queue, "Transfer", 7, packet=NAME)
            await transfer.result()
            fails = await begun(client, queue, "Fails", packet=NAME)
            await ended(fails)
            endless = await begun(client, queue, "Endless", packet=NAME)
            while links(active)[-1] != (endless.id,):
                await asyncio.sleep(0.05)
            shown = await asyncio.to_thread(active.json, "show", NAME)
            assert f"temporal workflow describe -w {endless.id}" in json.dumps(shown)
            assert "is in a different store" not in (await asyncio.to_thread(active, "runtime", "doctor")).out
            await endless.cancel()
            await ended(endless)
            ends = [("completed", ""), ("stopped", "budget_exhausted"), ("cancelled", "")]
            runs = (transfer.id, fails.id, endless.id)
            assert links(active) == [(run, *end) for run, end in zip(runs, ends, strict=True)]
            return await found_by(client, active, queue)

    assert played(story) == []


def test_a_workflow_that_continues_as_new_has_one_link_and_one_record_of_its_effects(
    temporal_server: TemporalServer, active: Governed, world: str
) -> None:
    async def story() -> Any:
        async with working(temporal_server, active) as (client, queue):
            run = await begun(client, queue, "Repeats", 3, packet=NAME)
            assert await run.result() == "receipt 1"
            assert links(active) == [(run.id, "completed", "")]
            return await effects_of(client, run.id), await found_by(client, active, queue)

    rows = [[step, "1", "done"] for step in ("transfer", "transfer#2", "transfer#3")]
    assert played(story) == (rows, [])
    assert happened() == ["transferred 3", "transferred 2", "transferred 1"]


def test_a_run_function_of_a_packet_is_linked_too(
    temporal_server: TemporalServer, active: Governed, world: str
) -> None:
    async def story() -> Any:
        async with working(temporal_server, active) as (client, queue):
            run = await start(client, "simple", key=queue, task_queue=queue, inputs={"number": 4}, packet=NAME)
            await run.result()
            assert links(active) == [(f"{NAME}/simple@{queue}", "completed", "")]
            return await found_by(client, active, queue)

    assert played(story) == []


def test_no_work_begins_on_a_packet_that_is_not_active(
    temporal_server: TemporalServer, governed: Governed, world: str
) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("packet", "abandon", NAME, "--reason", "not needed")

    async def story() -> Any:
        async with working(temporal_server, governed) as (client, queue):
            run = await begun(client, queue, "Transfer", 7, packet=NAME)
            return await ended(run), await found_by(client, governed, queue)

    assert played(story) == ("ActivityError", [])
    assert (happened(), links(governed)) == ([], [])


def test_what_terminated_closes_no_link_and_settling_does(
    temporal_server: TemporalServer, active: Governed, world: str
) -> None:
    async def story() -> Any:
        async with working(temporal_server, active) as (client, queue):
            run = await begun(client, queue, "Endless", packet=NAME)
            while not links(active):
                await asyncio.sleep(0.05)
            await run.terminate()
            found = await found_by(client, active, queue)
            settled, left = await settle(client, find_repository(active.root), query=f"TaskQueue = '{queue}'")
            return [one.what for one in found], [one.run for one in settled], left, run.id

    what, settled, left, run = played(story)
    assert (what, settled, left) == (["late"], [run], [])
    assert links(active) == [(run, "stopped", "user_stopped")]


def test_a_log_that_says_something_else_than_the_history_is_reported(
    temporal_server: TemporalServer, active: Governed, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker writes down a digest that is not that of the effects; another run is linked and does not exist."""
    monkeypatch.setattr("workpacket.temporal.decisions.Decisions.digest", lambda _: "0" * 64)

    async def story() -> Any:
        async with working(temporal_server, active) as (client, queue):
            run = await begun(client, queue, "Transfer", 7, packet=NAME)
            await run.result()
            return [(one.what, one.run) for one in await found_by(client, active, queue)], run.id

    found, run = played(story)
    assert found == [("effects", run)]


def test_a_gate_opens_and_a_person_says_yes(temporal_server: TemporalServer, governed: Governed, world: str) -> None:
    governed.begin()

    async def story() -> Any:
        async with working(temporal_server, governed) as (client, queue):
            run = await begun(client, queue, "Release", NAME)
            await asyncio.sleep(1)
            assert await questions(client, run.id) == ()  # it waits at the gate
            await asyncio.to_thread(governed.activate, NAME)
            await run.signal("workpacket.gate", {"packet": NAME, "gate": "activation"})
            question = await asked(client, run.id)
            assert (question["question"], question["about"]) == ("release?", {"packet": NAME})
            await answer(client, run.id, question["subject"], "yes")
            return await run.result()

    assert played(story) == "released"


def test_the_workflows_of_a_packet_are_told_that_its_gate_may_be_open(
    temporal_server: TemporalServer, active: Governed, world: str
) -> None:
    async def story() -> Any:
        async with working(temporal_server, active) as (client, queue):
            run = await begun(client, queue, "Endless", packet=NAME)
            while not links(active):
                await asyncio.sleep(0.05)
            told = await tell_gate(client, find_repository(active.root), NAME, "verdict")
            await run.cancel()
            await ended(run)
            return told

    assert played(story) == 1


def test_an_answer_that_the_verifier_refuses_does_not_count(temporal_server: TemporalServer, world: str) -> None:
    class Verifier:
        def judge(self, answer: AnswerToJudge) -> JudgedAnswer:
            if answer.envelope != f"signed by ann: {answer.subject} {answer.answer}":
                return JudgedAnswer(refusal="it is not signed")
            return JudgedAnswer("ann", "one")

    async def story() -> Any:
        async with working(temporal_server, verifier=Verifier()) as (client, queue):
            run = await start(client, "asks", key=queue, task_queue=queue)
            question = await asked(client, run.id)
            await answer(client, run.id, question["subject"], "yes")
            while not (refused := (await asked(client, run.id))["refused"]):
                await asyncio.sleep(0.05)
            signed = f"signed by ann: {question['subject']} yes"
            await answer(client, run.id, question["subject"], "yes", sign=lambda _: signed)
            return refused, await run.result()

    assert played(story) == (["it is not signed"], "deployed")


def test_packet_and_lane_are_search_attributes(temporal_server: TemporalServer, active: Governed, world: str) -> None:
    async def story() -> Any:
        async with working(temporal_server, active, search_attributes=True) as (client, queue):
            run = await begun(client, queue, "Transfer", 7, packet=NAME)
            await run.result()
            query = f"WorkpacketPacket = '{NAME}' AND WorkpacketLane = 'IN_PROGRESS' AND TaskQueue = '{queue}'"
            while not (found := [one.id async for one in client.list_workflows(query)]):
                await asyncio.sleep(0.1)
            return found == [run.id]

    assert played(story)
