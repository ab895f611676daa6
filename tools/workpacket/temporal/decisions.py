"""Inside a workflow: effects with an outcome, questions for a person, and gates of packets.

Temporal's history is the record: the intent of an effect is the scheduling of its activity, the outcome is how that
activity ended. An effect is tried once (`maximum_attempts=1`), so that a lost worker leaves an activity that timed out,
and never a second call. Its outcome is then unknown, and the workflow waits for a probe or a person:

    nothing known, or certainly failed      start
    succeeded                               return the result
    unknown, and there is a probe           ask the probe: done -> return, not done -> start
    unknown                                 wait for an answer: mark_done, retry, compensate or end

The activity of an effect has the id `effect:STEP:N`, N being the number of the call. The digest of all outcomes goes
into the packet's log when the workflow ends; `workpacket.temporal.client` computes it again from the history.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple, TypedDict, cast

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutType
from temporalio.exceptions import TimeoutError as TimedOut

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import REPEATABLE, undone
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.failures import failure_again
from workpacket.runtime.records.jcs import address_of, jcs_bytes, jcs_hash

ANSWER: Final = "workpacket.answer"  # the signal with a person's answer
GATE: Final = "workpacket.gate"  # the signal that a gate may have opened
QUESTIONS: Final = "workpacket.questions"  # the query for what waits for a person
LINK: Final = "workpacket.link"
CLOSE: Final = "workpacket.close"
GATE_OPEN: Final = "workpacket.gate_open"
JUDGE: Final = "workpacket.judge"
EFFECT_ID: Final = "effect:"  # how the ids of effects' activities begin
_DECISIONS: Final = "__workpacket_decisions__"
_OWN_TIMEOUT: Final = timedelta(minutes=5)
_POLL: Final = timedelta(minutes=5)
_UNREGISTERED: Final = "is not registered on this worker"

Outcome = Literal["done", "not_done", "failed", "lost"]
Choice = Literal["yes", "no", "mark_done", "retry", "compensate", "resume", "end"]


class WorkflowAnswer(TypedDict, total=False):
    """The value of the signal `workpacket.answer`. `subject` is that of the question. `value` goes with `mark_done`."""

    subject: str
    answer: Choice
    value: Json
    by: str
    note: str
    envelope: str


class WorkflowQuestion(TypedDict):
    """What the query `workpacket.questions` returns for each open question."""

    subject: str
    question: str
    about: Json
    choices: list[Choice]
    refused: list[str]


class Effect(NamedTuple):
    """An effect that code in a workflow asks for. `start` schedules its activity, with the given id."""

    step: str
    subject: str
    recovery: str
    target: str
    start: Callable[[str], Awaitable[Any]]
    probe: Callable[[], Awaitable[Any]] | None = None
    compensate: Callable[[], Awaitable[object]] | None = None


class EndedCall(NamedTuple):
    """How one call of an effect ended."""

    outcome: Outcome
    value: Any = None
    error: BaseException | None = None
    cancelled: bool = False


@dataclass
class Decisions:
    """What one workflow knows about its effects and questions. `known` is passed on when it continues as new."""

    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    outcomes: list[list[str]] = field(default_factory=list)
    questions: dict[str, WorkflowQuestion] = field(default_factory=dict)
    nonces: list[str] = field(default_factory=list)
    _answers: dict[str, list[WorkflowAnswer]] = field(default_factory=dict)
    _gates: set[tuple[str, str]] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)

    def next_number(self, name: str) -> int:
        """Return which call of this activity in the workflow it is."""
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        return number

    def passed_on(self) -> dict[str, Any]:
        """Return what the next execution must know if the workflow continues as new."""
        return {"outcomes": self.outcomes, "nonces": self.nonces, "numbers": self._numbers}

    def take_over(self, said: dict[str, Any]) -> None:
        self.outcomes, self.nonces, self._numbers = said["outcomes"], said["nonces"], said["numbers"]

    # ---- signals and queries -------------------------------------------------------------------------------------

    def listen(self) -> None:
        workflow.set_signal_handler(ANSWER, self._answered)
        workflow.set_signal_handler(GATE, self._gate_changed)
        workflow.set_query_handler(QUESTIONS, lambda: list(self.questions.values()))

    def _answered(self, answer: dict[str, Any]) -> None:
        self._answers.setdefault(str(answer.get("subject", "")), []).append(cast("WorkflowAnswer", answer))

    def _gate_changed(self, said: dict[str, str]) -> None:
        self._gates.add((said.get("packet", ""), said.get("gate", "")))

    # ---- questions -----------------------------------------------------------------------------------------------

    async def ask(self, subject: str, question: str, about: Json, choices: Sequence[Choice]) -> WorkflowAnswer:
        """Return a person's answer. One that does not count is listed with the question, which stays open."""
        asked: WorkflowQuestion = {
            "subject": subject, "question": question, "about": about, "choices": list(choices), "refused": [],
        }  # fmt: skip
        self.questions[subject] = asked
        waiting = self._answers.setdefault(subject, [])
        while True:
            await workflow.wait_condition(lambda: bool(waiting))
            answer = waiting.pop(0)
            refusal = await self._refusal(asked, answer)
            if not refusal:
                del self.questions[subject]
                return answer
            asked["refused"].append(refusal)

    async def _refusal(self, asked: WorkflowQuestion, answer: WorkflowAnswer) -> str:
        if answer.get("answer") not in asked["choices"]:
            return f"{answer.get('answer')!r} is not one of {', '.join(asked['choices'])}"
        judged = await own_activity(JUDGE, {
            "run": workflow.info().workflow_id, "subject": asked["subject"], "question": asked["question"],
            "shown": jcs_hash(asked["about"]), "answer": answer["answer"],
            "result": jcs_hash(answer["value"]) if "value" in answer else "", "note": answer.get("note", ""),
            "envelope": answer.get("envelope", ""), "at": workflow.time_ns() // 1000,
        })  # fmt: skip
        nonce = str(judged["nonce"])
        if nonce and nonce in self.nonces:
            return "this signature was used before"
        if nonce and not judged["refusal"]:
            self.nonces.append(nonce)
        return str(judged["refusal"])

    async def confirm(self, question: str, about: Json, subject: str) -> None:
        """Continue only if a person says yes."""
        answer = await self.ask(subject, question, about, ("yes", "no"))
        if answer["answer"] != "yes":
            who = answer.get("by") or "a person"
            raise RunBlocked(f"{who} said no: {question}", code="confirmation_denied", details={"subject": subject})

    async def gate(self, packet: str, gate: str, poll: timedelta) -> None:
        """Wait until the gate of a packet is open. The signal makes it look at once; otherwise it looks each `poll`."""
        while True:
            self._gates.discard((packet, gate))
            found = await own_activity(GATE_OPEN, {"packet": packet, "gate": gate})
            if found["open"]:
                return
            if found["never"]:
                raise RunBlocked(str(found["never"]), code="packet_not_active")
            try:
                await workflow.wait_condition(lambda: (packet, gate) in self._gates, timeout=poll)
            except builtins.TimeoutError:
                continue

    # ---- effects -------------------------------------------------------------------------------------------------

    async def carry_out(self, effect: Effect, *, raise_first: bool) -> Any:
        """Carry out an effect, and return its result. An error that it raised leaves its outcome unknown, unless it is
        a `NotDone`: with `raise_first`, the program gets the error first; otherwise a decision is awaited.
        """
        while True:
            known = self.known.setdefault(effect.subject, {"step": effect.step, "status": "", "calls": 0})
            status = known["status"]
            if status == "succeeded" and "unkept" not in known:
                return known.get("value")
            if status == "accepted":
                raise failure_again(known["error"])
            if status == "succeeded" or (status == "unknown" and not is_repeatable(effect.recovery)):
                await self._settle(effect, known)
                continue
            ended = await self._call(effect, known)
            if ended.outcome == "not_done" or (ended.outcome == "failed" and raise_first):
                assert ended.error is not None
                raise ended.error

    async def _call(self, effect: Effect, known: dict[str, Any]) -> EndedCall:
        known["calls"] += 1
        known["status"] = "unknown"
        ended = await _ended(effect.start(f"{EFFECT_ID}{effect.step}:{known['calls']}"))
        self.outcomes.append([effect.step, str(known["calls"]), ended.outcome])
        if ended.outcome == "done":
            known["status"] = "succeeded"
            known |= ended.value if isinstance(ended.value, _Receipt) else {"value": ended.value}
        elif ended.outcome == "not_done":
            known["status"] = "failed"
        if ended.cancelled:
            raise asyncio.CancelledError
        return ended

    async def _settle(self, effect: Effect, known: dict[str, Any]) -> None:
        """Find out what became of an effect whose outcome is unknown, or whose result was not kept."""
        happened = known["status"] == "succeeded"
        if effect.probe is not None and effect.recovery == "probe" and not happened:
            probed = await _ended(effect.probe())
            if probed.outcome == "done":
                known |= {"status": "succeeded", "value": probed.value}
                return
            if probed.outcome == "not_done":
                known["status"] = "failed"
                return
        await self._decided(effect, known, happened=happened)

    async def _decided(self, effect: Effect, known: dict[str, Any], *, happened: bool) -> None:
        choices: list[Choice] = ["mark_done"] if happened else ["mark_done", "retry"]
        choices += ["compensate"] if effect.compensate is not None and not happened else []
        what = f"it is unknown whether {effect.target} ({effect.step}) happened"
        if happened:
            what = f"{effect.step} happened, and its result was not kept: {known['unkept']}"
        about: Json = {"step": effect.step, "calls": known["calls"]}
        # An answer that was sent twice must not answer the question about a later call.
        answer = await self.ask(f"{effect.subject}:{known['calls']}", what, about, [*choices, "end"])
        chosen = answer["answer"]
        if chosen == "mark_done":
            known.pop("unkept", None)
            known |= {"status": "succeeded", "value": answer.get("value")}
        elif chosen == "retry":
            known["status"] = "failed"
        elif chosen == "compensate" and effect.compensate is not None:
            await effect.compensate()
            known["status"] = "failed"
            raise undone(effect.step)
        else:
            raise RunBlocked(what, code="receipt_unkept" if happened else "effect_outcome_unknown")

    def digest(self) -> str:
        """Return the digest of all outcomes so far."""
        return digest_of(self.outcomes)


class _Receipt(dict[str, Any]):
    """The result of an effect's activity, as fields of what is known about the effect."""


def receipt(fields: dict[str, Any]) -> Any:
    """Return the result of an activity so that `carry_out` knows whether the value was kept."""
    return _Receipt(fields)


def digest_of(outcomes: Sequence[Sequence[str]]) -> str:
    """Return the digest of the outcomes of effects: each a step, the number of its call, and how it ended."""
    rows: list[Json] = [list(row) for row in sorted(map(tuple, outcomes))]
    return address_of(jcs_bytes(rows))


async def _ended(call: Awaitable[Any]) -> EndedCall:
    """Wait for an activity. If the workflow is cancelled in the meantime, the activity still ends first."""
    task = asyncio.ensure_future(call)
    cancelled = await _to_its_end(task)
    if task.cancelled():
        return EndedCall("lost", cancelled=True)
    error = task.exception()
    if error is None:
        return EndedCall("done", task.result(), cancelled=cancelled)
    if not isinstance(error, ActivityError):
        raise error
    return read_failure(error)._replace(cancelled=cancelled)


async def _to_its_end(task: asyncio.Future[Any]) -> bool:
    """Wait for a task, even if the workflow is cancelled in the meantime; whether it was."""
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await workflow.wait([task])
        return True
    except Exception:
        return False  # the caller looks at the task
    return False


async def uninterrupted(call: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Wait for one of the plug-in's own activities. A cancellation in the meantime is raised when it has ended."""
    task = asyncio.ensure_future(call)
    cancelled = await _to_its_end(task)
    found = task.result()
    if cancelled:
        raise asyncio.CancelledError
    return found


def read_failure(error: ActivityError) -> EndedCall:
    """Return what the end of an activity says about an effect, with the error that the program would have raised."""
    cause = error.cause
    if isinstance(cause, TimedOut):
        # Nothing was started if no worker took it in time.
        never = cause.type == TimeoutType.SCHEDULE_TO_START
        return EndedCall("not_done" if never else "lost", error=error)
    if not isinstance(cause, ApplicationError):
        return EndedCall("lost", error=error)
    if _UNREGISTERED in cause.message:
        return EndedCall("not_done", error=error)
    said = cause.details[0] if cause.details and isinstance(cause.details[0], dict) else {}
    own = failure_again(said) if "raised" in said else error
    certain = bool(said.get("definite")) or cause.type == "NotDone"
    return EndedCall("not_done" if certain else "failed", error=own)


async def own_activity(name: str, argument: dict[str, Any]) -> dict[str, Any]:
    """Call one of the activities that the plug-in brings. It is repeated until it succeeds or is refused."""
    found: dict[str, Any] = await workflow.execute_activity(
        name, argument, result_type=dict, start_to_close_timeout=_OWN_TIMEOUT, summary=name,
        retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=30)),
    )  # fmt: skip
    return found


def decisions_here() -> Decisions:
    """Return the decisions of the workflow that is running."""
    found = getattr(workflow.instance(), _DECISIONS, None)
    if not isinstance(found, Decisions):
        raise RunBlocked(
            "this worker has no WorkpacketPlugin", code="worker_blocked",
            hint="Client.connect(..., plugins=[WorkpacketPlugin()])",
        )  # fmt: skip
    return found


def open_decisions() -> Decisions:
    """Begin to listen for answers, when a workflow begins."""
    found = Decisions()
    setattr(workflow.instance(), _DECISIONS, found)
    found.listen()
    return found


async def gate(packet: str, gate: str = "activation", *, poll: timedelta = _POLL) -> None:
    """In a workflow: wait until this gate of the packet is open."""
    await failing(decisions_here().gate(packet, gate, poll))


async def confirm(question: str, about: Json = None) -> None:
    """In a workflow: continue only if a person says yes. Where the policy asks for it, the yes must be signed."""
    here = decisions_here()
    subject = jcs_hash([workflow.info().workflow_id, question, about, workflow.uuid4().hex])
    await failing(here.confirm(question, about, subject))


async def failing(wait: Awaitable[Any]) -> Any:
    """Let a stop reason fail the workflow. Temporal would only suspend it for an exception of ours."""
    try:
        return await wait
    except RunBlocked as stop:
        raise stopped(stop) from stop


def stopped(error: BaseException, code: str = "") -> ApplicationError:
    """Return the failure that ends a workflow for a stop reason; its type is the reason's code."""
    code = code or getattr(error, "code", "") or "worker_failed"
    return ApplicationError(f"{type(error).__name__}: {error}", type=code, non_retryable=True)


def is_repeatable(recovery: str) -> bool:
    return recovery in REPEATABLE
