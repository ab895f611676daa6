"""Checkpoint artifacts of model sessions as files: the artifact as JSON, with its id beside its content.

A session of this store is written from its last valid artifact. A file whose id is not that of its content was edited
or damaged, and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from workpacket.bridges.foreign import Foreign, stream_named
from workpacket.bridges.importing import alike
from workpacket.model.canonical import Json, NotCanonical
from workpacket.runtime.model_sessions.record import KINDS, SCHEMA_VERSION, Artifact, artifact_id, last_valid
from workpacket.runtime.resume.observe import Observations, read_state
from workpacket.runtime.stores.contract import Store
from workpacket.text.json_strict import load_json
from workpacket.text.limits import REGISTER
from workpacket.text.node import Node
from workpacket.text.source import Fault, Source

_ID = "artifact_id"


class SessionBridge:
    name = "session"
    lossy: tuple[str, ...] = (
        "messages before the last eight",
        "the log of the session: steps, effects and earlier checkpoints",
        "spacing and the order of keys",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        loaded = load_json(Source.from_bytes(path, data), REGISTER)
        if loaded.root is None or loaded.faults:
            return loaded.faults
        faults = tuple(_faults(loaded.root))
        if faults:
            return faults
        values = cast("Mapping[str, Json]", loaded.root.plain())
        return (Foreign(self.name, _stream(values), values),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        (checkpoint,) = checkpoints
        text = json.dumps(checkpoint.values, sort_keys=True, indent=2, ensure_ascii=False)
        return f"{text}\n".encode()

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        """The session of this name as it stands in the store."""
        for head in store.heads():
            packet, at, name = head.stream.rpartition("session@")
            if not at or _key(packet.removesuffix("/"), name) != f"session/{key}":
                continue
            state, _ = read_state(store, head.stream, Observations())
            artifact, _ = last_valid(store, state)
            if artifact is not None:
                values = {**artifact.body, _ID: artifact.id}
                return (Foreign(self.name, _stream(values), values),)
        return ()

    def same(self, held: Foreign, found: Foreign) -> bool:
        return alike(held, found)


BRIDGE = SessionBridge()


def artifact_of(values: Mapping[str, Json]) -> Artifact:
    """The artifact that a file holds."""
    return Artifact(str(values[_ID]), {name: value for name, value in values.items() if name != _ID})


def _stream(values: Mapping[str, Json]) -> str:
    return _key(str(values.get("packet") or ""), str(values["session_id"]))


def _key(packet: str, session: str) -> str:
    return stream_named("session", *filter(None, (packet, session)))


def _faults(root: Node) -> list[Fault]:
    values = root.plain()
    if not isinstance(values, dict):
        return [Fault("checkpoint_malformed", *root.span, "an artifact is a JSON object")]
    wrong: dict[str, str] = {}
    for name, fits, what in (
        ("schema_version", lambda value: value == SCHEMA_VERSION and not isinstance(value, bool), f"{SCHEMA_VERSION}"),
        ("session_id", lambda value: isinstance(value, str) and value, "text"),
        ("kind", lambda value: value in KINDS, f"one of {', '.join(KINDS)}"),
    ):
        if name not in values:
            wrong[name] = "it is missing"
        elif not fits(values[name]):
            wrong[name] = f"it must be {what}"
    if not wrong and _id_of(values) != values.get(_ID):
        wrong[_ID] = "it is not that of the content: the file was edited or damaged"
    return [Fault("checkpoint_malformed", *(root.get(n) or root).span, f"{n}: {why}") for n, why in wrong.items()]


def _id_of(values: Mapping[str, Any]) -> str:
    try:
        return artifact_id({name: value for name, value in values.items() if name != _ID})
    except NotCanonical:
        return ""
