"""Whether a step may continue from its checkpoint.

    the cursor is in this pipeline                 else block cursor_unknown
    the strictness is the recorded one or stricter  else block scope_widened
    the scopes are the recorded ones or fewer       else block scope_widened
    each scope is in the recorded version           else ask   definitions_changed
    the inputs are the recorded ones                else ask   inputs_changed

If a person may decide, they are asked; the question is bound to this checkpoint (its token) and to exactly the observed
differences, so the answer covers no others.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.resume.observe import HIDDEN
from workpacket.runtime.step.checkpoint import (
    ScopeRef,
    StepCheckpoint,
    Strictness,
    compute_input_hash,
    hashes_of_keys,
    verify_input_hash,
)

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
MOST_SHOWN = 16 * 1024  # characters of all of them
_MOST_NAMED = 20


class Present(NamedTuple):
    """The present values for a resume. None means that the value was not given, so the recorded one applies."""

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
        names: Json = sorted(shown) if len(shown) <= _MOST_NAMED else f"{len(shown):,} inputs"
        return {"(any key)": {"old": "the checkpoint has a single hash for all of them", "new": names}}
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
    """Return the parts of the inputs that may be stored and shown: no secrets, no long values, and only the first of
    many.
    """
    shown: dict[str, Json] = {}
    room = MOST_SHOWN
    for key, value in json.loads(json.dumps(inputs)).items():
        one = _shown(key, value, redactor)
        room -= len(key) + len(json.dumps(one))
        if room < 0:
            break
        shown[key] = one
    return shown


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
