"""Going on here with a session of another machine, of which nothing is left but a checkpoint artifact.

What the artifact holds becomes the beginning of the session's log: the last messages, under their own numbers; the
state; the answer that was arriving; every tool call. A call that was done there is done here, without its receipt; one
whose outcome nobody knew there is unknown here. Messages from before stay where they were: a program that goes on has
to begin with `restore`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import KEYED, user_key
from workpacket.runtime.attempts.recorder import RecordDraft, Recorder
from workpacket.runtime.errors import LogDamaged, RunBlocked
from workpacket.runtime.model_sessions.artifacts import LARGEST_INLINE, Artifact, artifact_id, artifact_step, point_kind
from workpacket.runtime.model_sessions.record import behind_step, message_step, stream_of
from workpacket.runtime.records.jcs import jcs_bytes
from workpacket.runtime.records.state import RunState
from workpacket.runtime.records.values import kept, stored_text
from workpacket.runtime.resuming.observe import hashes_by_key
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Store

_DONE = frozenset({"succeeded", "mark_done"})


def carry_over(runtime: Runtime, artifact: Artifact) -> str:
    """Begin the session that the artifact is of, as it stood then; gives its run. All is durable then, or nothing."""
    body = artifact.body
    if artifact_id(body) != artifact.id:
        raise RunBlocked(f"{artifact.id} is not the id of this artifact", code="log_damaged")
    stream = stream_of(_text(body, "session_id"), _text(body, "packet"))
    _require_new(runtime.store, stream)
    chosen = runtime.settings
    drafts = [
        _begin(body, runtime._workdir or ""),
        *_messages(stream, body),
        *(draft for call in _rows(body, "calls") for draft in _call(stream, call)),
        *_point(artifact),
        RecordDraft("run.stopped", {"code": "handed_over"}),
    ]
    recorder = Recorder(runtime.store, RunState(), stream, chosen.ids(), chosen.actor, chosen.clock, chosen.redactor)
    recorder.begin(*drafts)
    return stream


def _require_new(store: Store, stream: str) -> None:
    if store.head(stream) is not None:
        raise RunBlocked(
            f"{stream} is in this store already", code="view_conflict", hint=f"workpacket session show {stream}"
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
        raise LogDamaged(stream, 0, "the artifact has other messages than it says")
    if before:
        yield _step(behind_step(before), {"messages": before})
    for one in tail:
        yield _step(message_step(cast("int", one["seq"])), dict(one))


def _step(step: str, value: Json) -> RecordDraft:
    form = kept(value)
    data: dict[str, Json] = {"step": step, "args": {}, "result_hash": form.meaning, "ms": 0}
    return RecordDraft("step.completed", data, form.text.encode("utf-8"))


def _call(stream: str, call: Mapping[str, Json]) -> Iterator[RecordDraft]:
    """The records that bring the call to where it was. Its key names it, whatever the store."""
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
    """The artifact as the last checkpoint of the session."""
    body = artifact.body
    cursor: dict[str, Json] = {"artifact": artifact.id}
    if len(jcs_bytes(body)) <= LARGEST_INLINE:
        cursor["inline"] = body
    else:
        stored: dict[str, Json] = {"step": artifact_step(artifact.id), "args": {}, "result_hash": artifact.id, "ms": 0}
        yield RecordDraft("step.completed", stored, stored_text(body).encode("utf-8"))
    data: dict[str, Json] = {
        "id": artifact.id[:16], "name": artifact.id, "kind": point_kind(_text(body, "kind")), "counters": {},
        "preconditions": {},
    }  # fmt: skip
    yield RecordDraft("checkpoint", data, stored_text({"cursor": cursor}).encode("utf-8"))


def _rows(body: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    found = body.get(name)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list | tuple) else []


def _text(values: Mapping[str, Json], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""
