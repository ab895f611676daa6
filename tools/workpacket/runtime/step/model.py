"""A step checkpoint as a value, its line in an event log, and whether a step may continue from it.

The line is `json.dumps(event, sort_keys=True)`: one JSON object with the nine fields of a `StepCheckpointed` event. Our
checkpoints also record which form of the inputs was hashed (`input_hash_variant`), one hash per key, so that a mismatch
can name the keys, and what the earlier layers found out (`state`).

    the cursor is in this pipeline                 else block cursor_unknown
    the strictness is the recorded one or stricter  else block scope_widened
    the scopes are the recorded ones or fewer       else block scope_widened
    each scope is in the recorded version           else ask   definitions_changed
    the inputs are the recorded ones                else ask   inputs_changed

Where a person may decide, they are asked; the question is bound to this checkpoint (its token) and to exactly the
differences seen, so the answer covers no others.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.resume.observe import HIDDEN

CHECKPOINTED = "StepCheckpointed"
CURSORS = ("pre_generation_gate", "post_clarification", "post_gate")

# "ascii" escapes non-ASCII characters before hashing, the default of json.dumps; "unicode" does not.
Variant = Literal["", "ascii", "unicode"]
VARIANTS: tuple[Variant, ...] = ("ascii", "unicode")

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


class Strictness(StrEnum):
    OFF = "off"
    MEDIUM = "medium"
    MAX = "max"

    @property
    def rank(self) -> int:
        """Return the strictness as a rank."""
        return list(Strictness).index(self)


@dataclass(frozen=True, slots=True)
class ScopeRef:
    """A scope (of terms or files), in the version that the step used."""

    scope: str
    version_id: str


@dataclass(frozen=True, slots=True)
class StepCheckpoint:
    mission_id: str
    run_id: str
    step_id: str
    strictness: Strictness
    scope_refs: tuple[ScopeRef, ...] | list[ScopeRef]
    input_hash: str
    cursor: str
    retry_token: str
    timestamp: datetime
    input_hash_variant: Variant = ""
    input_hashes: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Json] = field(default_factory=dict)
    state: Mapping[str, Json] = field(default_factory=dict)


def compute_input_hash(inputs: Mapping[str, Any], variant: Variant = "ascii") -> str:
    canonical = json.dumps(inputs, sort_keys=True, ensure_ascii=variant != "unicode")
    return hashlib.sha256(canonical.encode()).hexdigest()


def hash_variant(checkpoint: StepCheckpoint, inputs: Mapping[str, Any]) -> Variant:
    """Return the form of these inputs for which the checkpoint was made; '' if none. A recorded form is the only
    candidate.
    """
    for variant in (checkpoint.input_hash_variant,) if checkpoint.input_hash_variant else VARIANTS:
        try:
            if compute_input_hash(inputs, variant) == checkpoint.input_hash:
                return variant
        except UnicodeEncodeError:  # a lone surrogate has no UTF-8, so it cannot have been hashed that way
            continue
    return ""


def verify_input_hash(checkpoint: StepCheckpoint, current_inputs: Mapping[str, Any]) -> bool:
    return hash_variant(checkpoint, current_inputs) != ""


def hashes_of_keys(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return one hash per key. Keys are compared as in JSON: as text."""
    plain: dict[str, Any] = json.loads(json.dumps(inputs))
    return {key: compute_input_hash(value) for key, value in plain.items()}


# ---- as a line ---------------------------------------------------------------------------------------------------


def event_of(checkpoint: StepCheckpoint) -> dict[str, Json]:
    event: dict[str, Json] = {
        "event_type": CHECKPOINTED,
        "mission_id": checkpoint.mission_id,
        "run_id": checkpoint.run_id,
        "step_id": checkpoint.step_id,
        "strictness": checkpoint.strictness.value,
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
    """Parse a time stamp; one without an offset counts as UTC, which is what its writers mean."""
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


YES = frozenset({"y", "yes"})


def ask_at_terminal(question: str, _: str = "") -> bool | None:
    """Return the person's answer; None without a terminal, or if input ends instead."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()):
        return None
    shown = "".join(character if character.isprintable() else "?" for character in question)
    sys.stderr.write(f"{shown} [y/N] ")
    sys.stderr.flush()
    word = sys.stdin.readline()
    return word.strip().casefold() in YES if word else None


LONGEST_SHOWN = 400  # characters of a value that are kept for display


class Present(NamedTuple):
    """The present values for a resume. None: not given, so the recorded one applies."""

    inputs: Mapping[str, Any]
    strictness: Strictness | None
    scope_refs: tuple[ScopeRef, ...] | None


class Judgement(NamedTuple):
    """`code` is empty if nothing prevents the resume. `subject` names the question, '' if nothing can be asked."""

    code: str = ""
    details: tuple[str, ...] = ()
    changes: Mapping[str, Json] = {}
    subject: str = ""


def judge(checkpoint: StepCheckpoint, present: Present, cursors: Collection[str], redactor: Redactor) -> Judgement:
    refused = _refused(checkpoint, present, cursors)
    if refused is not None:
        return refused
    moved = _moved_scopes(checkpoint, present)
    changes: dict[str, Json] = {}
    if not verify_input_hash(checkpoint, present.inputs):
        changes = _changes(checkpoint, present.inputs, redactor)
    if not moved and not changes:
        return Judgement()
    asked = (*moved, *map(_as_text, changes.items()))
    seen = json.dumps([checkpoint.retry_token, list(moved), compute_input_hash(present.inputs)])
    code = "inputs_changed" if changes else "definitions_changed"
    return Judgement(code, asked, changes, hashlib.sha256(seen.encode("ascii")).hexdigest())


def _refused(checkpoint: StepCheckpoint, present: Present, cursors: Collection[str]) -> Judgement | None:
    if checkpoint.cursor not in cursors:
        return Judgement("cursor_unknown", (f"{checkpoint.cursor!r} is none of {', '.join(cursors)}",))
    recorded, wanted = checkpoint.strictness, present.strictness
    if wanted is not None and wanted.rank < recorded.rank:
        return Judgement("scope_widened", (f"strictness: {recorded.value} -> {wanted.value}",))
    known = {ref.scope for ref in checkpoint.scope_refs}
    wider = sorted({ref.scope for ref in present.scope_refs or ()} - known)
    return Judgement("scope_widened", tuple(f"scope: {scope} is new" for scope in wider)) if wider else None


def _moved_scopes(checkpoint: StepCheckpoint, present: Present) -> tuple[str, ...]:
    recorded = {ref.scope: ref.version_id for ref in checkpoint.scope_refs}
    return tuple(
        f"scope {ref.scope}: {recorded[ref.scope]} -> {ref.version_id}"
        for ref in present.scope_refs or ()
        if ref.version_id != recorded[ref.scope]
    )


def _changes(checkpoint: StepCheckpoint, inputs: Mapping[str, Any], redactor: Redactor) -> dict[str, Json]:
    """Return old and new value of each changed key, as far as they are known and harmless."""
    shown = shown_values(inputs, redactor)
    if not checkpoint.input_hashes:
        return {"(any key)": {"old": "the checkpoint has a single hash for all of them", "new": sorted(shown)}}
    present = hashes_of_keys(inputs)
    recorded = checkpoint.input_hashes
    changed = sorted(key for key in {*recorded, *present} if recorded.get(key) != present.get(key))
    sides = {"old": checkpoint.inputs, "new": shown}
    return {key: {side: values[key] for side, values in sides.items() if key in values} for key in changed}


def _as_text(change: tuple[str, Json]) -> str:
    key, sides = change
    old, new = (
        json.dumps(sides[side], ensure_ascii=False) if isinstance(sides, Mapping) and side in sides else "not there"
        for side in ("old", "new")
    )
    return f"input {key}: {old} -> {new}"


def shown_values(inputs: Mapping[str, Any], redactor: Redactor) -> dict[str, Json]:
    """Return what may be stored and shown of the inputs: no secrets, nothing long."""
    return {key: _shown(key, value, redactor) for key, value in json.loads(json.dumps(inputs)).items()}


def _shown(key: str, value: Json, redactor: Redactor) -> Json:
    if names_a_secret(key):
        return HIDDEN
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > LONGEST_SHOWN:
        return f"[{len(text)} characters]"
    if holds_secret_name(value):
        return HIDDEN
    return redactor.clean_value(value, text)[0]


def holds_secret_name(value: Json) -> bool:
    """Whether any key in the value, at any depth, is named like a secret."""
    if isinstance(value, Mapping):
        return any(names_a_secret(key) or holds_secret_name(item) for key, item in value.items())
    return isinstance(value, list) and any(map(holds_secret_name, value))
