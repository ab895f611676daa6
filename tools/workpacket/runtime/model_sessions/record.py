"""The record of a model session, folded from the log of its run: messages, pending calls and checkpoint artifacts.

An artifact is a snapshot of a session in progress: JSON whose id is the SHA-256 of its canonical form, computed after
redaction. An artifact of up to 32 KiB is part of the checkpoint itself; a larger one is stored once under its id, and
the checkpoint refers to it. Neither is trusted when it is read: an artifact that does not match its id is skipped, and
the previous one is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Literal, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import REPEATABLE
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.catalog import stream_name
from workpacket.runtime.errors import LogDamaged, RuntimeFault
from workpacket.runtime.records.jcs import jcs_bytes, stored_text, value_of
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.records.state import CheckpointRecord, EffectRecord, RunState
from workpacket.runtime.resume.observe import HIDDEN
from workpacket.runtime.run import Run
from workpacket.runtime.stores.contract import Store
from workpacket.value import Value

CheckpointKind = Literal["periodic", "event_triggered", "pre_shutdown", "post_failure"]
KINDS: tuple[CheckpointKind, ...] = ("periodic", "event_triggered", "pre_shutdown", "post_failure")
SCHEMA_VERSION = 1
LARGEST_INLINE = 32 * 1024

_KIND = "session."
_STEP = "artifact-"


class Artifact(NamedTuple):
    id: str
    body: Mapping[str, Json]


def make_artifact(body: Mapping[str, Json], redactor: Redactor) -> Artifact:
    """Return the artifact with this content, redacted; `redactions` counts the removed secrets."""
    open_body, hidden = _without_named_secrets(body)
    cleaned, found = redactor.clean_value(open_body, json.dumps(open_body, ensure_ascii=False))
    assert isinstance(cleaned, Mapping)
    whole = {**cleaned, "schema_version": SCHEMA_VERSION, "redactions": hidden + found}
    return Artifact(artifact_id(whole), whole)


def artifact_id(body: Mapping[str, Json]) -> str:
    return hashlib.sha256(jcs_bytes(body)).hexdigest()


def save_artifact(run: Run, artifact: Artifact, kind: CheckpointKind) -> None:
    """Make the artifact the last checkpoint of the run. It is durable when this returns."""
    cursor, drafts = kept_artifact(artifact)
    recorder = run._session.recorder
    if drafts and artifact_step(artifact.id) not in recorder.state.steps:
        # Not through `run.step`, which a cancellation stops: the snapshot of the session is saved regardless.
        recorder.record(*drafts)
    run.checkpoint(cursor, name=artifact.id, kind=point_kind(kind))


def kept_artifact(artifact: Artifact) -> tuple[dict[str, Json], list[RecordDraft]]:
    """Return the cursor of its checkpoint, and the records to store first: an artifact too large for a cursor."""
    cursor: dict[str, Json] = {"artifact": artifact.id}
    if len(jcs_bytes(artifact.body)) <= LARGEST_INLINE:
        return cursor | {"inline": artifact.body}, []
    data: dict[str, Json] = {"step": artifact_step(artifact.id), "args": {}, "result_hash": artifact.id, "ms": 0}
    return cursor, [RecordDraft("step.completed", data, stored_text(artifact.body).encode("utf-8"))]


def artifact_step(artifact: str) -> str:
    """Return the step that stores an artifact too large for its checkpoint."""
    return _STEP + artifact


def point_kind(kind: str) -> str:
    """Return how a checkpoint records the kind of its artifact."""
    return _KIND + kind


def kind_of(point: CheckpointRecord) -> str:
    return point.kind.removeprefix(_KIND)


def session_points(state: RunState) -> tuple[CheckpointRecord, ...]:
    """Return the checkpoints that have an artifact, in order."""
    return tuple(point for point in state.checkpoints if point.kind.startswith(_KIND))


def is_artifact_step(step: str) -> bool:
    return step.startswith(_STEP)


def read_artifact(store: Store, state: RunState, point: CheckpointRecord) -> Artifact | None:
    """Return the artifact of a checkpoint; None if it does not match what was stored."""
    try:
        payload = store.payload(point.event)
        cursor = value_of(payload) if payload is not None else {}
        body = cursor.get("cursor") if isinstance(cursor, Mapping) else None
        body = body.get("inline") if isinstance(body, Mapping) else None
        if body is None:
            record = state.steps.get(_STEP + point.name)
            stored = None if record is None else store.payload(record.event)
            body = None if stored is None else value_of(stored)
    except (RuntimeFault, ValueError):
        return None
    if not isinstance(body, Mapping) or artifact_id(body) != point.name:
        return None
    return Artifact(point.name, body)


def last_valid(store: Store, state: RunState) -> tuple[Artifact | None, tuple[str, ...]]:
    """Return the newest valid artifact, and the ids of the newer, invalid ones."""
    corrupt: list[str] = []
    for point in reversed(session_points(state)):
        artifact = read_artifact(store, state, point)
        if artifact is not None:
            return artifact, tuple(corrupt)
        corrupt.append(point.name)
    return None, tuple(corrupt)


def _without_named_secrets(value: Mapping[str, Json]) -> tuple[dict[str, Json], int]:
    """Remove values whose keys mark them as secret; return the rest, and the number removed."""
    kept: dict[str, Json] = {}
    found = 0
    for key, item in value.items():
        if names_a_secret(key) and item is not None:
            kept[key], hidden = HIDDEN, 1
        else:
            kept[key], hidden = _item(item)
        found += hidden
    return kept, found


def _item(value: Json) -> tuple[Json, int]:
    if isinstance(value, Mapping):
        return _without_named_secrets(value)
    if isinstance(value, list | tuple):
        items = [_item(item) for item in value]
        return [item for item, _ in items], sum(hidden for _, hidden in items)
    return value, 0


SessionStatus = Literal["ACTIVE", "PAUSED", "BLOCKED", "CANCELLED", "CLOSED"]
# What happens to a call without an outcome when the session continues.
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
    """A model run, program or tool call without an outcome. `effect` is empty for those that can simply be repeated."""

    step: str
    target: str
    pending: Pending
    effect: str = ""

    def as_json(self) -> dict[str, Json]:
        return dict(self._asdict())


class ModelSession(Value):
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
        return {name: getattr(self, name) for name in self._fields}


def stream_of(session_id: str, packet: str = "") -> str:
    return stream_name("session", packet, session_id)


def model_session(state: RunState, status: SessionStatus, reason: str, artifact: str) -> ModelSession:
    """Return the record; `artifact` is the id of the last valid artifact, whose checkpoint it names."""
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
    """Return the step that records how many messages remained on another machine."""
    return f"{_BEHIND}{count:06d}"


def messages_behind(state: RunState) -> int:
    """Return how many messages remained on another machine; the first message here follows them."""
    return max((int(step.removeprefix(_BEHIND)) for step in state.steps if step.startswith(_BEHIND)), default=0)


def message_count(state: RunState) -> int:
    """Count the messages of the session, including those on another machine."""
    return messages_behind(state) + len(message_numbers(state))


def message_numbers(state: RunState) -> list[int]:
    steps = (step.removeprefix(_MESSAGE) for step in state.steps if step.startswith(_MESSAGE))
    return sorted(int(number) for number in steps if number.isdigit())


def sequence_gaps(state: RunState) -> tuple[str, ...]:
    """Return the positions of messages missing between the first and the last."""
    gaps: list[str] = []
    last = messages_behind(state)
    for number in message_numbers(state):
        if number != last + 1:
            gaps.append(f"message {number} follows message {last}")
        last = number
    return tuple(gaps)


def messages_of(store: Store, state: RunState, last: int = 0) -> tuple[Message, ...]:
    """Return all messages, or the `last` few; raise `LogDamaged` if one does not match what was stored."""
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
    """Return every call without an outcome, and what happens to it."""
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
