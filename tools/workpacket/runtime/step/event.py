"""A step checkpoint as a line in an event log: `json.dumps(event, sort_keys=True)`, an object with the nine fields of a
`StepCheckpointed` event. Our events also record the form of the inputs that was hashed (`input_hash_variant`), one hash
per key, so that a mismatch can name the keys, and the results of the earlier layers (`state`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from workpacket.model.canonical import Json
from workpacket.runtime.step.checkpoint import VARIANTS, ScopeRef, StepCheckpoint, Strictness

CHECKPOINTED = "StepCheckpointed"

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


def event_of(checkpoint: StepCheckpoint) -> dict[str, Json]:
    event: dict[str, Json] = {
        "event_type": CHECKPOINTED,
        "mission_id": checkpoint.mission_id,
        "run_id": checkpoint.run_id,
        "step_id": checkpoint.step_id,
        "strictness": str(checkpoint.strictness),
        "scope_refs": [{"scope": ref.scope, "version_id": ref.version_id} for ref in checkpoint.scope_refs],
        "input_hash": checkpoint.input_hash,
        "cursor": checkpoint.cursor,
        "retry_token": checkpoint.retry_token,
        "timestamp": checkpoint.timestamp.isoformat(),
    }
    optional: dict[str, Json] = {
        "input_hash_variant": checkpoint.input_hash_variant,
        "input_hashes": dict(checkpoint.input_hashes),
        "inputs": dict(checkpoint.inputs),
        "state": dict(checkpoint.state),
    }
    return event | {name: value for name, value in optional.items() if value}


def line_of(event: Mapping[str, Json]) -> str:
    """Return the canonical line, without its line end."""
    return json.dumps(event, sort_keys=True)


def is_checkpoint(event: Mapping[str, Json]) -> bool:
    return event.get("event_type") == CHECKPOINTED


def checkpoint_of(event: Mapping[str, Json]) -> StepCheckpoint:
    """Return the checkpoint in an event; ValueError lists everything wrong with it."""
    wrong = [f"{name}: {why}" for name, why in problems(event)]
    if wrong:
        raise ValueError("; ".join(wrong))
    known: Any = event
    return StepCheckpoint(
        known["mission_id"],
        known["run_id"],
        known["step_id"],
        Strictness(known["strictness"]),
        tuple(ScopeRef(ref["scope"], ref["version_id"]) for ref in known["scope_refs"]),
        known["input_hash"],
        known["cursor"],
        known["retry_token"],
        moment_of(known["timestamp"]),
        known.get("input_hash_variant", ""),
        known.get("input_hashes", {}),
        known.get("inputs", {}),
        known.get("state", {}),
    )


def moment_of(text: str) -> datetime:
    """Parse a time stamp; one without an offset counts as UTC, as its writers intend."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def problems(event: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the fields of a `StepCheckpointed` event: the field, and why."""
    for name, (fits, what) in _FIELDS.items():
        if name not in event:
            yield name, "it is missing"
        elif not fits(event[name]):
            yield name, f"it must be {what}"
    for name, (fits, what) in _MORE_FIELDS.items():
        if name in event and not fits(event[name]):
            yield name, f"it must be {what}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_moment(value: Any) -> bool:
    try:
        return isinstance(value, str) and len(value) > len("2026-02-16") and moment_of(value) is not None
    except ValueError:
        return False


def _are_refs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(ref, Mapping) and _is_text(ref.get("scope")) and _is_text(ref.get("version_id")) for ref in value
    )


def _are_hashes(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) and _HASH.match(one) for one in value.values())


_Fits = Callable[[Any], object]
_FIELDS: Mapping[str, tuple[_Fits, str]] = {
    "mission_id": (_is_text, "text"),
    "run_id": (_is_text, "text"),
    "step_id": (_is_text, "text"),
    "strictness": (lambda value: value in [one.value for one in Strictness], "off, medium or max"),
    "scope_refs": (_are_refs, "a list of {scope, version_id}"),
    "input_hash": (lambda value: isinstance(value, str) and _HASH.match(value), "a SHA-256 in hexadecimal"),
    "cursor": (_is_text, "text"),
    "retry_token": (lambda value: isinstance(value, str) and _UUID.match(value), "a UUID"),
    "timestamp": (_is_moment, "a date and time"),
}
_MORE_FIELDS: Mapping[str, tuple[_Fits, str]] = {
    "input_hash_variant": (lambda value: value in VARIANTS, "ascii or unicode"),
    "input_hashes": (_are_hashes, "a SHA-256 for each key"),
    "inputs": (lambda value: isinstance(value, Mapping), "a mapping"),
    "state": (lambda value: isinstance(value, Mapping), "a mapping"),
}
