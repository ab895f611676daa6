"""A step checkpoint as a value (T030 and T033), and the hash of the inputs for which the checkpoint was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from workpacket.model.canonical import Json

# The cursors of the published pipeline; another pipeline names its own.
CURSORS = ("pre_generation_gate", "post_clarification", "post_gate")

# "ascii" escapes non-ASCII characters before hashing, the default of json.dumps; "unicode" does not.
Variant = Literal["", "ascii", "unicode"]
VARIANTS: tuple[Variant, ...] = ("ascii", "unicode")


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
    """Return the form of these inputs that has the checkpoint's hash; '' if none of them has it. If a form was
    recorded, only that form is tried.
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


MOST_HASHES = 200  # with more inputs, a mismatch does not name the keys: the payload must stay small


def hashes_of_keys(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return one hash per key, or no hashes if there are too many keys. Keys are compared as in JSON: as strings."""
    plain: dict[str, Any] = json.loads(json.dumps(inputs))
    return {key: compute_input_hash(value) for key, value in plain.items()} if len(plain) <= MOST_HASHES else {}
