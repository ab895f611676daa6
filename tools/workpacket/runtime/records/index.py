"""The index of a store: which event was the last to speak about something. A pure function of the log.

An entry never holds a fact, only the version of the event that does, so a lost or stale index can mislead nobody for
long and is made anew at any time. Incremental and rebuilt index are equal because the later event of one key wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from workpacket.runtime.records.events import Event


class IndexEntry(NamedTuple):
    kind: str
    stream: str
    key: str
    version: int
    status: str


class Indexed(NamedTuple):
    """Events of this type are found under `kind` by the value of their field `key_field` ('' for one per stream)."""

    kind: str
    key_field: str
    status: str


INDEXED: dict[str, Indexed] = {
    "run.started": Indexed("runs", "", "open"),
    "attempt.started": Indexed("runs", "", "open"),
    "run.stopped": Indexed("runs", "", "stopped"),
    "run.blocked": Indexed("blocks", "code", "blocked"),
    "run.cancelled": Indexed("runs", "", "cancelled"),
    "run.completed": Indexed("runs", "", "completed"),
    "cancel.requested": Indexed("cancellations", "", "requested"),
    "checkpoint": Indexed("checkpoints", "name", "saved"),
    "effect.intended": Indexed("effects", "effect", "intended"),
    "effect.started": Indexed("effects", "effect", "started"),
    "effect.succeeded": Indexed("effects", "effect", "succeeded"),
    "effect.failed": Indexed("effects", "effect", "failed"),
    "effect.receipt": Indexed("effects", "effect", "succeeded"),
    "effect.doubted": Indexed("effects", "effect", "started"),
    "effect.resolved": Indexed("effects", "effect", "resolved"),
    "batch.begun": Indexed("batches", "batch", "begun"),
    "batch.completed": Indexed("batches", "batch", "completed"),
    "git.observed": Indexed("git_refs", "ref", "observed"),
    "lockfile_changed": Indexed("dep_changes", "", "changed"),
}


def types_of(kind: str) -> tuple[str, ...]:
    """The types of the events that write entries of this kind."""
    return tuple(name for name, indexed in INDEXED.items() if indexed.kind == kind)


def entry_of(event: Event) -> IndexEntry | None:
    """The entry that this event writes, if its type is indexed."""
    indexed = INDEXED.get(event.type)
    if indexed is None:
        return None
    key = str(event.values().get(indexed.key_field, "")) if indexed.key_field else ""
    return IndexEntry(indexed.kind, event.stream, key, event.version, indexed.status)


def index_of(events: Iterable[Event]) -> dict[tuple[str, str, str], IndexEntry]:
    """The whole index, made from nothing but events."""
    entries: dict[tuple[str, str, str], IndexEntry] = {}
    for event in events:
        entry = entry_of(event)
        if entry is not None:
            entries[entry.kind, entry.stream, entry.key] = entry
    return entries
