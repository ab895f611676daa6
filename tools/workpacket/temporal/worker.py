"""The plug-in for workers and clients of Temporal: interceptors, activities, the data converter.

A workflow belongs to a packet if its memo says so: `memo={"packet": "WP-..."}`. It then begins with `run.linked` in the
packet's log, which is refused if no work on the packet may begin now, and ends with `run.closed` and its stop reason.

An activity is an effect if it is marked with `@effect`, or named in `WorkpacketPlugin(effects=...)` where only
workflows run. It is tried once; if its outcome is unknown, the workflow waits for a decision (see `decisions`). The
recoveries read, idempotent and keyed leave the activity to Temporal's own retries, because it may be repeated.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from temporalio import activity, workflow
from temporalio.common import RawValue, RetryPolicy, SearchAttributeKey
from temporalio.converter import DataConverter
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    ActivityInboundInterceptor,
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import ActivityHandle, ContinueAsNewError

from workpacket.bridges.run_links import close, link, packet_stop, state_here
from workpacket.git.repository import Repository, find_repository
from workpacket.ledger.fold import PacketState
from workpacket.lifecycle.claims import Ending
from workpacket.lifecycle.gates import CONSUMING
from workpacket.model.canonical import Json
from workpacket.model.lanes import lane_of_token
from workpacket.problem import WorkpacketError
from workpacket.report.runs import TEMPORAL
from workpacket.runtime.attempts.effects import Recovery
from workpacket.runtime.errors import NotDone
from workpacket.runtime.records.events import AnswerToJudge, AnswerVerifier
from workpacket.runtime.records.failures import described, failure_data, reason_of
from workpacket.runtime.records.jcs import stored_text
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.stores.contract import Store
from workpacket.shell.actor import acting
from workpacket.temporal.decisions import (
    CLOSE,
    GATE_OPEN,
    JUDGE,
    LINK,
    Effect,
    decisions_here,
    failing,
    is_repeatable,
    open_decisions,
    own_activity,
    uninterrupted,
)
from workpacket.temporal.fitness import name_of, unfit
from workpacket.temporal.payloads import REDACTED, data_converter
from workpacket.temporal.run_function import JOBS, STEP, TIMEOUTS, RunFunction, RunWorkflow, Timeouts

F = TypeVar("F", bound=Callable[..., Any])

PACKET: Final = "packet"  # the key of a workflow's memo
PACKET_ATTRIBUTE: Final = SearchAttributeKey.for_keyword("WorkpacketPacket")
LANE_ATTRIBUTE: Final = SearchAttributeKey.for_keyword("WorkpacketLane")
_MARK: Final = "__workpacket_effect__"
_PASSED_ON: Final = "workpacket"  # the header of a workflow that continues another one


@dataclass(frozen=True)
class EffectMark:
    """What is said about an activity that is an effect. `probe` and `compensate` are names of activities, which receive
    the same arguments.
    """

    recovery: Recovery = "manual"
    target: str = ""
    probe: str = ""
    compensate: str = ""


def effect(
    *, recovery: Recovery = "manual", target: str = "", probe: str = "", compensate: str = ""
) -> Callable[[F], F]:
    """Mark an activity as an effect: `@effect(recovery="manual")` above `@activity.defn`."""

    def marked(function: F) -> F:
        setattr(function, _MARK, EffectMark(recovery, target, probe, compensate))
        return function

    return marked


def store_name(namespace: str) -> str:
    """Return what a packet's log says in place of the store: Temporal and the namespace."""
    return f"{TEMPORAL}{namespace}"


# ---- activities --------------------------------------------------------------------------------------------------


@dataclass
class Activities:
    """The activities that the plug-in brings. Those about packets need a work tree of the repository."""

    folder: str
    verifier: AnswerVerifier | None
    redactor: Redactor
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def all(self) -> list[Callable[..., Any]]:
        return [self.link, self.close, self.gate_open, self.judge, self.step]

    def _repository(self) -> Repository:
        return find_repository(Path(self.folder or Path.cwd()))

    @activity.defn(name=LINK)
    async def link(self, said: dict[str, str]) -> dict[str, Json]:
        """Record `run.linked`; refuse if no work on the packet may begin now."""
        return await asyncio.to_thread(self._link, said)

    def _link(self, said: dict[str, str]) -> dict[str, Json]:
        repository = self._repository()
        stop = packet_stop(repository, said["packet"])
        if stop is not None:
            raise ApplicationError(f"{stop.message}; {stop.hint}", type=stop.code, non_retryable=True)
        link(repository, acting(repository), said["packet"], said["run"], said["store"])
        return {"lane": state_here(repository, said["packet"]).lane}

    @activity.defn(name=CLOSE)
    async def close(self, said: dict[str, Any]) -> dict[str, Json]:
        """Record `run.closed`, with the outcome, the stop reason, and the digest of the effects' outcomes."""
        return await asyncio.to_thread(self._close, said)

    def _close(self, said: dict[str, Any]) -> dict[str, Json]:
        repository = self._repository()
        ending = Ending(said["outcome"], said["code"], digest=said["digest"], events=said["effects"])
        closed = close(
            repository, acting(repository), said["packet"],
            lambda run: (run.run, run.store) == (said["run"], said["store"]), lambda: ending,
        )  # fmt: skip
        return {"closed": len(closed)}

    @activity.defn(name=GATE_OPEN)
    async def gate_open(self, said: dict[str, str]) -> dict[str, Json]:
        """Say whether a gate of a packet is open, according to the log in the work tree of this worker."""
        return await asyncio.to_thread(self._gate_open, said)

    def _gate_open(self, said: dict[str, str]) -> dict[str, Json]:
        state = state_here(self._repository(), said["packet"])
        never = "" if said["gate"] in CONSUMING.values() else f"there is no gate {said['gate']!r}"
        lane = lane_of_token(state.lane)
        if lane is not None and lane.archived and not _passed(state, said["gate"]):
            never = f"{said['packet']} is {state.lane}"
        return {"open": not never and _passed(state, said["gate"]), "lane": state.lane, "never": never}

    @activity.defn(name=JUDGE)
    async def judge(self, said: dict[str, Any]) -> dict[str, Json]:
        """Verify a person's answer. Without a verifier, every answer counts, as claimed."""
        if self.verifier is None:
            return {"signer": "", "nonce": "", "refusal": ""}
        judged = await asyncio.to_thread(self.verifier.judge, AnswerToJudge(**said))
        return {"signer": judged.signer, "nonce": judged.nonce, "refusal": judged.refusal}

    @activity.defn(name=STEP)
    async def step(self, call: RawValue) -> dict[str, Json]:
        """Call a step function, or the function of an effect."""
        said = activity.payload_converter().from_payload(call.payload, dict)
        if REDACTED in call.payload.metadata:
            raise _failure(NotDone(f"{said['function']} was not called: an argument contained a secret"), self.redactor)
        function = self.functions.get(said["function"])
        if function is None:
            raise _failure(NotDone(f"{said['function']} is not registered with this worker"), self.redactor)
        try:
            value = await function(*said["args"], **said["kwargs"])
        except Exception as error:
            raise _failure(error, self.redactor) from error
        return self._kept(value)

    def _kept(self, value: Any) -> dict[str, Json]:
        try:
            text = stored_text(value)
        except Exception as error:
            return {"value": None, "redactions": 0, "unkept": described(error)}
        clean, count = self.redactor.clean_value(value, text)
        return {"value": clean, "redactions": count}


def _passed(state: PacketState, gate: str) -> bool:
    """Whether the packet passed the gate, and is not waiting at it again."""
    if not state.sound or state.forked:
        return False
    events = [event for event in state.history if CONSUMING.get(event.type) == gate]
    if gate == "activation":
        return bool(events) and state.lane != "STUB"
    if gate == "verdict":
        return bool(state.verdicts) and state.verdicts[-1].text("verdict") == "PASS"
    return bool(events)


def _failure(error: Exception, redactor: Redactor) -> ApplicationError:
    """Return what Temporal records about an exception of a step; the workflow raises it again."""
    data: dict[str, Json] = {**failure_data(error), "definite": isinstance(error, NotDone)}
    clean, _ = redactor.clean_value(data, stored_text(data))
    name = "NotDone" if isinstance(error, NotDone) else type(error).__name__
    return ApplicationError(redactor.clean_text(described(error)), clean, type=name, non_retryable=True)


# ---- interceptors ------------------------------------------------------------------------------------------------


class _Beating(ActivityInboundInterceptor):
    """Tells the server that the worker is alive while an activity runs, if the activity has a heartbeat timeout."""

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if info.heartbeat_timeout is None or not (info.activity_type == STEP or hasattr(input.fn, _MARK)):
            return await super().execute_activity(input)
        loop, pause = asyncio.get_running_loop(), info.heartbeat_timeout.total_seconds() / 3
        timers: list[asyncio.TimerHandle] = []

        def beat() -> None:
            activity.heartbeat()
            timers[:] = [loop.call_later(pause, beat)]

        timers.append(loop.call_later(pause, beat))
        try:
            return await super().execute_activity(input)
        finally:
            timers[0].cancel()


class _Workflow(WorkflowInboundInterceptor):
    effects: Mapping[str, EffectMark]
    search: bool
    refused = False  # the packet does not allow any work now

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound, self.effects))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        decisions = open_decisions()
        if _PASSED_ON in input.headers:
            decisions.take_over(workflow.payload_converter().from_payload(input.headers[_PASSED_ON], dict))
        packet = str(workflow.memo_value(PACKET, ""))
        if not packet:
            return await super().execute_workflow(input)
        info = workflow.info()
        said = {"packet": packet, "run": info.workflow_id, "store": store_name(info.namespace)}
        outcome, code = "completed", ""
        try:
            await self._linked(said, again=info.continued_run_id is not None)
            return await super().execute_workflow(input)
        except ContinueAsNewError:
            outcome = ""
            raise
        except BaseException as error:
            outcome, code = _ending(error)
            raise
        finally:
            if outcome and not self.refused:
                ended = {"outcome": outcome, "code": code, "effects": len(decisions.outcomes)}
                await uninterrupted(own_activity(CLOSE, {**said, **ended, "digest": decisions.digest()}))

    async def _linked(self, said: dict[str, str], *, again: bool) -> None:
        if again:
            return
        try:
            found = await uninterrupted(own_activity(LINK, said))
        except ActivityError:
            self.refused = True
            raise
        if self.search:
            lane = [LANE_ATTRIBUTE.value_set(found["lane"])] if found["lane"] else []
            workflow.upsert_search_attributes([PACKET_ATTRIBUTE.value_set(said["packet"]), *lane])


def _ending(error: BaseException) -> tuple[str, str]:
    """Return how a workflow ends that raises this error, and the stop reason; '' if it only suspends the workflow."""
    if isinstance(error, asyncio.CancelledError | CancelledError):
        return "cancelled", ""
    if not workflow.is_failure_exception(error) if isinstance(error, Exception) else True:
        return "", ""
    if isinstance(error, ApplicationError) and error.type and reason_of(error.type).code != "unregistered":
        return "stopped", error.type
    return "stopped", "worker_failed"


class _Outbound(WorkflowOutboundInterceptor):
    def __init__(self, following: WorkflowOutboundInterceptor, effects: Mapping[str, EffectMark]) -> None:
        super().__init__(following)
        self._effects = effects

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        """Pass on how the effects ended, so that the digest at the end covers the whole chain."""
        passed = workflow.payload_converter().to_payload(decisions_here().passed_on())
        super().continue_as_new(with_fields(input, headers={**input.headers, _PASSED_ON: passed}))

    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:
        mark = self._effects.get(input.activity)
        if mark is None or is_repeatable(mark.recovery):
            return super().start_activity(input)
        number = decisions_here().next_number(input.activity)
        step = input.activity if number == 1 else f"{input.activity}#{number}"
        beats = input.heartbeat_timeout or TIMEOUTS["silent"]

        def started(activity_id: str) -> ActivityHandle[Any]:
            once = RetryPolicy(maximum_attempts=1)
            return super(_Outbound, self).start_activity(
                with_fields(input, retry_policy=once, activity_id=activity_id, heartbeat_timeout=beats)
            )

        def asked(name: str) -> Callable[[], ActivityHandle[Any]] | None:
            again = RetryPolicy(maximum_interval=timedelta(seconds=30))
            other = with_fields(input, activity=name, retry_policy=again, activity_id=None)
            return (lambda: super(_Outbound, self).start_activity(other)) if name else None

        wanted = Effect(
            step, f"{workflow.info().workflow_id}/{step}", mark.recovery, mark.target or input.activity, started,
            asked(mark.probe), asked(mark.compensate),
        )  # fmt: skip
        # A task is all that the caller needs: it awaits the handle, or cancels it.
        carried_out = failing(decisions_here().carry_out(wanted, raise_first=False))
        return asyncio.create_task(carried_out)  # type: ignore[return-value]


class _Interceptor(Interceptor):
    def __init__(self, effects: Mapping[str, EffectMark], *, search: bool) -> None:
        self._effects = effects
        self._search = search

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Beating(next)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        del input  # nothing depends on it
        return type("Workflow", (_Workflow,), {"effects": self._effects, "search": self._search})


# ---- the plug-in -------------------------------------------------------------------------------------------------


class WorkpacketPlugin(SimplePlugin):
    """Give it to the client: `Client.connect(..., plugins=[WorkpacketPlugin(...)])`. Its workers then have it too.

    `repository` is a folder in the repository with the packets; `jobs` are run functions by the name of their runs, and
    `steps` the functions that they call in other modules; `effects` marks activities that other workers execute;
    `store` keeps payloads that are too large for Temporal; `verifier` says whose answers count;
    `search_attributes` sets WorkpacketPacket and WorkpacketLane, which the server must know. `timeouts` says how long
    the activities of run functions may take (`longest`), and after what time without a heartbeat (`silent`) their
    worker counts as lost.
    """

    def __init__(
        self,
        *,
        repository: str | Path = "",
        jobs: Mapping[str, RunFunction] | None = None,
        steps: Sequence[Callable[..., Any]] = (),
        effects: Mapping[str, EffectMark] | None = None,
        store: Store | None = None,
        verifier: AnswerVerifier | None = None,
        search_attributes: bool = False,
        timeouts: Timeouts | None = None,
    ) -> None:
        TIMEOUTS.update(timeouts or {})
        redactor = Redactor.from_environment(os.environ)
        self._effects: dict[str, EffectMark] = dict(effects or {})
        own = Activities(str(repository), verifier, redactor)
        register(jobs or {}, steps, own)

        def converted(existing: DataConverter | None) -> DataConverter:
            return data_converter(redactor, store, existing)

        super().__init__(
            "workpacket",
            data_converter=converted,
            interceptors=[_Interceptor(self._effects, search=search_attributes)],
            activities=lambda existing: self._with_marks(existing or (), own),
            workflows=lambda existing: [*(existing or ()), *([RunWorkflow] if jobs else [])],
            workflow_runner=_letting_through,
        )

    def _with_marks(self, existing: Sequence[Callable[..., Any]], own: Activities) -> Sequence[Callable[..., Any]]:
        for function in existing:
            mark = getattr(function, _MARK, None)
            named = getattr(getattr(function, "__temporal_activity_definition", None), "name", None)
            if mark is not None and named:
                self._effects[named] = mark
        return [*existing, *own.all()]


def register(jobs: Mapping[str, RunFunction], steps: Sequence[Callable[..., Any]], own: Activities) -> None:
    """Register run functions, and all async functions in their modules. Refuse those that are not fit."""
    for name, job in jobs.items():
        found = unfit(job)
        if found:
            raise WorkpacketError(
                "worker_blocked", f"the run function {name!r} cannot run on Temporal: " + "; ".join(map(str, found))
            )
        JOBS[name] = job
        around = inspect.unwrap(job).__globals__
        visible = [each for each in around.values() if inspect.iscoroutinefunction(each)]
        for each in (*visible, *steps):
            try:
                own.functions[name_of(each)] = each
            except ValueError:
                continue  # nothing can ask for it


def _letting_through(runner: WorkflowRunner | None) -> WorkflowRunner:
    """Let workflows in the sandbox use this package as the process has loaded it."""
    if isinstance(runner, SandboxedWorkflowRunner):
        return with_fields(runner, restrictions=runner.restrictions.with_passthrough_modules("workpacket"))
    assert runner is not None
    return runner
