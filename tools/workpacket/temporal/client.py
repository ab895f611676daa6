"""From outside a workflow: start a run function, answer questions, and compare Temporal's history with packets' logs.

No transaction spans both. A link is recorded before the work of a workflow begins, and closed after it has ended; a
workflow that is terminated, or that times out, executes no code at its end. `differences` finds what is left open, and
`settle` records it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, Literal

from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, RetryState, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from workpacket.bridges.run_links import close, linked_packets, state_here
from workpacket.git.repository import Repository
from workpacket.ledger.fold import LinkedRun, PacketState
from workpacket.lifecycle.claims import Ending
from workpacket.model.canonical import Json
from workpacket.runtime.catalog import stream_name
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.events import AnswerToJudge, Event
from workpacket.runtime.records.failures import reason_of
from workpacket.runtime.records.jcs import jcs_hash, value_of
from workpacket.runtime.records.state import EffectRecord, RunState
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Store
from workpacket.shell.actor import acting
from workpacket.temporal.decisions import (
    ANSWER,
    EFFECT_ID,
    GATE,
    QUESTIONS,
    Choice,
    WorkflowAnswer,
    WorkflowQuestion,
    digest_of,
    read_failure,
)
from workpacket.temporal.run_function import Memory, new_memory
from workpacket.temporal.worker import PACKET, store_name
from workpacket.value import Value

_OUTCOMES: Final[Mapping[WorkflowExecutionStatus, tuple[str, str]]] = {
    WorkflowExecutionStatus.COMPLETED: ("completed", ""),
    WorkflowExecutionStatus.CANCELED: ("cancelled", ""),
    WorkflowExecutionStatus.FAILED: ("stopped", "worker_failed"),
    WorkflowExecutionStatus.TERMINATED: ("stopped", "user_stopped"),
    WorkflowExecutionStatus.TIMED_OUT: ("stopped", "timeout"),
}

Row = list[str]


class Mismatch(Value):
    """Something on which Temporal and a packet's log disagree.

    late: it has ended, but its link is open. missing: there is a link but no workflow. unlinked: a workflow names the
    packet, but the log has no link to it. outcome: it did not end as the log says. effects: its effects did not end as
    the log says. twice: an effect succeeded more than once.
    """

    run: str
    packet: str
    what: Literal["late", "missing", "unlinked", "outcome", "effects", "twice"]
    message: str


async def start(
    client: Client, name: str, *, key: str, task_queue: str, inputs: Mapping[str, Json] | None = None, packet: str = ""
) -> WorkflowHandle[Any, Any]:
    """Start the run function that is registered under this name, or return the run that has this key already."""
    run = stream_name(name, packet, key)
    try:
        return await client.start_workflow(
            name, {"inputs": dict(inputs or {})}, id=run, task_queue=task_queue,
            memo={PACKET: packet} if packet else None,
            # A key names one run for as long as the server keeps it: run again, it would repeat its effects.
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )  # fmt: skip
    except WorkflowAlreadyStartedError:
        return client.get_workflow_handle(run)


async def move(
    client: Client, runtime: Runtime, run: str, *, task_queue: str, inputs: Mapping[str, Json] | None = None
) -> WorkflowHandle[Any, Any]:
    """Continue an unfinished run of a store on Temporal, where its run function must be registered under its name.

    The store records that the run was moved before the workflow begins, so the run is never executed in both. Asked
    again, for example after a crash in between, it does what is left to do.
    """
    state = await asyncio.to_thread(runtime.state, run)
    if state.status == "completed":
        raise RunBlocked(f"{run} is finished", code="run_moved")
    memory = await asyncio.to_thread(memory_of, runtime, state)
    await asyncio.to_thread(runtime.hand_over, run, store_name(client.namespace))
    try:
        return await client.start_workflow(
            state.name, {"inputs": dict(inputs or {}), "memory": memory}, id=run, task_queue=task_queue,
            memo={PACKET: state.packet} if state.packet else None,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )  # fmt: skip
    except WorkflowAlreadyStartedError:
        return client.get_workflow_handle(run)


def memory_of(runtime: Runtime, state: RunState) -> Memory:
    """Return what a run of a store knows, in the form in which a workflow passes it on."""
    unfinished = [one.step for one in state.effects.values() if "/" in one.step and _outer(one.step) not in state.steps]
    if unfinished:
        raise RunBlocked(
            f"{unfinished[0]} belongs to a child run that is not finished, which would begin again on Temporal",
            code="run_moved", hint="let the child run finish first",
        )  # fmt: skip
    memory = new_memory()
    steps, store = memory["steps"], runtime.store
    for key, record in state.steps.items():
        if "/" not in key:
            steps[key] = {"args": dict(record.args), "version": record.version, "value": _value(store, record.event)}
    for one in state.effects.values():
        memory["effects"][one.effect] = _effect(store, one)
    _add_waits(memory, store, state)
    point = state.latest_of("")
    if point is not None:
        memory["cursor"], memory["checkpoints"] = _cursor(store, point.event), 1
        memory["counters"] = {name: number for name, number in point.counters.items() if "/" not in name}
    memory["published"] = {name: _value(store, event) for name, event in state.published.items()}
    memory["attempt"] = state.attempt + 1
    return memory


def _outer(step: str) -> str:
    return step.partition("/")[0]


def _value(store: Store, event: Event) -> Json:
    payload = store.payload(event)
    return None if payload is None else value_of(payload)


def _cursor(store: Store, event: Event) -> Json:
    value = _value(store, event)
    return value.get("cursor") if isinstance(value, Mapping) else None


_STATUS: Final[Mapping[str, str]] = {
    "intended": "", "started": "unknown", "failed_unknown": "unknown", "failed": "failed", "retry": "failed",
    "succeeded": "succeeded", "mark_done": "succeeded", "accepted": "accepted", "compensate": "unknown",
    "undone": "failed",
}  # fmt: skip


def _effect(store: Store, one: EffectRecord) -> dict[str, Any]:
    known: dict[str, Any] = {"step": one.step, "status": _STATUS[one.status], "calls": int(one.status != "intended")}
    if one.args is not None and not one.target_hash:
        known["asked"] = {"name": one.name, "target": one.target, "args": dict(one.args)}
    if known["status"] == "succeeded":
        known |= {"value": _value(store, one.event)} if one.has_receipt else {"unkept": one.unkept or "a secret"}
    if known["status"] == "accepted":
        known["error"] = dict(one.event.values())
    return known


def _add_waits(memory: Memory, store: Store, state: RunState) -> None:
    """Add the waits that are over, and the signals that nothing has taken."""
    for step, wait in state.waits.begun.items():
        if wait.number is None or "/" in step:
            continue
        arrived = state.waits.signals.get(wait.signal, [])
        taken = wait.signal and wait.number
        memory["steps"][step] = {"value": _value(store, arrived[wait.number - 1])} if taken else {}
    for signal, events in state.waits.signals.items():
        left = events[state.waits.taken.get(signal, 0) :]
        memory["signals"][signal] = [_value(store, event) for event in left]


async def questions(client: Client, run: str) -> tuple[WorkflowQuestion, ...]:
    """Return what the workflow waits for a person to say."""
    found: list[Any] = await client.get_workflow_handle(run).query(QUESTIONS, result_type=list)
    return tuple(found)


async def answer(
    client: Client,
    run: str,
    subject: str,
    choice: Choice,
    *,
    value: Json = None,
    by: str = "",
    note: str = "",
    sign: Callable[[AnswerToJudge], str] | None = None,
) -> None:
    """Answer a question. `sign` returns an envelope with a person's signature, for workers with a verifier; `value` is
    the result that the program receives, with `mark_done`.
    """
    asked = next((one for one in await questions(client, run) if one["subject"] == subject), None)
    if asked is None:
        raise RunBlocked(f"{run} does not wait for an answer to {subject}", code="needs_confirmation")
    said: WorkflowAnswer = {"subject": subject, "answer": choice, "by": by, "note": note}
    if choice == "mark_done":
        said["value"] = value
    if sign is not None:
        result = jcs_hash(value) if choice == "mark_done" else ""
        shown, at = jcs_hash(asked["about"]), 0
        covered = AnswerToJudge(run, subject, asked["question"], shown, choice, result, note, "", at)
        said["envelope"] = await asyncio.to_thread(sign, covered)
    await client.get_workflow_handle(run).signal(ANSWER, said)


async def tell_gate(client: Client, repository: Repository, packet: str, gate: str = "activation") -> int:
    """Tell the running workflows of this packet that a gate may have opened. Return how many were told."""
    state, told = state_here(repository, packet), 0
    for run in state.open_runs:
        if run.store == store_name(client.namespace):
            await client.get_workflow_handle(run.run).signal(GATE, {"packet": packet, "gate": gate})
            told += 1
    return told


# ---- history and log ---------------------------------------------------------------------------------------------


async def differences(client: Client, repository: Repository, *, query: str = "") -> AsyncIterator[Mismatch]:
    """Yield everything on which Temporal and the logs of packets disagree. `query` limits the workflows examined."""
    known: set[tuple[str, str]] = set()
    for state in await asyncio.to_thread(lambda: list(linked_packets(repository))):
        for run in state.runs:
            if run.store == store_name(client.namespace):
                known.add((run.run, state.packet))
                async for one in _about(client, state, run):
                    yield one
    async for execution in client.list_workflows(query or None):
        packet = str((await execution.memo()).get(PACKET, ""))
        # A packet without a log has no place for a link.
        linkable = packet and (execution.id, packet) not in known and state_here(repository, packet).history
        if linkable and await _began(client, execution.id):
            yield Mismatch(
                execution.id,
                packet,
                "unlinked",
                f"the workflow {execution.id} names {packet}, whose log has no link to it",
            )


async def settle(client: Client, repository: Repository, *, query: str = "") -> tuple[list[Mismatch], list[Mismatch]]:
    """Close the links of workflows that have ended. Return what was settled, and what is left for a person."""
    settled, left = [], []
    for one in [each async for each in differences(client, repository, query=query)]:
        ending = await _ending(client, one.run) if one.what == "late" else None
        if ending is None:
            left.append(one)
            continue
        await asyncio.to_thread(_close, repository, store_name(client.namespace), one, ending)
        settled.append(one)
    return settled, left


def _close(repository: Repository, store: str, one: Mismatch, ending: Ending) -> None:
    close(
        repository, acting(repository), one.packet, lambda run: (run.run, run.store) == (one.run, store), lambda: ending
    )


async def _about(client: Client, state: PacketState, run: LinkedRun) -> AsyncIterator[Mismatch]:
    ending = await _ending(client, run.run)
    if ending is None:
        if await _execution(client, run.run) is None:
            yield Mismatch(
                run.run, state.packet, "missing", f"{run.run} is linked to {state.packet}, but does not exist"
            )
        return
    if run.closed is None:
        message = f"{run.run} is {ending.outcome}, but the link to it in the log of {state.packet} is still open"
        yield Mismatch(run.run, state.packet, "late", message)
    elif (said := run.closed.text("outcome")) != ending.outcome:
        yield Mismatch(run.run, state.packet, "outcome", f"{run.run} is {ending.outcome}; the log says {said}")
    elif (digest := run.closed.text("stream_sha256")) and digest != ending.digest:
        message = f"the effects of {run.run} did not end as the log of {state.packet} says"
        yield Mismatch(run.run, state.packet, "effects", message)
    for step in twice(await effects_of(client, run.run)):
        yield Mismatch(run.run, state.packet, "twice", f"{run.run}: {step} succeeded more than once")


async def _execution(client: Client, run: str) -> WorkflowExecution | None:
    try:
        return await client.get_workflow_handle(run).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return None
        raise


async def _ending(client: Client, run: str) -> Ending | None:
    """Return how the workflow ended; None if it has not, or if there is none."""
    execution = await _execution(client, run)
    if execution is None or execution.status is None or execution.status not in _OUTCOMES:
        return None
    outcome, code = _OUTCOMES[execution.status]
    events = await history_of(client, run)
    failure = events[-1].workflow_execution_failed_event_attributes.failure.application_failure_info.type
    if outcome == "stopped" and failure and reason_of(failure).code != "unregistered":
        code = failure
    rows = await _rows(client, events)
    return Ending(outcome, code, digest=digest_of(rows), events=len(rows))


async def _began(client: Client, run: str) -> bool:
    """Whether the workflow did anything of its own: one that was refused at its link has no link."""
    own = [
        event
        for event in await history_of(client, run)
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
    ]
    return bool(own)


async def history_of(client: Client, run: str) -> list[HistoryEvent]:
    """Return all events of a workflow, including those from before it continued as new."""
    events: list[HistoryEvent] = []
    run_id: str | None = None
    while True:
        one = [event async for event in client.get_workflow_handle(run, run_id=run_id).fetch_history_events()]
        events = one + events
        run_id = one[0].workflow_execution_started_event_attributes.continued_execution_run_id
        if not run_id:
            return events


async def effects_of(client: Client, run: str) -> list[Row]:
    """Return the outcomes of all effects of a workflow according to its history: step, number of the call, outcome."""
    return await _rows(client, await history_of(client, run))


def twice(rows: list[Row]) -> list[str]:
    """Return the effects that succeeded more than once."""
    done = [step for step, _, outcome in rows if outcome == "done"]
    return sorted({step for step in done if done.count(step) > 1})


async def _rows(client: Client, events: list[HistoryEvent]) -> list[Row]:
    named: dict[int, str] = {}
    rows: list[Row] = []
    for event in events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            named = {}  # the numbers of events begin again
        scheduled = event.activity_task_scheduled_event_attributes.activity_id
        if scheduled.startswith(EFFECT_ID):
            named[event.event_id] = scheduled.removeprefix(EFFECT_ID)
        ended = await _outcome(client, event)
        if ended is not None and ended[0] in named:
            step, _, number = named[ended[0]].rpartition(":")
            rows.append([step, number, ended[1]])
    return rows


async def _outcome(client: Client, event: HistoryEvent) -> tuple[int, str] | None:
    """Return the number of the event that scheduled an activity, and how that activity ended."""
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        return event.activity_task_completed_event_attributes.scheduled_event_id, "done"
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
        return event.activity_task_canceled_event_attributes.scheduled_event_id, "lost"
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
        timed_out = event.activity_task_timed_out_event_attributes
        never = timed_out.failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
        return timed_out.scheduled_event_id, "not_done" if never else "lost"
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
        failed = event.activity_task_failed_event_attributes
        cause = await client.data_converter.decode_failure(failed.failure)
        return failed.scheduled_event_id, read_failure(_as_seen(cause)).outcome
    return None


def _as_seen(cause: BaseException) -> ActivityError:
    """Return the error as the workflow saw it."""
    error = ActivityError(
        "", scheduled_event_id=0, started_event_id=0, identity="", activity_type="", activity_id="",
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )  # fmt: skip
    error.__cause__ = cause
    return error
