"""The state of a run: a pure fold over its events. No clock, no disk, no git; what was observed is an event.

`fold(events)` and applying the same events one by one to a `RunState` give equal states; the tests prove it. A step's
result stays where it is until the step is reached: the state holds only the event that vouches for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from workpacket.model.canonical import Json
from workpacket.runtime.records.data_fields import members as _members
from workpacket.runtime.records.data_fields import number as _number
from workpacket.runtime.records.data_fields import optional_texts_by_key as _optional_texts
from workpacket.runtime.records.data_fields import text as _text
from workpacket.runtime.records.data_fields import texts as _list
from workpacket.runtime.records.data_fields import texts_by_key as _texts
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.kinds import KINDS, Data, Kind, current
from workpacket.runtime.records.milestones import Milestones
from workpacket.runtime.records.questions import CHANGE, Question, still_open, take_in
from workpacket.runtime.records.run_records import CheckpointRecord, EffectRecord, EffectStatus, Status, StepRecord

__all__ = ["CheckpointRecord", "EffectRecord", "EffectStatus", "RunState", "Status", "StepRecord", "fold"]


@dataclass(slots=True)
class RunState:
    stream: str = ""
    version: int = 0
    status: Status = "none"
    stop_code: str = ""
    name: str = ""
    packet: str = ""
    code_version: str = ""
    repository: str = ""
    workdir: str = ""
    scope: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    inputs_said: Event | None = None  # its payload holds the inputs as far as they may be shown
    inputs_changed_at: int = 0  # the version since which they are other ones, by leave of a person; 0 if never
    budget: Mapping[str, Json] = field(default_factory=dict)
    fork_of: Mapping[str, Json] = field(default_factory=dict)
    attempt: int = 0
    attempt_began: int = 0  # the version of the event that began it
    interrupted: bool = False
    cancel_reason: str | None = None
    steps: dict[str, StepRecord] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    failures: dict[str, Event] = field(default_factory=dict)  # of the steps that failed for good
    in_flight: set[str] = field(default_factory=set)
    running: dict[str, tuple[str, ...]] = field(default_factory=dict)
    effects: dict[str, EffectRecord] = field(default_factory=dict)
    effect_steps: dict[str, int] = field(default_factory=dict)  # how many effects each step stands for
    checkpoints: list[CheckpointRecord] = field(default_factory=list)
    confirmations: dict[str, str] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)
    asked_at: dict[str, str] = field(default_factory=dict)  # the subject of the newest question of each place
    tokens_spent: set[str] = field(default_factory=set)
    blocks: list[str] = field(default_factory=list)
    open_question: str = ""
    base_commit: str | None = None  # None: the run does not say at which commit it began
    allow_deps: tuple[str, ...] = ()
    milestones: Milestones = field(default_factory=Milestones)
    rolled_back_at: int = 0  # the version from which it is known that later events were lost
    spent_ms: int = 0
    last_recorded_at: int = 0

    def apply(self, event: Event, kinds: Mapping[str, Kind] = KINDS) -> None:
        data = current(event, kinds)
        reducer = _REDUCERS.get(event.type)
        if reducer is not None:
            reducer(self, event, data)
        self.stream = event.stream
        self.version = event.version
        self.last_recorded_at = max(self.last_recorded_at, event.recorded_at)

    @property
    def latest_checkpoint(self) -> CheckpointRecord | None:
        return self.checkpoints[-1] if self.checkpoints else None

    def checkpoint(self, reference: str) -> CheckpointRecord | None:
        """The latest checkpoint with this id or name."""
        return next((point for point in reversed(self.checkpoints) if reference in {point.id, point.name}), None)

    @property
    def unknown_effects(self) -> tuple[EffectRecord, ...]:
        """Effects that may or may not have happened."""
        return tuple(e for e in self.effects.values() if e.status in {"started", "failed_unknown"})

    @property
    def open_questions(self) -> tuple[Question, ...]:
        """Those that wait for a person. One that was asked anew about something else is not open any more."""
        if self.status in {"completed", "cancelled"}:
            return ()
        return still_open(self.questions, self.asked_at, self.confirmations, self.open_question)

    @property
    def open_receipts(self) -> tuple[EffectRecord, ...]:
        """Effects that happened, of whose results nothing may be handed out."""
        return tuple(e for e in self.effects.values() if e.status == "succeeded" and not e.has_receipt)

    def settled_before_rollback(self, effect: str) -> bool:
        """Whether nothing that was lost can have been about this effect: it was done before, or is in doubt since."""
        record = self.effects.get(effect)
        if not self.rolled_back_at:
            return True
        if record is None:
            return False
        known = record.status in {"succeeded", "mark_done", "started", "failed_unknown"}
        return known or record.event.version > self.rolled_back_at


def fold(events: Iterable[Event], kinds: Mapping[str, Kind] = KINDS) -> RunState:
    state = RunState()
    for event in events:
        state.apply(event, kinds)
    return state


def _started(state: RunState, event: Event, data: Data) -> None:
    state.status = "running"
    state.attempt, state.attempt_began = 1, event.version
    state.name, state.packet = _text(data, "name"), _text(data, "packet")
    state.code_version = _text(data, "code_version")
    state.repository, state.workdir = _text(data, "repository"), _text(data, "workdir")
    state.scope = _list(data, "scope")
    state.inputs, state.inputs_said = _texts(data, "inputs"), event
    state.base_commit = _text(data, "base_commit") if "base_commit" in data else None
    state.allow_deps = _list(data, "allow_deps")
    state.budget, state.fork_of = _members(data, "budget"), _members(data, "fork_of")


def _attempt(state: RunState, event: Event, data: Data) -> None:
    state.attempt_began = event.version
    state.interrupted = state.interrupted or state.status == "running"
    state.in_flight |= set(state.running)
    state.status = "running"
    state.stop_code = state.open_question = ""
    state.cancel_reason = None
    state.attempt = _number(data, "attempt")
    if "scope" in data:
        state.scope = _list(data, "scope")
    if "inputs" in data and _texts(data, "inputs") != state.inputs:
        state.inputs, state.inputs_said, state.inputs_changed_at = _texts(data, "inputs"), event, event.version
    if "allow_deps" in data:
        state.allow_deps = _list(data, "allow_deps")
    state.repository = _text(data, "repository") or state.repository
    state.workdir = _text(data, "workdir") or state.workdir
    state.budget = {**state.budget, **_members(data, "budget")}
    if "code_version" in data:
        state.code_version = _text(data, "code_version")


def _step_started(state: RunState, _: Event, data: Data) -> None:
    state.running[_text(data, "step")] = _list(data, "processes")


def _step(state: RunState, event: Event, data: Data) -> None:
    key = _text(data, "step")
    state.steps[key] = StepRecord(key, _texts(data, "args"), _text(data, "version"), _number(data, "redactions"), event)
    state.spent_ms += _number(data, "ms")
    state.tries.pop(key, None)
    state.failures.pop(key, None)
    state.in_flight.discard(key)
    state.running.pop(key, None)


def _step_failed(state: RunState, event: Event, data: Data) -> None:
    state.running.pop(_text(data, "step"), None)
    if data.get("final") is True:
        state.tries.pop(_text(data, "step"), None)
        state.failures[_text(data, "step")] = event
    else:
        state.tries[_text(data, "step")] = _number(data, "try")
    state.spent_ms += _number(data, "ms")


def _checkpoint(state: RunState, event: Event, data: Data) -> None:
    counters = {key: item for key, item in _members(data, "counters").items() if isinstance(item, int)}
    id_, name, kind = (_text(data, field) for field in ("id", "name", "kind"))
    preconditions, token = _members(data, "preconditions"), _text(data, "token_hash")
    state.checkpoints.append(CheckpointRecord(id_, name, kind, event.version, counters, preconditions, token, event))


def _effect(state: RunState, event: Event, data: Data, status: EffectStatus) -> None:
    effect, step = _text(data, "effect"), _text(data, "step")
    kind, target, args_hash = _text(data, "kind"), _text(data, "target"), _text(data, "args_hash")
    args: Mapping[str, str] | None = _optional_texts(data, "args")
    target_hash = _text(data, "target_hash")
    before = state.effects.get(effect)
    if before is not None:
        step, kind, target = step or before.step, kind or before.kind, target or before.target
        args_hash = args_hash or before.args_hash
        args, target_hash = before.args if args is None else args, target_hash or before.target_hash
    if before is None or before.step != step:
        state.effect_steps[step] = state.effect_steps.get(step, 0) + 1
        if before is not None:
            state.effect_steps[before.step] -= 1
    attempt = _number(data, "attempt") or state.attempt
    redactions, unkept = _number(data, "redactions"), _text(data, "unkept")
    state.effects[effect] = EffectRecord(
        effect, step, kind, target, args_hash, status, attempt, event, args, target_hash, redactions, unkept
    )


def _effect_matched(state: RunState, _: Event, data: Data) -> None:
    record = state.effects.get(_text(data, "effect"))
    if record is not None:
        facts = _texts(data, "args"), _text(data, "target_hash") or record.target_hash
        state.effects[record.effect] = record._replace(args=facts[0], target_hash=facts[1])


def _rolled_back(state: RunState, event: Event, _: Data) -> None:
    state.rolled_back_at = event.version


def _effect_is(status: EffectStatus) -> Reducer:
    return lambda state, event, data: _effect(state, event, data, status)


def _effect_failed(state: RunState, event: Event, data: Data) -> None:
    _effect(state, event, data, "failed" if data.get("definite") is True else "failed_unknown")


def _effect_resolved(state: RunState, event: Event, data: Data) -> None:
    _effect(state, event, data, cast("EffectStatus", _text(data, "choice")))


def _asked(state: RunState, event: Event, data: Data) -> None:
    kind, place = _text(data, "kind") or "program", _text(data, "place") or _text(data, "subject")
    take_in(state.questions, state.asked_at, event, data, (kind, place))


def _confirmed(state: RunState, _: Event, data: Data) -> None:
    state.confirmations[_text(data, "subject")] = _text(data, "answer")


def _token(state: RunState, _: Event, data: Data) -> None:
    state.tokens_spent.add(_text(data, "token_hash"))


def _cancel(state: RunState, _: Event, data: Data) -> None:
    state.cancel_reason = _text(data, "reason")


def _blocked(state: RunState, event: Event, data: Data) -> None:
    state.blocks.append(_text(data, "code"))
    state.open_question = _text(data, "subject")
    if state.open_question:
        take_in(state.questions, state.asked_at, event, {"question": data.get("code"), **data}, (CHANGE, CHANGE))


def _stopped(state: RunState, _: Event, data: Data) -> None:
    state.status = "stopped"
    state.stop_code = _text(data, "code")
    state.in_flight |= set(_list(data, "in_flight"))


def _cancelled(state: RunState, _: Event, data: Data) -> None:
    state.status = "cancelled"
    state.stop_code = "run_cancelled"
    state.in_flight |= set(_list(data, "in_flight"))


def _completed(state: RunState, _: Event, __: Data) -> None:
    state.status = "completed"


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
    "effect.started": _effect_is("started"),
    "effect.succeeded": _effect_is("succeeded"),
    "effect.receipt": _effect_is("succeeded"),
    "effect.matched": _effect_matched,
    "effect.doubted": _effect_is("started"),
    "effect.failed": _effect_failed,
    "effect.resolved": _effect_resolved,
    "confirmation.requested": _asked,
    "confirmation.given": _confirmed,
    "retry_token.consumed": _token,
    "cancel.requested": _cancel,
    "run.blocked": _blocked,
    "run.stopped": _stopped,
    "run.cancelled": _cancelled,
    "run.completed": _completed,
    "rolled_back": _rolled_back,
}
