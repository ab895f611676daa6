"""The state of an abandoned session: an assessment of its log, and the decisions that an operator may make.

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

from collections.abc import Iterator, Mapping
from typing import Literal, cast

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import KEYED, user_key
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.attempts.starter import orphans_of
from workpacket.runtime.errors import LogDamaged, RunBlocked, RuntimeFault
from workpacket.runtime.holders import is_certainly_dead
from workpacket.runtime.model_sessions.record import (
    Artifact,
    ModelSession,
    PendingCall,
    SessionStatus,
    artifact_id,
    behind_step,
    is_artifact_step,
    kept_artifact,
    last_valid,
    message_step,
    messages_of,
    model_session,
    pending_calls,
    point_kind,
    sequence_gaps,
    stream_of,
)
from workpacket.runtime.records.jcs import jcs_hash, kept, stored_text
from workpacket.runtime.records.state import RunState
from workpacket.runtime.resume.observe import Observations, hashes_by_key, read_state
from workpacket.runtime.runtime import Choice, Runtime
from workpacket.runtime.stores.contract import Store
from workpacket.value import Value

Decided = Literal["cancel", "repair", "retry"]
DECISIONS: tuple[Decided, ...] = ("cancel", "repair", "retry")
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
    """The assessment of a session. `artifact` is the newest valid one, `corrupt` the newer ones that were skipped."""

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
        choices = f"decide: {', '.join(self.choices)}" if self.choices else ""
        return RunBlocked(f"{stream}: {'; '.join(self.details) or code}", code=code, hint=choices,
                          details=self.as_json())  # fmt: skip


def assess(runtime: Runtime, stream: str) -> SessionReport:
    """Return the present state of the session. Only reads."""
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
    """Carry out a decision about a blocked session, and return its new state.

    cancel: the session ends here. repair: effects in doubt count as done, damaged records as lost. retry: effects in
    doubt are done again.
    """
    report = assess(runtime, stream)
    if choice == "cancel":
        runtime.cancel(stream, note or "cancelled by the operator")
        return assess(runtime, stream)
    if choice not in report.choices:
        raise RunBlocked(f"{stream} is {report.session.status}: {choice} does not resolve {report.session.reason!r}",
                         code="check_not_run", details=report.as_json())  # fmt: skip
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
    doubt = next(_doubts(store, state, artifact, corrupt), None)
    if doubt is not None:
        return "BLOCKED", *doubt
    return "PAUSED", "worker_lost" if state.status == "running" else state.stop_code, ()


def _doubts(
    store: Store, state: RunState, artifact: Artifact | None, corrupt: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the doubts that only a person can settle, the most serious first."""
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
        yield "sequence_gap", ("the chunks of a model run",)
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
    """Begin the session of the artifact in its former state, and return its run. Either all of it becomes durable, or
    nothing.
    """
    body = artifact.body
    if artifact_id(body) != artifact.id:
        raise RunBlocked(f"{artifact.id} is not the id of this artifact", code="log_damaged")
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
            f"{stream} is already in this store", code="view_conflict", hint=f"workpacket runtime session show {stream}"
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
        raise LogDamaged(stream, 0, "the messages in the artifact do not match its count")
    if before:
        yield _step(behind_step(before), {"messages": before})
    for one in tail:
        yield _step(message_step(cast("int", one["seq"])), dict(one))


def _step(step: str, value: Json) -> RecordDraft:
    form = kept(value)
    data: dict[str, Json] = {"step": step, "args": {}, "result_hash": form.meaning, "ms": 0}
    return RecordDraft("step.completed", data, form.text.encode("utf-8"))


def _call(stream: str, call: Mapping[str, Json]) -> Iterator[RecordDraft]:
    """Yield the records that restore the call's former state. Its key identifies it, whatever the store."""
    args_hash, status = _text(call, "args_hash"), _text(call, "status")
    if not args_hash.startswith(KEYED):
        raise LogDamaged(stream, 0, f"the call {call.get('step')} of the artifact has no key")
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
