"""Checkpoint artifacts of model sessions: what a session was in the middle of, under the address of its content.

An artifact is JSON whose id is the SHA-256 of its canonical form, made after secrets were taken out. Up to 32 KiB it
stands in the checkpoint itself; a larger one is stored once under its id, and the checkpoint refers to it. Reading
believes neither: what does not have its id is passed over, and the one before it is taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Literal, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.jcs import jcs_bytes
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.records.state import CheckpointRecord, RunState
from workpacket.runtime.records.values import stored_text, value_of
from workpacket.runtime.resuming.observe import HIDDEN
from workpacket.runtime.run import Run
from workpacket.runtime.stores.contract import Store

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
    """The artifact with this content, without its secrets; `redactions` says how many there were."""
    open_body, hidden = _without_named_secrets(body)
    cleaned, found = redactor.clean_value(open_body, json.dumps(open_body, ensure_ascii=False))
    assert isinstance(cleaned, Mapping)
    whole = {**cleaned, "schema_version": SCHEMA_VERSION, "redactions": hidden + found}
    return Artifact(artifact_id(whole), whole)


def artifact_id(body: Mapping[str, Json]) -> str:
    return hashlib.sha256(jcs_bytes(body)).hexdigest()


def save_artifact(run: Run, artifact: Artifact, kind: CheckpointKind) -> None:
    """Make the artifact the last checkpoint of the run. Durable when this returns."""
    cursor: dict[str, Json] = {"artifact": artifact.id}
    recorder = run._session.recorder
    if len(jcs_bytes(artifact.body)) <= LARGEST_INLINE:
        cursor["inline"] = artifact.body
    elif artifact_step(artifact.id) not in recorder.state.steps:
        # Not by `run.step`, which a cancellation stops: what the session was in the middle of is kept all the same.
        data: dict[str, Json] = {"step": artifact_step(artifact.id), "args": {}, "result_hash": artifact.id, "ms": 0}
        recorder.record(RecordDraft("step.completed", data, stored_text(artifact.body).encode("utf-8")))
    run.checkpoint(cursor, name=artifact.id, kind=point_kind(kind))


def artifact_step(artifact: str) -> str:
    """The step that keeps an artifact which is too large for its checkpoint."""
    return _STEP + artifact


def point_kind(kind: str) -> str:
    """How the kind of an artifact is written at its checkpoint."""
    return _KIND + kind


def kind_of(point: CheckpointRecord) -> str:
    return point.kind.removeprefix(_KIND)


def session_points(state: RunState) -> tuple[CheckpointRecord, ...]:
    """The checkpoints that have an artifact, in order."""
    return tuple(point for point in state.checkpoints if point.kind.startswith(_KIND))


def is_artifact_step(step: str) -> bool:
    return step.startswith(_STEP)


def read_artifact(store: Store, state: RunState, point: CheckpointRecord) -> Artifact | None:
    """The artifact of a checkpoint; None if it is not what was stored."""
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
    """The newest artifact that is what was stored, and the ids of the newer ones that are not."""
    corrupt: list[str] = []
    for point in reversed(session_points(state)):
        artifact = read_artifact(store, state, point)
        if artifact is not None:
            return artifact, tuple(corrupt)
        corrupt.append(point.name)
    return None, tuple(corrupt)


def _without_named_secrets(value: Mapping[str, Json]) -> tuple[dict[str, Json], int]:
    """The value without what stands under a key that says that it is a secret, and how many there were."""
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
