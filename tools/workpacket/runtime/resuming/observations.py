"""What the shell saw when a resume was asked for, as plain values: the only way the world reaches `decide`.

`None` means "not looked at". If the checkpoint promised a check of it, not looking is not passing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workpacket.model.canonical import Json
from workpacket.runtime.records.jcs import jcs_hash

GitRelation = Literal["exact", "ahead", "content_equal", "rewritten", "unreachable"]


@dataclass(frozen=True, slots=True)
class Observations:
    log_fault: str = ""
    newer_schema: str = ""
    lease_holder: str = ""
    orphans: tuple[str, ...] = ()
    name: str | None = None
    packet: str | None = None
    repository: str | None = None
    workdir: str | None = None
    code_version: str | None = None
    git: GitRelation | None = None
    foreign_changes: tuple[str, ...] | None = None
    digests: Mapping[str, str] | None = None
    inputs: Mapping[str, str] | None = None
    scope: tuple[str, ...] | None = None
    allow_deps: tuple[str, ...] | None = None
    environment: Mapping[str, str] | None = None
    budget: Mapping[str, Json] | None = None
    now: int = 0
    retry_token_hash: str = ""
    checkpoint_wanted: str = ""


@dataclass(frozen=True, slots=True)
class ResumePolicy:
    """What the owner of the runs has decided beforehand."""

    resume_cancelled: bool = False
    allow_rewritten_history: bool = False
    ignore_environment: tuple[str, ...] = ()


def hashes_by_key(values: Mapping[str, Json]) -> dict[str, str]:
    """One hash per key, so that a mismatch can name the keys that changed."""
    return {key: jcs_hash(value) for key, value in values.items()}


def changed_keys(recorded: Mapping[str, str], present: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that were added, removed or have another hash, sorted."""
    return tuple(sorted(key for key in {*recorded, *present} if recorded.get(key) != present.get(key)))
