"""The record of a model session, folded from the log of its run: messages, pending calls, the last checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import REPEATABLE
from workpacket.runtime.catalog import stream_prefix
from workpacket.runtime.errors import LogDamaged
from workpacket.runtime.model_sessions.artifacts import kind_of, session_points
from workpacket.runtime.records.state import EffectRecord, RunState
from workpacket.runtime.records.values import value_of
from workpacket.runtime.stores.contract import Store

SessionStatus = Literal["ACTIVE", "PAUSED", "BLOCKED", "CANCELLED", "CLOSED"]
# What becomes of a call that has no outcome when the session goes on.
Pending = Literal["not_started", "repeatable", "to_be_probed", "unknown", "being_compensated"]

_MESSAGE = "message-"
_BEHIND = "behind-"


class Message(NamedTuple):
    seq: int
    role: str
    content: str
    redactions: int = 0

    def as_json(self) -> dict[str, Json]:
        return dict(self._asdict())


class PendingCall(NamedTuple):
    """A model run, program or tool call without an outcome. `effect` is empty for those that are simply done again."""

    step: str
    target: str
    pending: Pending
    effect: str = ""

    def as_json(self) -> dict[str, Json]:
        return dict(self._asdict())


@dataclass(frozen=True, slots=True)
class ModelSession:
    """`reason` is the stop reason of a session that is not ACTIVE or CLOSED. Times are microseconds since 1970."""

    id: str
    stream: str
    packet: str
    status: SessionStatus
    reason: str
    attempt: int
    messages: int
    checkpoint_artifact_id: str
    last_checkpoint_at: int
    last_checkpoint_kind: str

    def as_json(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in self.__slots__}


def stream_of(session_id: str, packet: str = "") -> str:
    return stream_prefix("session", packet) + session_id


def model_session(state: RunState, status: SessionStatus, reason: str, artifact: str) -> ModelSession:
    """The record; `artifact` is the id of the last valid artifact, whose checkpoint it names."""
    point = next((p for p in reversed(session_points(state)) if p.name == artifact), None)
    return ModelSession(
        state.stream.rpartition("@")[2],
        state.stream,
        state.packet,
        status,
        reason,
        state.attempt,
        message_count(state),
        artifact,
        0 if point is None else point.event.recorded_at,
        "" if point is None else kind_of(point),
    )


def message_step(seq: int) -> str:
    return f"{_MESSAGE}{seq:06d}"


def behind_step(count: int) -> str:
    """The step which says that so many messages stayed on another machine."""
    return f"{_BEHIND}{count:06d}"


def messages_behind(state: RunState) -> int:
    """How many messages stayed on another machine: the first one here is the next."""
    return max((int(step.removeprefix(_BEHIND)) for step in state.steps if step.startswith(_BEHIND)), default=0)


def message_count(state: RunState) -> int:
    """How many messages the session has, those on another machine among them."""
    return messages_behind(state) + len(message_numbers(state))


def message_numbers(state: RunState) -> list[int]:
    steps = (step.removeprefix(_MESSAGE) for step in state.steps if step.startswith(_MESSAGE))
    return sorted(int(number) for number in steps if number.isdigit())


def sequence_gaps(state: RunState) -> tuple[str, ...]:
    """Where messages are missing: none may be between the first and the last."""
    gaps: list[str] = []
    last = messages_behind(state)
    for number in message_numbers(state):
        if number != last + 1:
            gaps.append(f"message {number} follows message {last}")
        last = number
    return tuple(gaps)


def messages_of(store: Store, state: RunState, last: int = 0) -> tuple[Message, ...]:
    """All messages, or the `last` so many; `LogDamaged` if one is not what was stored."""
    return tuple(message_at(store, state, number) for number in message_numbers(state)[-last:])


def message_at(store: Store, state: RunState, number: int) -> Message:
    event = state.steps[message_step(number)].event
    payload = store.payload(event)
    value = {} if payload is None else value_of(payload)
    if not isinstance(value, Mapping) or value.get("seq") != number:
        raise LogDamaged(state.stream, event.version, f"it is not the message {number}")
    redactions = value.get("redactions")
    found = redactions if isinstance(redactions, int) else 0
    return Message(number, str(value.get("role")), str(value.get("content")), found)


def pending_calls(state: RunState) -> tuple[PendingCall, ...]:
    """Every call without an outcome, and what becomes of it."""
    steps = sorted({*state.running, *state.in_flight} - {*state.steps})
    calls = [PendingCall(step, "model run" if step.startswith(_MESSAGE) else "program", "repeatable") for step in steps]
    calls += [
        PendingCall(effect.step, effect.target, pending, effect.effect)
        for effect in state.effects.values()
        if (pending := _pending(effect)) is not None
    ]
    return tuple(calls)


def _pending(effect: EffectRecord) -> Pending | None:
    if effect.status in {"succeeded", "mark_done", "failed"}:
        return None
    if effect.status in {"intended", "retry"}:
        return "not_started"
    if effect.status == "compensate":
        return "being_compensated"
    if effect.kind in REPEATABLE:
        return "repeatable"
    return "to_be_probed" if effect.kind == "probe" else "unknown"
