"""The state of a run: a pure fold over its events. It uses no clock, disk or git: every observation is an event.

`fold(events)` and applying the same events one by one to a `RunState` give equal states, as the tests prove. A step's
result is not loaded until the step is reached: the state contains only the event with its hash. A record field
that is missing or has another type is read as empty, never as an error.

A milestone is reached in two records. `checkpoint.prepared` announces the commit and gives it an id that the commit
carries as a trailer; `checkpoint_complete` records the resulting commit. Between the two records, only git knows
whether there is a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from workpacket.model.canonical import Json
from workpacket.runtime.records.events import (
    CHANGE,
    COMPENSATED,
    KINDS,
    AnswerToJudge,
    AnswerVerifier,
    AskedQuestion,
    Data,
    Event,
    JudgedAnswer,
    LastAnswer,
    RecordKind,
    WaitRecord,
    Waits,
    current,
    members,
    number,
    scope_of,
    take_in,
    text,
    texts,
    texts_by_key,
)

Status = Literal["none", "running", "stopped", "cancelled", "completed", "moved"]
Choice = Literal["mark_done", "retry", "compensate"]
EffectStatus = Literal["intended", "started", "succeeded", "failed", "failed_unknown", Choice, "undone", "accepted"]


class StepRecord(NamedTuple):
    """A finished step. With `redactions`, its result was not stored in full; `stored` is the result, if it was read."""

    key: str
    args: Mapping[str, str]
    version: str
    redactions: int
    event: Event
    stored: bytes | None = None


class EffectRecord(NamedTuple):
    """What is known about an effect. `event` is the last event about it; its payload is the receipt, if any.

    `args` has the hash of each argument of an effect with a key; None if it was stored by a version without these
    hashes. With `redactions`, the receipt differs from the effect's result; `unkept` says why there is no receipt.
    """

    effect: str
    step: str
    kind: str
    target: str
    args_hash: str
    status: EffectStatus
    attempt: int
    event: Event
    args: Mapping[str, str] | None = None
    target_hash: str = ""
    redactions: int = 0
    unkept: str = ""
    opaque: tuple[str, ...] = ()  # the arguments that have no hash
    compensable: bool = False  # its author gave a way to undo it
    begun: Event | None = None  # since when it may have happened; the payload has what a person must see

    @property
    def name(self) -> str:
        """Return the name under which the effect was requested: the last part of its step, without its number."""
        return self.step.rpartition("/")[2].partition("#")[0]

    def facts(self) -> dict[str, Json]:
        """Return the facts that identify the effect in a record, apart from its identity, which depends on the run."""
        facts: dict[str, Json] = {
            "step": self.step, "kind": self.kind, "target": self.target, "args_hash": self.args_hash,
        }  # fmt: skip
        if self.args is not None:
            facts["args"] = dict(self.args)
        if self.opaque:
            facts["opaque"] = list(self.opaque)
        return facts | ({"target_hash": self.target_hash} if self.target_hash else {})

    @property
    def has_receipt(self) -> bool:
        """Whether the effect is known to have happened, with a stored result that may be returned."""
        return self.status in {"succeeded", "mark_done"} and not (self.redactions or self.unkept)


NO_EFFECT = EffectRecord(
    "", "", "", "", "", "intended", 0, Event("", 0, "", 1, 0, 0, "", "", 0, None, 0, "{}", None, "", "")
)


class CheckpointRecord(NamedTuple):
    """A checkpoint: everything up to `version` is durable, and the next action is the cursor in the payload of
    `event`.
    """

    id: str
    name: str
    kind: str
    version: int
    counters: Mapping[str, int]
    preconditions: Mapping[str, Json]
    token_hash: str
    event: Event
    child: str = ""  # the scope of the child run that made it; '' for the run itself


class Prepared(NamedTuple):
    """An announced commit. `base` is the commit it was to follow, or '' for none; the event contains the cursor. `tier`
    and `verification_commands` are what the caller said about verification; empty if it said nothing.
    """

    checkpoint: str
    milestone_index: int
    title: str
    base: str
    event: Event
    tier: str = ""
    verification_commands: tuple[str, ...] = ()


class ReachedMilestone(NamedTuple):
    """A milestone that has been reached. `changed` is false if the milestone changed no file; `commit` is then the
    existing commit."""

    checkpoint: str
    milestone_index: int
    commit: str
    tree: str
    changed: bool
    version: int


@dataclass(slots=True)
class Milestones:
    prepared: Prepared | None = None
    reached: dict[int, ReachedMilestone] = field(default_factory=dict)

    @property
    def last(self) -> ReachedMilestone | None:
        """Return the milestone reached last, which need not have the highest number."""
        return max(self.reached.values(), key=lambda one: one.version, default=None)

    def apply(self, event: Event, data: Data) -> None:
        checkpoint, index = text(data, "checkpoint"), number(data, "milestone_index")
        if event.type == "checkpoint.prepared":
            title, base = text(data, "milestone_title"), text(data, "base")
            commands = data.get("verification_commands")
            said = tuple(map(str, commands)) if isinstance(commands, Sequence) and not isinstance(commands, str) else ()
            self.prepared = Prepared(checkpoint, index, title, base, event, text(data, "tier"), said)
            return
        commit, tree = text(data, "commit"), text(data, "tree")
        self.reached[index] = ReachedMilestone(
            checkpoint, index, commit, tree, data.get("changed") is True, event.version
        )
        if self.prepared is not None and self.prepared.checkpoint == checkpoint:
            self.prepared = None


__all__ = ["CheckpointRecord", "Choice", "EffectRecord", "EffectStatus", "RunState", "Status", "StepRecord", "fold"]


@dataclass(slots=True)
class RunState:
    stream: str = ""
    version: int = 0
    status: Status = "none"
    stop_code: str = ""
    moved_to: str = ""  # where a moved run was exported to
    name: str = ""
    packet: str = ""
    code_version: str = ""
    repository: str = ""
    workdir: str = ""
    scope: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    inputs_said: Event | None = None  # its payload has the inputs as far as they may be shown
    inputs_changed_at: int = 0  # the version since which a person has accepted other inputs; 0 if never
    budget: Mapping[str, Json] = field(default_factory=dict)
    fork_of: Mapping[str, Json] = field(default_factory=dict)
    attempt: int = 0
    attempt_began: int = 0  # the version of its first event
    interrupted: bool = False
    answered: list[str] = field(default_factory=list)  # effects in progress about which a person has answered since
    settled: set[str] = field(default_factory=set)  # scopes in which the call cut short is known
    cancel_reason: str | None = None
    steps: MutableMapping[str, StepRecord] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    failures: dict[str, Event] = field(default_factory=dict)  # steps that failed permanently
    in_flight: set[str] = field(default_factory=set)
    running: dict[str, tuple[str, ...]] = field(default_factory=dict)
    effects: dict[str, EffectRecord] = field(default_factory=dict)
    effect_steps: dict[str, int] = field(default_factory=dict)  # the number of effects of each step
    checkpoints: list[CheckpointRecord] = field(default_factory=list)
    confirmations: dict[str, str] = field(default_factory=dict)
    answers: dict[str, LastAnswer] = field(default_factory=dict)  # the last one to each question
    verifier: AnswerVerifier | None = field(default=None, compare=False)
    refused_answers: dict[str, str] = field(default_factory=dict)  # why the last answer does not count, by subject
    nonces: set[str] = field(default_factory=set)  # those of the signatures that were used
    questions: dict[str, AskedQuestion] = field(default_factory=dict)
    asked_at: dict[str, str] = field(default_factory=dict)  # the subject of the newest question of each place
    tokens_spent: set[str] = field(default_factory=set)
    blocks: list[str] = field(default_factory=list)
    open_question: str = ""
    program: str = ""  # the command that continues the run
    base_commit: str | None = None  # None: the run does not record the commit at which it began
    allow_deps: tuple[str, ...] = ()
    milestones: Milestones = field(default_factory=Milestones)
    waits: Waits = field(default_factory=Waits)
    patches: dict[str, Event] = field(default_factory=dict)
    interleaved: set[str] = field(default_factory=set)  # the scopes in which several threads or tasks make calls
    published: dict[str, Event] = field(default_factory=dict)  # the last value of each name
    times_published: dict[str, int] = field(default_factory=dict)  # by scope and name
    rolled_back_at: int = 0  # the version from which later events are known to be lost
    spent_ms: int = 0
    last_recorded_at: int = 0
    outline: list[int] = field(default_factory=list)  # the versions of the events without which the rest would differ

    def apply(self, event: Event, kinds: Mapping[str, RecordKind] = KINDS, data: Data | None = None) -> None:
        """Apply an event. `data` is its data, if known; reading it takes 5% of the CPU time of an effect."""
        if data is None:
            data = current(event, kinds)
        alone = data.get("alone") is True
        if alone or event.type == "wait.begun":
            self.settled.add(scope_of(text(data, "step")))
        if alone or event.type != "step.completed" or self._is_begun(text(data, "step")):
            self.outline.append(event.version)
        reducer = _REDUCERS.get(event.type)
        if reducer is not None:
            reducer(self, event, data)
        self.stream = event.stream
        self.version = event.version
        self.last_recorded_at = max(self.last_recorded_at, event.recorded_at)

    def has_begun(self, place: str) -> bool:
        """Whether an attempt did anything at this place other than finish a step."""
        return place in self.waits.begun or place in self.effect_steps or self._is_begun(place)

    def _is_begun(self, step: str) -> bool:
        """Whether, for this step, the state has an entry that is removed when the step finishes."""
        return step in self.running or step in self.in_flight or step in self.tries or step in self.failures

    @property
    def latest_checkpoint(self) -> CheckpointRecord | None:
        return self.checkpoints[-1] if self.checkpoints else None

    def latest_of(self, child: str) -> CheckpointRecord | None:
        """Return the latest checkpoint of a child run, or of the run itself."""
        return next((point for point in reversed(self.checkpoints) if point.child == child), None)

    def checkpoint(self, reference: str) -> CheckpointRecord | None:
        """Return the latest checkpoint with this id or name."""
        return next((point for point in reversed(self.checkpoints) if reference in {point.id, point.name}), None)

    @property
    def unknown_effects(self) -> tuple[EffectRecord, ...]:
        """Return the effects that may or may not have happened."""
        return tuple(e for e in self.effects.values() if e.status in {"started", "failed_unknown"})

    @property
    def open_questions(self) -> tuple[AskedQuestion, ...]:
        """Return the questions that wait for a person. One that was later asked about something else is not open."""
        if self.status in {"completed", "cancelled"}:
            return ()
        return self._questions_left("")

    @property
    def denied_questions(self) -> tuple[AskedQuestion, ...]:
        """Return the questions that were answered with no, if that is what stops the run."""
        if self.status in {"completed", "cancelled"}:
            return ()
        stopped = (self.status, self.stop_code) == ("stopped", "confirmation_denied")
        return tuple(one for one in self._questions_left("no") if stopped or one.kind == CHANGE)

    def _questions_left(self, answer: str) -> tuple[AskedQuestion, ...]:
        """Return the newest question at each place, if this is its answer; of questions about changes, only the one
        that stopped the run.
        """
        answers = self.confirmations
        newest = [self.questions[one] for one in self.asked_at.values() if answers.get(one, "") == answer]
        if self.status == "moved":  # what its program asked is asked again where it continues
            newest = [one for one in newest if one.kind == CHANGE]
        return tuple(one for one in newest if one.kind != CHANGE or one.subject == self.open_question)

    def answer_in(self, data: Data, at: int) -> AnswerToJudge:
        """Return the answer in a record, with what was asked according to the log before it."""
        subject = text(data, "subject") or text(data, "effect")
        asked, effect = self.questions.get(subject), self.effects.get(subject)
        question = asked.text if asked is not None else effect.step if effect is not None else ""
        shown = (asked.event.payload if asked is not None else effect.args_hash if effect is not None else "") or ""
        answer = text(data, "answer") or text(data, "choice")
        said = text(data, "result_hash"), text(data, "note"), text(data, "envelope")
        return AnswerToJudge(self.stream, subject, question, shown, answer, *said, at)

    def judged(self, answer: AnswerToJudge) -> JudgedAnswer:
        """Say whether an answer counts. Without a verifier, every answer counts, and its claimed author is believed."""
        if self.verifier is None:
            return JudgedAnswer()
        judged = self.verifier.judge(answer)
        if not judged.refusal and judged.nonce in self.nonces:
            return JudgedAnswer(refusal=f"the signature of {judged.signer} has already been used for an earlier answer")
        return judged

    def counted(self, event: Event, data: Data) -> JudgedAnswer | None:
        """Apply a verified answer; return None if it does not count."""
        answer = self.answer_in(data, event.recorded_at)
        judged = self.judged(answer)
        if judged.refusal:
            self.refused_answers[answer.subject] = judged.refusal
            return None
        self.refused_answers.pop(answer.subject, None)
        if judged.nonce:
            self.nonces.add(judged.nonce)
        return judged

    @property
    def open_waits(self) -> tuple[WaitRecord, ...]:
        """Return the waits for a time or a signal that have not ended."""
        if self.status in {"completed", "cancelled", "moved"}:
            return ()
        return tuple(wait for wait in self.waits.begun.values() if wait.number is None)

    @property
    def open_receipts(self) -> tuple[EffectRecord, ...]:
        """Return the effects that happened but whose results cannot be returned."""
        return tuple(e for e in self.effects.values() if e.status == "succeeded" and not e.has_receipt)

    def settled_before_rollback(self, effect: str) -> bool:
        """Whether no lost event can be about this effect: it was done before the rollback, or is already in doubt."""
        if not self.rolled_back_at:
            return True
        record = self.effects.get(effect)
        if record is None:
            return False
        known = record.status in {"succeeded", "mark_done", "started", "failed_unknown"}
        return known or record.event.version > self.rolled_back_at


def fold(
    events: Iterable[Event], kinds: Mapping[str, RecordKind] = KINDS, *, verifier: AnswerVerifier | None = None
) -> RunState:
    """Return the state after these events. With a verifier, answers count only if it accepts them."""
    state = RunState(verifier=verifier)
    for event in events:
        state.apply(event, kinds)
    return state


def _started(state: RunState, event: Event, data: Data) -> None:
    state.status = "running"
    state.attempt, state.attempt_began = 1, event.version
    state.name, state.packet = text(data, "name"), text(data, "packet")
    state.code_version = text(data, "code_version")
    state.repository, state.workdir = text(data, "repository"), text(data, "workdir")
    state.scope = texts(data, "scope")
    state.inputs, state.inputs_said = texts_by_key(data, "inputs"), event
    state.program = text(data, "program")
    state.base_commit = text(data, "base_commit") if "base_commit" in data else None
    state.allow_deps = texts(data, "allow_deps")
    state.budget, state.fork_of = members(data, "budget"), members(data, "fork_of")


def _attempt(state: RunState, event: Event, data: Data) -> None:
    if state.status == "running":
        begun = [e.step for e in state.effects.values() if e.status == "started"]
        begun += [step for step, wait in state.waits.begun.items() if wait.number is None]
        state.interrupted, state.settled = True, {scope_of(step) for step in (*begun, *state.answered)}
    state.answered.clear()
    state.attempt_began = event.version
    state.in_flight |= set(state.running)
    state.status = "running"
    state.stop_code = state.open_question = ""
    state.cancel_reason = None
    state.attempt = number(data, "attempt")
    if "scope" in data:
        state.scope = texts(data, "scope")
    if "inputs" in data and texts_by_key(data, "inputs") != state.inputs:
        state.inputs, state.inputs_said, state.inputs_changed_at = texts_by_key(data, "inputs"), event, event.version
    if "allow_deps" in data:
        state.allow_deps = texts(data, "allow_deps")
    state.repository = text(data, "repository") or state.repository
    state.workdir = text(data, "workdir") or state.workdir
    state.budget = {**state.budget, **members(data, "budget")}
    if "code_version" in data:
        state.code_version = text(data, "code_version")


def _step_started(state: RunState, _: Event, data: Data) -> None:
    state.running[text(data, "step")] = texts(data, "processes")


def step_record(event: Event, data: Data, stored: bytes | None = None) -> StepRecord:
    args, version = texts_by_key(data, "args"), text(data, "version")
    return StepRecord(text(data, "step"), args, version, number(data, "redactions"), event, stored)


def _step(state: RunState, event: Event, data: Data) -> None:
    key = text(data, "step")
    state.steps[key] = step_record(event, data)
    state.spent_ms += number(data, "ms")
    state.tries.pop(key, None)
    state.failures.pop(key, None)
    state.in_flight.discard(key)
    state.running.pop(key, None)


def _step_failed(state: RunState, event: Event, data: Data) -> None:
    state.running.pop(text(data, "step"), None)
    if data.get("final") is True:
        state.tries.pop(text(data, "step"), None)
        state.failures[text(data, "step")] = event
    else:
        state.tries[text(data, "step")] = number(data, "try")
    state.spent_ms += number(data, "ms")


def _checkpoint(state: RunState, event: Event, data: Data) -> None:
    counters = {key: item for key, item in members(data, "counters").items() if isinstance(item, int)}
    id_, name, kind = (text(data, field) for field in ("id", "name", "kind"))
    preconditions, token = members(data, "preconditions"), text(data, "token_hash")
    point = CheckpointRecord(id_, name, kind, event.version, counters, preconditions, token, event, text(data, "child"))
    state.checkpoints.append(point)


def _effect(state: RunState, event: Event, data: Data, status: EffectStatus) -> None:
    effect = text(data, "effect")
    known, attempt, redactions, unkept = state.effects.get(effect, NO_EFFECT), state.attempt, 0, ""
    _, step, kind, target, args_hash, _, _, _, args, target_hash, _, _, opaque, compensable, begun = known
    # A field that a record omits keeps its previous value.
    step, kind = text(data, "step") or step, text(data, "kind") or kind
    target, args_hash = text(data, "target") or target, text(data, "args_hash") or args_hash
    if "args" in data:
        args, opaque = texts_by_key(data, "args"), texts(data, "opaque")
    if "target_hash" in data:
        target_hash = text(data, "target_hash") or target_hash
    if "attempt" in data:
        attempt = number(data, "attempt") or attempt
    if status in {"intended", "started"}:
        compensable, begun = data.get("compensable") is True, event
        if known.status == "intended":  # it is new
            state.settled.add(scope_of(step))
    if "redactions" in data:
        redactions = number(data, "redactions")
    if "unkept" in data:
        unkept = text(data, "unkept")
    if known is NO_EFFECT or known.step != step:
        state.effect_steps[step] = state.effect_steps.get(step, 0) + 1
        if known is not NO_EFFECT:
            state.effect_steps[known.step] -= 1
    state.effects[effect] = EffectRecord(
        effect, step, kind, target, args_hash, status, attempt, event, args, target_hash, redactions, unkept, opaque,
        compensable, begun,
    )  # fmt: skip


def _effect_matched(state: RunState, _: Event, data: Data) -> None:
    record = state.effects.get(text(data, "effect"))
    if record is not None:
        facts = texts_by_key(data, "args"), text(data, "target_hash") or record.target_hash
        opaque = texts(data, "opaque")
        state.effects[record.effect] = record._replace(args=facts[0], target_hash=facts[1], opaque=opaque)


def _rolled_back(state: RunState, event: Event, _: Data) -> None:
    state.rolled_back_at = event.version


def _effect_is(status: EffectStatus) -> Reducer:
    return lambda state, event, data: _effect(state, event, data, status)


def _effect_failed(state: RunState, event: Event, data: Data) -> None:
    failed: EffectStatus = "undone" if data.get("error") == COMPENSATED else "failed"
    _effect(state, event, data, failed if data.get("definite") is True else "failed_unknown")


def _effect_resolved(state: RunState, event: Event, data: Data) -> None:
    known = state.effects.get(text(data, "effect"))
    if known is not None and text(data, "choice") == "accepted":
        state.effects[known.effect] = known._replace(status="accepted")  # its event says how it failed
    elif state.counted(event, data) is not None:
        if known is not None and known.status == "started":
            state.answered.append(known.step)
        _effect(state, event, data, cast("EffectStatus", text(data, "choice")))


def _asked(state: RunState, event: Event, data: Data) -> None:
    kind, place = text(data, "kind") or "program", text(data, "place") or text(data, "subject")
    take_in(state.questions, state.asked_at, event, data, (kind, place))


def _confirmed(state: RunState, event: Event, data: Data) -> None:
    judged = state.counted(event, data)
    if judged is None:
        return
    subject, answer = text(data, "subject"), text(data, "answer")
    by = judged.signer or text(data, "by")
    state.confirmations[subject] = answer
    state.answers[subject] = LastAnswer(answer, by, text(data, "note"), event.recorded_at, bool(judged.signer))


def _cancel(state: RunState, _: Event, data: Data) -> None:
    state.cancel_reason = text(data, "reason")


def _blocked(state: RunState, event: Event, data: Data) -> None:
    state.blocks.append(text(data, "code"))
    state.open_question = text(data, "subject")
    if state.open_question:
        take_in(state.questions, state.asked_at, event, {"question": data.get("code"), **data}, (CHANGE, CHANGE))


def _ended(status: Status, code: str = "") -> Reducer:
    def apply(state: RunState, _: Event, data: Data) -> None:
        state.status, state.stop_code, state.moved_to = status, code or text(data, "code"), text(data, "to")
        state.in_flight |= set(texts(data, "in_flight"))

    return apply


def _published(state: RunState, event: Event, data: Data) -> None:
    name = text(data, "name")
    state.published[text(data, "child") + name] = event
    state.times_published[text(data, "scope") + name] = number(data, "number")


Reducer = Callable[[RunState, Event, Data], None]

_REDUCERS: Mapping[str, Reducer] = {
    "run.started": _started,
    "attempt.started": _attempt,
    "step.started": _step_started,
    "step.completed": _step,
    "step.failed": _step_failed,
    "checkpoint": _checkpoint,
    "checkpoint.prepared": lambda state, event, data: state.milestones.apply(event, data),
    "checkpoint_complete": lambda state, event, data: state.milestones.apply(event, data),
    "effect.intended": _effect_is("intended"),
    **dict.fromkeys(("effect.succeeded", "effect.receipt"), _effect_is("succeeded")),
    "effect.matched": _effect_matched,
    **dict.fromkeys(("effect.started", "effect.doubted"), _effect_is("started")),
    "effect.failed": _effect_failed,
    "effect.resolved": _effect_resolved,
    "confirmation.requested": _asked,
    "confirmation.given": _confirmed,
    "wait.begun": lambda state, event, data: state.waits.apply(event, data),
    "wait.ended": lambda state, event, data: state.waits.apply(event, data),
    "signal.received": lambda state, event, data: state.waits.apply(event, data),
    "patch.applied": lambda state, event, data: state.patches.update({text(data, "patch"): event}),
    "value.published": _published,
    "calls.interleaved": lambda state, _, data: state.interleaved.add(text(data, "scope")),
    "retry_token.consumed": lambda state, _, data: state.tokens_spent.add(text(data, "token_hash")),
    "cancel.requested": _cancel,
    "run.blocked": _blocked,
    "run.stopped": _ended("stopped"),
    "run.cancelled": _ended("cancelled", "run_cancelled"),
    "run.completed": _ended("completed"),
    "run.handed_over": _ended("moved"),
    "rolled_back": _rolled_back,
}
