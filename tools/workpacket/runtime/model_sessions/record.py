"""The record of a model session, folded from the log of its run, and what an operator may decide about an abandoned
session.

An artifact is a snapshot of a session in progress: JSON whose id is the SHA-256 of its canonical form, computed after
redaction. An artifact of up to 32 KiB is part of the checkpoint itself; a larger one is stored once under its id, and
the checkpoint refers to it. Neither is trusted when it is read: an artifact that does not match its id is skipped, and
the previous one is used.

The first line that applies determines the session's status and reason:

    the log does not verify, or has a newer version         BLOCKED    log_damaged, newer_schema
    a process is working on it                              ACTIVE     run_busy
    it was finished, or cancelled                           CLOSED, CANCELLED
    one of its processes is still alive                     BLOCKED    orphan_alive
    a call of unknown outcome that may not be repeated      BLOCKED    effect_outcome_unknown
    a message is missing or does not match                  BLOCKED    sequence_gap, log_damaged
    a stream of chunks had a gap                            BLOCKED    sequence_gap
    there are artifacts and none of them is valid           BLOCKED    log_damaged
    three attempts in a row made no progress                BLOCKED    stalled
    it ended in another way, or without notice              PAUSED     its stop reason, worker_lost

Assessing writes nothing and always gives the same answer.

A checkpoint artifact may be all that is left of a session on another machine. Its content becomes the beginning of the
session's log: the last messages, under their own numbers; the state; a partial answer; and every tool call.
A call that was done there counts as done here, without its receipt; a call whose outcome was unknown there is unknown
here. Earlier messages remain on the other machine, so a program that continues must begin with `restore`.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, cast

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import KEYED, REPEATABLE, user_key
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.attempts.starter import orphans_of
from workpacket.runtime.catalog import stream_name
from workpacket.runtime.errors import LogDamaged, RunBlocked, RuntimeFault, WouldBeAltered
from workpacket.runtime.holders import is_certainly_dead
from workpacket.runtime.records.jcs import jcs_bytes, jcs_hash, kept, stored_text, value_of
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.records.state import CheckpointRecord, EffectRecord, RunState
from workpacket.runtime.resume.observe import HIDDEN, Observations, hashes_by_key, read_state
from workpacket.runtime.run import Run, session_of
from workpacket.runtime.runtime import Choice, Runtime
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


def require_unaltered(state: Json, redactor: Redactor) -> None:
    """Refuse a state from which a secret would be removed: `restore` would return a placeholder as if it were the
    value.
    """
    parts = state.items() if isinstance(state, Mapping) else [("", state)]
    for name, part in parts:
        named, hidden = _without_named_secrets({name: part})
        if hidden or redactor.clean_value(named, json.dumps(named, ensure_ascii=False))[1]:
            field = f"state[{name!r}]" if name else "the state"
            raise WouldBeAltered(
                f"{field} seems to contain a secret, and would be restored without it",
                hint="store a reference to the secret, or use another name if it is none",
                details={"field": field},
            )


def artifact_id(body: Mapping[str, Json]) -> str:
    return hashlib.sha256(jcs_bytes(body)).hexdigest()


def save_artifact(run: Run, artifact: Artifact, kind: CheckpointKind) -> None:
    """Make the artifact the last checkpoint of the run. The checkpoint is durable when this returns."""
    cursor, drafts = kept_artifact(artifact)
    recorder = session_of(run).recorder
    if drafts and artifact_step(artifact.id) not in recorder.state.steps:
        # Not through `run.step`, which a cancellation stops: the snapshot of the session is saved regardless.
        recorder.record(*drafts)
    run.checkpoint(cursor, name=artifact.id, kind=point_kind(kind))


def kept_artifact(artifact: Artifact) -> tuple[dict[str, Json], list[RecordDraft]]:
    """Return the cursor of the artifact's checkpoint, and the records to store first if the artifact is too large for a
    cursor."""
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
    """A model run, program or tool call without an outcome. `effect` is empty if the call can simply be repeated."""

    step: str
    target: str
    pending: Pending
    effect: str = ""

    def as_json(self) -> dict[str, Json]:
        return dict(self._asdict())


class ModelSession(Value):
    """`reason` is the stop reason of a session that is neither ACTIVE nor CLOSED. Times are microseconds since 1970."""

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
    """Return the record; `artifact` is the id of the last valid artifact, and the record names the checkpoint of that
    artifact."""
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
    """Return how many messages remained on another machine; the first message here follows those."""
    return max((int(step.removeprefix(_BEHIND)) for step in state.steps if step.startswith(_BEHIND)), default=0)


def message_count(state: RunState) -> int:
    """Count the messages of the session, including those on another machine."""
    return messages_behind(state) + len(message_numbers(state))


def message_numbers(state: RunState) -> list[int]:
    steps = (step.removeprefix(_MESSAGE) for step in state.steps if step.startswith(_MESSAGE))
    return sorted(int(number) for number in steps if number.isdigit())


def sequence_gaps(state: RunState) -> tuple[str, ...]:
    """Return the positions of messages that are missing between the first and the last one."""
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
        raise LogDamaged(state.stream, event.version, f"it is not message {number}")
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


Decided = Literal["cancel", "repair", "retry"]
DECISIONS: tuple[Decided, ...] = ("cancel", "repair", "retry")
# A fourth attempt that begins with the same log would very likely stop at the same place.
FRUITLESS = 3

_CHOICES: dict[str, tuple[Decided, ...]] = {
    "effect_outcome_unknown": ("repair", "retry", "cancel"),
    "sequence_gap": ("retry", "repair", "cancel"),
    "log_damaged": ("repair", "cancel"),
    "stalled": ("retry", "cancel"),
    "orphan_alive": ("cancel",),
}
# After these ends, trying again without a change would be a loop.
_CRASHES = frozenset({"", "worker_failed", "worker_timeout", "sequence_gap"})


class SessionReport(Value):
    """The assessment of a session. `artifact` is the newest valid artifact, and `corrupt` are the newer ones that were
    skipped."""

    session: ModelSession
    details: tuple[str, ...]
    pending: tuple[PendingCall, ...]
    artifact: Artifact | None
    corrupt: tuple[str, ...]
    choices: tuple[Decided, ...]
    subject: str = ""
    partial_accepted: bool = False

    def as_json(self) -> dict[str, Json]:
        return {
            "session": self.session.as_json(),
            "details": list(self.details),
            "pending": [call.as_json() for call in self.pending],
            "corrupt_artifacts": list(self.corrupt),
            "choices": list(self.choices),
        }

    def refusal(self, runtime: Runtime) -> RunBlocked:
        """Return the reason as an error, and record it once as an event if the log can still be written."""
        code, stream = self.session.reason, self.session.stream
        if code not in {"log_damaged", "newer_schema"}:
            blocked = RecordDraft("run.blocked", {"code": code, "decision": self.subject, "subject": self.subject})
            runtime._outsider(stream).record(blocked, key=f"blocked:{self.subject}")
        hint = ", or: ".join(f"workpacket runtime session decide {shlex.quote(stream)} {each}" for each in self.choices)
        return RunBlocked(f"{stream}: {'; '.join(self.details) or code}", code=code, hint=hint,
                          details={**self.as_json(), "run": stream})  # fmt: skip


def assess(runtime: Runtime, stream: str) -> SessionReport:
    """Return the current state of the session. Read-only."""
    store = runtime.store
    state, seen = read_state(store, stream, Observations())
    artifact, corrupt = last_valid(store, state)
    status, code, details = _judged(store, state, seen, artifact, corrupt)
    subject = jcs_hash([stream, code, list(details), state.attempt])
    accepted = ""
    if status == "BLOCKED":
        accepted = next((c for c in ("repair", "retry") if state.confirmations.get(_answer(subject, c)) == "yes"), "")
    if accepted:
        status = "PAUSED"
    choices = _CHOICES.get(code, ("cancel",)) if status == "BLOCKED" else ()
    if seen.log_fault or seen.newer_schema:
        choices = ()
    session = model_session(state, status, code, "" if artifact is None else artifact.id)
    partial = accepted == "repair" and code == "sequence_gap" and state.stop_code == code
    return SessionReport(session, details, pending_calls(state), artifact, corrupt, choices, subject, partial)


def operator_decides(runtime: Runtime, stream: str, choice: Decided, note: str = "") -> SessionReport:
    """Carry out a decision on a blocked session, and return its new state.

    cancel: the session ends here. repair: effects in doubt count as done, damaged records as lost. retry: effects in
    doubt are done again.
    """
    report = assess(runtime, stream)
    if choice == "cancel":
        runtime.cancel(stream, note or "cancelled by the operator")
        return assess(runtime, stream)
    if choice not in report.choices:
        raise RunBlocked(f"{stream} is {report.session.status}: {choice} does not resolve {report.session.reason!r}",
                         code="check_not_run", details=report.as_json(),
                         hint=f"workpacket runtime session show {shlex.quote(stream)}")  # fmt: skip
    if report.session.reason == "effect_outcome_unknown":
        settlement: Choice = "mark_done" if choice == "repair" else "retry"
        for call in report.pending:
            if call.pending == "unknown":
                runtime.settle(stream, call.effect, settlement, note)
    else:
        runtime.confirm(stream, _answer(report.subject, choice), yes=True, note=note)
    return assess(runtime, stream)


def _answer(subject: str, choice: str) -> str:
    return jcs_hash([subject, choice])


Judged = tuple[SessionStatus, str, tuple[str, ...]]


def _judged(
    store: Store, state: RunState, seen: Observations, artifact: Artifact | None, corrupt: tuple[str, ...]
) -> Judged:
    if seen.log_fault or seen.newer_schema:
        code = "log_damaged" if seen.log_fault else "newer_schema"
        return "BLOCKED", code, (seen.log_fault or seen.newer_schema,)
    lease = store.lease(state.stream)
    held = "" if lease is None or is_certainly_dead(lease.holder) else lease.holder
    if held:
        return "ACTIVE", "run_busy", (held,)
    if state.status == "completed":
        return "CLOSED", "", ()
    if state.status == "cancelled":
        return "CANCELLED", "run_cancelled", (state.cancel_reason or "",)
    moved = ("run_moved", (f"exported to {state.moved_to}",)) if state.status == "moved" else None
    doubt = moved or next(_doubts(store, state, artifact, corrupt), None)
    if doubt is not None:
        return "BLOCKED", *doubt
    return "PAUSED", "worker_lost" if state.status == "running" else state.stop_code, ()


def _doubts(
    store: Store, state: RunState, artifact: Artifact | None, corrupt: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the doubts that only a person can settle, most serious first."""
    orphans = orphans_of(state)
    if orphans:
        yield "orphan_alive", orphans
    unknown = tuple(call for call in pending_calls(state) if call.pending == "unknown")
    if unknown:
        yield "effect_outcome_unknown", tuple(f"{call.step}: {call.target}" for call in unknown)
    gaps = sequence_gaps(state)
    if gaps:
        yield "sequence_gap", gaps
    try:
        messages_of(store, state)
    except RuntimeFault as fault:
        yield fault.code, (fault.message,)
    if state.stop_code == "sequence_gap":
        yield "sequence_gap", ("the chunks from a model run",)
    if corrupt and artifact is None:
        yield "log_damaged", tuple(f"artifact {name}" for name in corrupt)
    if fruitless_attempts(store, state.stream) >= FRUITLESS:
        yield "stalled", (f"{FRUITLESS} attempts in a row made no progress",)


def fruitless_attempts(store: Store, stream: str) -> int:
    """Count the latest consecutive attempts that failed or were killed without making progress."""
    count, done, begun = 0, False, False
    for event in store.read(stream):
        if event.type in {"run.started", "attempt.started"}:
            count = count + 1 if begun and not done else 0
            begun, done = True, False
        elif event.type in {"step.completed", "effect.succeeded"}:
            done = done or not is_artifact_step(str(event.values().get("step")))
        elif event.type == "run.stopped":
            done = done or str(event.values().get("code")) not in _CRASHES
    return count + 1 if begun and not done else 0


_DONE = frozenset({"succeeded", "mark_done"})


def carry_over(runtime: Runtime, artifact: Artifact) -> str:
    """Begin the artifact's session in its former state, and return its run. Either all of it becomes durable, or none
    of it.
    """
    body = artifact.body
    if artifact_id(body) != artifact.id:
        raise RunBlocked(f"{artifact.id} is not this artifact's id", code="log_damaged")
    stream = stream_of(_text(body, "session_id"), _text(body, "packet"))
    _require_new(runtime.store, stream)
    drafts = [
        _begin(body, runtime._workdir or ""),
        *_messages(stream, body),
        *(draft for call in _rows(body, "calls") for draft in _call(stream, call)),
        *_point(artifact),
        RecordDraft("run.stopped", {"code": "handed_over"}),
    ]
    runtime.settings.recorder(runtime.store, RunState(), stream).begin(*drafts)
    return stream


def _require_new(store: Store, stream: str) -> None:
    if store.head(stream) is not None:
        raise RunBlocked(
            f"{stream} is already in this store",
            code="view_conflict",
            hint=f"workpacket runtime session show {shlex.quote(stream)}",
        )


def _begin(body: Mapping[str, Json], workdir: str) -> RecordDraft:
    model = _text(body, "model")
    data: dict[str, Json] = {
        "name": "session", "packet": _text(body, "packet"), "inputs": dict(hashes_by_key({"model": model})),
        "scope": [], "code_version": "", "repository": "", "workdir": workdir, "budget": {},
    }  # fmt: skip
    return RecordDraft("run.started", data, stored_text({"inputs": {"model": model}}).encode("utf-8"))


def _messages(stream: str, body: Mapping[str, Json]) -> Iterator[RecordDraft]:
    tail = _rows(body, "tail")
    total = body.get("messages", len(tail))
    before = total - len(tail) if isinstance(total, int) else -1
    if before < 0 or [one.get("seq") for one in tail] != list(range(before + 1, before + 1 + len(tail))):
        raise LogDamaged(stream, 0, "the number of messages in the artifact does not match its count")
    if before:
        yield _step(behind_step(before), {"messages": before})
    for one in tail:
        yield _step(message_step(cast("int", one["seq"])), dict(one))


def _step(step: str, value: Json) -> RecordDraft:
    form = kept(value)
    data: dict[str, Json] = {"step": step, "args": {}, "result_hash": form.meaning, "ms": 0}
    return RecordDraft("step.completed", data, form.text.encode("utf-8"))


def _call(stream: str, call: Mapping[str, Json]) -> Iterator[RecordDraft]:
    """Yield the records that restore the call's former state. Its key identifies the call in any store."""
    args_hash, status = _text(call, "args_hash"), _text(call, "status")
    if not args_hash.startswith(KEYED):
        raise LogDamaged(stream, 0, f"the artifact's call {call.get('step')} has no key")
    effect: Json = user_key(stream, args_hash)
    names = ("step", "kind", "target", "args_hash")
    data: dict[str, Json] = {"effect": effect, **{name: _text(call, name) for name in names}}
    data |= {name: call[name] for name in ("args", "target_hash") if call.get(name)}
    yield RecordDraft("effect.intended", data)
    if status not in {"intended", *_DONE}:
        yield RecordDraft("effect.started", data | {"attempt": 1})
    if status == "failed":
        failed: dict[str, Json] = {
            "effect": effect,
            "step": data["step"],
            "definite": True,
            "error": "on another machine",
        }
        yield RecordDraft("effect.failed", failed)
    elif status in {*_DONE, "retry", "compensate"}:
        choice = "mark_done" if status in _DONE else status
        yield RecordDraft(
            "effect.resolved", {"effect": effect, "choice": choice, "note": "carried over from an artifact"}
        )


def _point(artifact: Artifact) -> Iterator[RecordDraft]:
    """Yield the artifact as the last checkpoint of the session."""
    cursor, drafts = kept_artifact(artifact)
    yield from drafts
    data: dict[str, Json] = {
        "id": artifact.id[:16], "name": artifact.id, "kind": point_kind(_text(artifact.body, "kind")), "counters": {},
        "preconditions": {},
    }  # fmt: skip
    yield RecordDraft("checkpoint", data, stored_text({"cursor": cursor}).encode("utf-8"))


def _rows(body: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    found = body.get(name)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list | tuple) else []


def _text(values: Mapping[str, Json], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""
