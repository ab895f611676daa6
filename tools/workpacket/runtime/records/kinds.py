"""The kinds of records: their fields, the sensitivity of each field, their schema version, and how older versions are
read.

The schemas are closed: unlisted fields are dropped before storage, and the record counts them. `public`
fields are structure (names we choose, counts, digests) and are stored as they are; `scan` fields may contain anything
and are searched for secrets; `hash` fields are stored only as their hash; `drop` fields are never stored.

To change a record, raise its `schema_version`, write the upcaster that converts an old one, and keep a recorded history
with the old one under tests/corpora/histories. Stored events are never rewritten. See docs/runtime/evolving.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Literal

from workpacket.model.canonical import Json
from workpacket.runtime.errors import NewerSchema
from workpacket.runtime.records.events import Event
from workpacket.value import NOTHING, Value

Sensitivity = Literal["public", "scan", "hash", "drop"]
Data = Mapping[str, Json]
Upcaster = Callable[[Data], Data]


class RecordKind(Value):
    """A kind of record. `upcasters[n]` converts the data of schema version n to n + 1; version 0 is a record without a
    version.
    """

    type: str
    fields: Mapping[str, Sensitivity]
    schema_version: int = 1
    upcasters: Mapping[int, Upcaster] = NOTHING

    def guarded(self, data: Data) -> list[str]:
        """Return the names in `data` whose values must not be stored as they are."""
        public = self._public
        return [name for name in data if name not in public]

    @cached_property
    def _public(self) -> frozenset[str]:
        return frozenset(name for name, sensitivity in self.fields.items() if sensitivity == "public")

    def __post_init__(self) -> None:
        missing = set(range(min(self.upcasters, default=self.schema_version), self.schema_version)) - set(
            self.upcasters
        )
        if missing:
            raise ValueError(f"{self.type}: no upcaster from schema version {sorted(missing)}")


def _kind(name: str, public: str = "", *, scan: str = "", hashed: str = "", drop: str = "") -> RecordKind:
    fields: dict[str, Sensitivity] = dict.fromkeys(public.split(), "public")
    fields |= dict.fromkeys(scan.split(), "scan")
    fields |= dict.fromkeys(hashed.split(), "hash")
    fields |= dict.fromkeys(drop.split(), "drop")
    return RecordKind(name, fields)


def _named(data: Data) -> Data:
    """Add the name that a checkpoint lacked before schema version 1."""
    return {"name": "", **data}


_EFFECT = "effect step kind args_hash args opaque target_hash"

CORE: tuple[RecordKind, ...] = (
    _kind(
        "run.started",
        "inputs scope code_version budget repository workdir fork_of carried_from base_commit",
        scan="name packet allow_deps",
    ),
    _kind(
        "attempt.started",
        "attempt decision interrupted inputs code_version scope budget repository workdir",
        scan="holder allow_deps",
        drop="env argv",
    ),
    _kind("step.started", "step processes"),
    _kind("step.completed", "step args opaque version result_hash redactions ms tries maybe_repeated carried_from"),
    _kind("step.failed", "step try ms final maybe_repeated", scan="error raised"),
    RecordKind(
        "checkpoint",
        {
            "id": "public", "name": "scan", "kind": "public", "counters": "public", "preconditions": "scan",
            "token_hash": "public", "carried_from": "public",
        },
        upcasters={0: _named},
    ),
    _kind("checkpoint.prepared", "checkpoint milestone_index base", scan="milestone_title tier verification_commands"),
    _kind("checkpoint_complete", "checkpoint milestone_index commit tree changed found sidecar_written"),
    _kind("checkpoint_sidecar_write_failed", "sha", scan="path error"),
    _kind("resume_checkpoint_selected", "source sha milestone_index relation", scan="skipped"),
    _kind("lockfile_changed", "base", scan="lockfiles allow warnings"),
    _kind("effect.intended", _EFFECT, scan="target"),
    _kind("effect.started", f"{_EFFECT} attempt repeated", scan="target"),
    _kind("effect.succeeded", f"{_EFFECT} result_hash redactions by_probe carried_from", scan="target unkept"),
    _kind("effect.receipt", "effect step result_hash redactions", scan="unkept"),
    _kind("effect.matched", "effect step args opaque target_hash"),
    _kind("effect.doubted", f"{_EFFECT} carried_from", scan="target"),
    _kind("effect.failed", "effect step definite", scan="error raised"),
    _kind("effect.resolved", "effect choice result_hash carried_from", scan="by note"),
    _kind("confirmation.requested", "subject place kind redactions", scan="question name target"),
    _kind("confirmation.given", "subject answer", scan="by note"),
    _kind("retry_token.consumed", "token_hash checkpoint"),
    _kind("cancel.requested", scan="reason by"),
    _kind("run.blocked", "code decision subject"),
    _kind("run.stopped", "code in_flight", scan="error"),
    _kind("run.cancelled", "in_flight", scan="reason"),
    _kind("run.completed", "steps effects"),
    _kind("payload.erased", "digest", scan="reason by"),
    _kind("rolled_back", "had has"),
)  # fmt: skip

KINDS: Mapping[str, RecordKind] = {kind.type: kind for kind in CORE}


def current(event: Event, kinds: Mapping[str, RecordKind] = KINDS) -> Data:
    """Return the data of an event in the newest schema; raise `NewerSchema` if a later version wrote it."""
    kind = kinds.get(event.type)
    if kind is None or event.type_version > kind.schema_version:
        raise NewerSchema(
            f"{event.stream}, version {event.version}: {event.type} {event.type_version} is unknown to this version",
            details={"stream": event.stream, "version": event.version, "type": event.type},
        )
    data = event.values()
    if event.type_version < kind.schema_version:
        for version in range(event.type_version, kind.schema_version):
            data = kind.upcasters[version](data)
    return data
