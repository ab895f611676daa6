"""A run function as a Temporal workflow: `run` with the methods of `AsyncRun`, on Temporal's own means.

Steps and effects are activities, children are child workflows, timers, signals and patches are Temporal's. What one
execution knows (results of steps, outcomes of effects, the cursor, published values) is a JSON value, which is passed
on when the workflow continues as new, at a checkpoint.

A run that raises an error is continued like a worker of a queue would: after a delay if the stop reason is one that may
pass, otherwise after a person's answer. The run function is then called again, and finished calls return what they
returned. Only a run that has not begun any effect fails at once.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace as with_fields
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, Self, TypedDict

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError
from temporalio.workflow import ChildWorkflowCancellationType, ContinueAsNewError

from workpacket.model.canonical import Json
from workpacket.runtime.async_run import side_by_side
from workpacket.runtime.attempts.effects import KEYED, Recovery, identity, user_key
from workpacket.runtime.attempts.session import SavedCheckpoint, stop_code
from workpacket.runtime.attempts.steps import (
    Options,
    Retry,
    Scope,
    argument_hashes,
    arguments_hash,
    name_and_function,
    require_name,
    shown_arguments,
)
from workpacket.runtime.errors import RunBlocked, RuntimeFault
from workpacket.runtime.records.failures import described, failure_again, failure_data, reason_of
from workpacket.runtime.records.jcs import jcs_hash
from workpacket.runtime.run import takes_key
from workpacket.temporal.decisions import (
    Decisions,
    Effect,
    decisions_here,
    is_repeatable,
    receipt,
    stopped,
)
from workpacket.temporal.fitness import name_of

STEP: Final = "workpacket.step"
PUBLISHED: Final = "workpacket.published"  # the query for published values
FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 300.0
MOST_TRIES: Final = 5
_REPEATS: Final = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30))
_ONCE: Final = RetryPolicy(maximum_attempts=1)

RunFunction = Callable[..., Awaitable[Any]]


class Timeouts(TypedDict, total=False):
    """How long an activity may take, and for how long its worker may be silent before it counts as lost."""

    longest: timedelta
    silent: timedelta


TIMEOUTS: Timeouts = {"longest": timedelta(hours=1), "silent": timedelta(seconds=30)}
JOBS: dict[str, RunFunction] = {}  # the run functions that this worker can execute, by the name of their runs


class ActivityCall(TypedDict):
    """What an activity is told: the function, by its name, and its arguments."""

    function: str
    args: list[Json]
    kwargs: dict[str, Json]
    effect: bool


class Memory(TypedDict):
    """What a run knows, apart from its decisions."""

    steps: dict[str, dict[str, Any]]
    effects: dict[str, dict[str, Any]]
    outcomes: list[list[str]]
    nonces: list[str]
    cursor: Json
    counters: dict[str, int]  # how often each name was used before the cursor
    published: dict[str, Json]
    signals: dict[str, list[Json]]
    signal_keys: list[str]
    answers: dict[str, str]
    attempt: int
    checkpoints: int


def new_memory() -> Memory:
    return {
        "steps": {}, "effects": {}, "outcomes": [], "nonces": [], "cursor": None, "counters": {}, "published": {},
        "signals": {}, "signal_keys": [], "answers": {}, "attempt": 1, "checkpoints": 0,
    }  # fmt: skip


class TemporalRun:
    """What a run function receives on Temporal. Each method does what that of `AsyncRun` does."""

    def __init__(self, memory: Memory, decisions: Decisions, inputs: Mapping[str, Json]) -> None:
        self._memory = memory
        self._decisions = decisions
        self._inputs = inputs
        self._scope = Scope(self)
        self._options = Options()
        self._taken: dict[str, int] = {}

    @property
    def id(self) -> str:
        return workflow.info().workflow_id

    @property
    def attempt(self) -> int:
        return self._memory["attempt"]

    def using(
        self, *, retry: Retry | None = None, version: str | None = None,
        changed: Literal["block", "redo"] | None = None, codec: object = None,
        on_cancel: Literal["stop", "finish"] | None = None,
    ) -> Self:  # fmt: skip
        """Return this run with different options for the steps and child runs called through it."""
        if codec is not None:
            raise RunBlocked("on Temporal, values are converted by the client's data converter", code="worker_blocked")
        run, present = copy.copy(self), self._options
        run._options = Options(
            retry or present.retry, present.version if version is None else version, changed or present.changed, None,
            on_cancel or present.on_cancel,
        )  # fmt: skip
        return run

    # ---- steps ---------------------------------------------------------------------------------------------------

    def step(self, first: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run the step once, as an activity."""
        name, function, rest = name_and_function(first, args)
        return self._step(self._scope.next_key(name), function, rest, kwargs)

    async def _step(
        self, key: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        call, hashes = _call(function, args, kwargs, key)
        if (done := self._finished(key, hashes)) is not None:
            return done["value"]
        retry, tries, began = self._options.retry, 0, workflow.time()
        while True:
            try:
                found = await self._activity(call, key)
            except ActivityError as error:
                tries += 1
                raised = _raised(error)
                wait = _wait_after(retry, tries, raised, workflow.time() - began)
                if wait is None:
                    raise raised from error
                await workflow.sleep(wait)
            else:
                if found["redactions"] or "unkept" in found:
                    raise _not_returned(key, found)
                self._memory["steps"][key] = {
                    "args": hashes, "version": self._options.version, "value": found["value"],
                }  # fmt: skip
                return found["value"]

    def _finished(self, key: str, hashes: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the record of a finished step, unless it was done for other arguments and may be done again."""
        known = self._memory["steps"].get(key)
        if known is None or (known["args"], known["version"]) == (hashes, self._options.version):
            return known
        if self._options.changed == "redo":
            return None
        raise RunBlocked(f"step {key} was done with different arguments or in another version", code="step_changed")

    async def _activity(self, call: ActivityCall, summary: str, *, once: str = "") -> dict[str, Any]:
        found: dict[str, Any] = await workflow.execute_activity(
            STEP, call, result_type=dict, start_to_close_timeout=TIMEOUTS["longest"],
            heartbeat_timeout=TIMEOUTS["silent"], retry_policy=_ONCE if once else _REPEATS, summary=summary,
            activity_id=once or None,
        )  # fmt: skip
        return found

    async def map(
        self, name: str, function: Callable[..., Any], items: Sequence[Any], workers: int = 4, *,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Any]:  # fmt: skip
        """Run one step for each item, `workers` at a time; return their results in order."""
        calls = [(self._scope.next_key(name), item) for item in items]
        return await side_by_side(lambda call: self._step(call[0], function, call[1:], {}), calls, workers, errors)

    def child(self, first: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run a child run once, as a child workflow. Its run function must be registered with the worker."""
        name, job, rest = name_and_function(first, args)
        return self._child(self._scope.next_key(name), job, rest, kwargs)

    async def _child(self, key: str, job: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        call, hashes = _call(job, args, kwargs, key)
        if (done := self._finished(key, hashes)) is not None:
            return done["value"]
        registered = next((name for name, each in JOBS.items() if each is job), "")
        if not registered:
            raise RunBlocked(f"{call['function']} is not registered with this worker", code="worker_blocked")
        # The number of the attempt: a child that failed cannot be started again under its id.
        place = f"{self.id}/{key}" + (f"~{self.attempt}" if self.attempt > 1 else "")
        finish = self._options.on_cancel == "finish"
        how = ChildWorkflowCancellationType
        try:
            value = await workflow.execute_child_workflow(
                registered, args=[{"args": call["args"], "inputs": call["kwargs"]}], id=place,
                cancellation_type=how.ABANDON if finish else how.WAIT_CANCELLATION_COMPLETED,
            )  # fmt: skip
        except ChildWorkflowError as error:
            cause = error.cause
            code = cause.type if isinstance(cause, ApplicationError) and cause.type else "worker_failed"
            raise RunBlocked(f"{key}: {cause or error}", code=code) from error
        self._memory["steps"][key] = {"args": hashes, "version": self._options.version, "value": value}
        return value

    # ---- effects -------------------------------------------------------------------------------------------------

    async def effect(
        self, name: str, function: Callable[..., Any], /, *args: Any, key: str | None = None,
        recovery: Recovery = "manual", target: str = "", confirm: bool = False,
        probe: Callable[[], Awaitable[Any]] | None = None, compensate: Callable[[], Awaitable[object]] | None = None,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Run an effect, as an activity that is tried once; see `decisions`."""
        if key is not None and takes_key(function):
            kwargs["key"] = key
        step = self._scope.next_key(name)
        call, hashes = _call(function, args, kwargs, step)
        call["effect"] = True
        compared = arguments_hash(args, kwargs) if key is None else KEYED + jcs_hash(key)
        subject = identity(self.id, step, recovery, target or name, compared)
        asked: dict[str, Any] = {
            "name": name, "target": target or name, "args": {each: hashes[each] for each in hashes if each != "key"},
        }  # fmt: skip
        known = self._decisions.known.setdefault(subject, {"step": step, "status": "", "calls": 0, "asked": asked})
        if known.setdefault("asked", asked) != asked:
            raise RunBlocked(f"the key of {step} was used for a different effect", code="effect_key_reused")
        if confirm and not known["calls"]:
            await self._confirmed(f"{name}: {target or name}", shown_arguments(args, kwargs), [subject])
        where = known["step"]  # where it was first asked for; a key may be used elsewhere

        async def started(activity_id: str) -> Any:
            return _as_receipt(await self._activity(call, where, once=activity_id))

        async def told(each: Callable[..., Any]) -> Any:
            inner, _ = _call(each, (), {}, step)
            return (await self._activity(inner, f"{step}: {inner['function']}"))["value"]

        effect = Effect(
            where, subject, recovery, target or name, started, partial(told, probe) if probe else None,
            partial(told, compensate) if compensate else None,
        )  # fmt: skip
        return await self._repeated(effect)

    async def _repeated(self, effect: Effect) -> Any:
        """Carry out the effect, with the retries that its recovery allows after an error."""
        retry, tries, began = self._options.retry, 0, workflow.time()
        while True:
            try:
                return await self._decisions.carry_out(effect, raise_first=True)
            except RuntimeFault:
                raise
            except Exception as error:
                tries += 1
                known = self._decisions.known[effect.subject]
                allowed = known["status"] == "failed" or is_repeatable(effect.recovery)
                wait = _wait_after(retry, tries, error, workflow.time() - began) if allowed else None
                if wait is None:
                    known["error"] = failure_data(error)
                    raise
                await workflow.sleep(wait)

    async def accept_unknown(self, key: str) -> None:
        """Accept that it will remain unknown whether an effect happened."""
        subject = user_key(self.id, KEYED + jcs_hash(key))
        found = [one for name, one in self._decisions.known.items() if name == subject or one["step"] == key]
        if not found:
            raise RunBlocked(f"{self.id} has no effect with the key or step {key!r}", code="effect_outcome_unknown")
        for one in found:
            if one["status"] == "unknown":
                one["status"] = "accepted"

    # ---- checkpoints, questions, values --------------------------------------------------------------------------

    async def checkpoint(
        self, cursor: Json = None, *, name: str = "", kind: str = "run",
        preconditions: Mapping[str, Json] | None = None, token: bool = False,
    ) -> SavedCheckpoint:  # fmt: skip
        """Record `cursor` as the next action. If the history has become long, the workflow continues as new here."""
        del name, kind
        if preconditions or token:
            raise RunBlocked("on Temporal, a checkpoint has no preconditions and no token", code="worker_blocked")
        self._memory["cursor"], self._memory["counters"] = cursor, dict(self._scope.counters)
        self._memory["checkpoints"] += 1
        if workflow.info().is_continue_as_new_suggested():
            await workflow.wait_condition(workflow.all_handlers_finished)
            workflow.continue_as_new(args=[{"inputs": dict(self._inputs), "memory": self._memory}])
        return SavedCheckpoint(str(self._memory["checkpoints"]), self._memory["checkpoints"])

    async def cursor(self, default: Json = None) -> Json:
        """Return the cursor of the last checkpoint, or `default`. Steps are counted on from that checkpoint."""
        if not self._memory["checkpoints"]:
            return default
        for name, number in self._memory["counters"].items():
            self._scope.counters[name] = max(self._scope.counters.get(name, 0), number)
        return self._memory["cursor"]

    async def boundary(self, items: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """Yield the items one by one; if the workflow is cancelled, it ends between two items."""
        async for item in items:
            yield item

    async def confirm(self, question: str, about: Json = None) -> None:
        """Continue only if a person says yes."""
        times = self._scope.counters[f"?{question}"] = self._scope.counters.get(f"?{question}", 0) + 1
        await self._confirmed(question, about, [times])

    async def _confirmed(self, question: str, about: Json, place: list[Json]) -> None:
        subject = jcs_hash([self.id, question, about, *place])
        if self._memory["answers"].get(subject) != "yes":
            await self._decisions.confirm(question, about, subject)
            self._memory["answers"][subject] = "yes"

    async def publish(self, name: str, value: Json) -> None:
        """Publish a value under a name: the query `workpacket.published` returns it."""
        require_name(name, "value")
        self._memory["published"][name] = value

    async def patched(self, name: str) -> bool:
        """Whether to take the new path at a change to the program; Temporal's own patch."""
        return workflow.patched(name)

    # ---- waits ---------------------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        """Wait for this long, on a timer of Temporal."""
        await self._wait_once(self._scope.next_key("sleep"), seconds)

    async def sleep_until(self, instant: datetime) -> None:
        """Wait until a point in time, which must have a time zone."""
        if instant.tzinfo is None:
            raise ValueError("an instant needs a time zone, such as datetime.now(UTC) + timedelta(hours=1)")
        await self._wait_once(self._scope.next_key("sleep"), max(0.0, instant.timestamp() - workflow.time()))

    async def _wait_once(self, key: str, seconds: float) -> None:
        if key not in self._memory["steps"]:
            await workflow.sleep(seconds, summary=key)
            self._memory["steps"][key] = {}

    async def wait_for(self, signal: str, *, timeout: float | None = None) -> Json:
        """Return the value of the next signal with this name; raise `TimeoutError` if none arrives in time."""
        require_name(signal, "signal")
        key, arrived = self._scope.next_key(f"wait for {signal}"[:200]), self._memory["signals"].setdefault(signal, [])
        known = self._memory["steps"].get(key)
        if known is None:
            known = self._memory["steps"][key] = await self._received(arrived, timeout)
        if "value" not in known:
            raise TimeoutError(f"signal {signal!r} did not arrive within {timeout:g} s")
        value: Json = known["value"]
        return value

    async def _received(self, arrived: list[Json], timeout: float | None) -> dict[str, Any]:
        try:
            await workflow.wait_condition(lambda: bool(arrived), timeout=timeout)
        except TimeoutError:
            return {}
        return {"value": arrived.pop(0)}


def _call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], what: str
) -> tuple[ActivityCall, dict[str, str]]:
    """Return what the activity is told, and the hash of each argument."""
    while isinstance(function, partial):
        args, kwargs, function = (*function.args, *args), {**function.keywords, **kwargs}, function.func
    hashes, opaque = argument_hashes(args, kwargs)
    if opaque:
        names = ", ".join(opaque)
        raise TypeError(f"{what}: on Temporal, arguments must be JSON, because another process receives them: {names}")
    return {"function": name_of(function), "args": list(args), "kwargs": dict(kwargs), "effect": False}, hashes


def _raised(error: ActivityError) -> BaseException:
    """Return the exception that the function raised, again."""
    cause = error.cause
    said = cause.details[0] if isinstance(cause, ApplicationError) and cause.details else None
    return failure_again(said) if isinstance(said, dict) and "raised" in said else error


def _wait_after(retry: Retry, tries: int, error: BaseException, spent: float) -> float | None:
    """Return the wait before the next try; the random part comes from Temporal, so that a replay waits as long."""
    wait = with_fields(retry, jitter=0.0).wait_after(tries, error, spent)
    return wait if wait is None else wait * (1 - retry.jitter * workflow.random().random())


def _as_receipt(found: dict[str, Any]) -> Any:
    if "unkept" in found:
        return receipt({"unkept": found["unkept"]})
    if found["redactions"]:
        return receipt({"unkept": f"{found['redactions']} parts of it looked like secrets"})
    return found["value"]


def _not_returned(key: str, found: Mapping[str, Any]) -> RunBlocked:
    why = found.get("unkept") or f"{found['redactions']} parts of it look like secrets"
    return RunBlocked(
        f"{key}: its result cannot go through Temporal: {why}", code="would_be_altered",
        hint="return a reference to it",
    )  # fmt: skip


@workflow.defn(dynamic=True, sandboxed=False)
class RunWorkflow:
    """Executes the run function that is registered under the type of the workflow."""

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> Any:
        converter = workflow.payload_converter()
        request: dict[str, Any] = converter.from_payload(args[0].payload, dict) if args else {}
        name = workflow.info().workflow_type
        job = JOBS.get(name)
        if job is None:
            raise stopped(RunBlocked(f"this worker has no run function {name!r}"), "worker_blocked")
        memory: Memory = {**new_memory(), **request.get("memory", {})}
        decisions = decisions_here()
        decisions.known, decisions.outcomes, decisions.nonces = memory["effects"], memory["outcomes"], memory["nonces"]

        def signalled(signal: str, values: Sequence[RawValue]) -> None:
            _keep(memory, signal, converter.from_payload(values[0].payload) if values else None)

        workflow.set_dynamic_signal_handler(signalled)
        workflow.set_query_handler(PUBLISHED, lambda: dict(memory["published"]))
        inputs = dict(request.get("inputs") or {})
        return await _until_done(job, request.get("args") or [], inputs, memory, decisions)


def _keep(memory: Memory, signal: str, value: Any) -> None:
    """Keep a signal for `wait_for`. A value {"key": KEY, "value": VALUE} is kept once for each key."""
    if isinstance(value, dict) and set(value) == {"key", "value"}:
        mark = f"{signal}:{value['key']}"
        if mark in memory["signal_keys"]:
            return
        memory["signal_keys"].append(mark)
        value = value["value"]
    memory["signals"].setdefault(signal, []).append(value)


async def _until_done(
    job: RunFunction, args: Sequence[Any], inputs: Mapping[str, Any], memory: Memory, decisions: Decisions
) -> Any:
    """Call the run function until it returns; see the docstring of the module."""
    tries = 0
    while True:
        tries += 1
        try:
            return await job(TemporalRun(memory, decisions, inputs), *args, **inputs)
        except (ContinueAsNewError, asyncio.CancelledError):
            raise
        except Exception as error:
            code = stop_code(error)
            if reason_of(code).auto_resume == "with_backoff" and tries < MOST_TRIES:
                await workflow.sleep(min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT))
            elif not any(one["calls"] for one in decisions.known.values()):
                raise stopped(error, code) from error
            else:
                await _continued(decisions, error, code, memory["attempt"])
                tries = 0
            memory["attempt"] += 1


async def _continued(decisions: Decisions, error: Exception, code: str, attempt: int) -> None:
    """Wait for a person to say whether a run that has begun effects goes on; otherwise it ends."""
    subject = jcs_hash([workflow.info().workflow_id, "stopped", attempt])
    answer = await decisions.ask(subject, f"the run stopped: {described(error)}", {"code": code}, ("resume", "end"))
    if answer["answer"] == "end":
        raise stopped(error, code) from error
