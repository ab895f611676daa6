"""One stream of the log that is no run: the records of a batch scope or of a role, read and appended in their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.records.events import Event, NewEvent
from workpacket.runtime.records.jcs import stored_text, value_of
from workpacket.runtime.records.kinds import Data, RecordKind, current
from workpacket.runtime.records.redaction import clean_record
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Append, Lease, Store


class StreamRecord(NamedTuple):
    """A record as it is stored: what was secret in it is gone. `writer` is one command; `payload` a foreign file."""

    type: str
    data: Data
    version: int
    writer: str
    actor: str
    payload: Json = None


class StreamLog:
    """The right to read a stream and to append to it. What is appended is durable when `append` returns."""

    def __init__(self, runtime: Runtime, stream: str, kinds: Mapping[str, RecordKind]) -> None:
        self._store = runtime.store
        self._chosen = runtime.settings
        self.stream = stream
        self._kinds = kinds
        self._writer = runtime.settings.ids()
        self._seq = 0

    def records(self) -> list[StreamRecord]:
        """Every record, verified; `LogDamaged` or `NewerSchema` if one cannot be believed or understood."""
        return records_of(self._store, self.stream, self._kinds)

    def append(
        self, type_: str, data: Data, *, expected_version: int, lease: Lease | None = None, payload: Json = None
    ) -> StreamRecord:
        """Append one record if the stream is still where it was seen; `VersionConflict` if it is not.

        A `payload` is stored as it is: whoever has one makes sure that it holds no secret.
        """
        kind = self._kinds[type_]
        now = self._chosen.clock.now()
        kept = None if payload is None else stored_text(payload).encode("utf-8")
        new = NewEvent(type_, clean_record(kind, data, self._chosen.redactor), kind.schema_version, kept)
        request = Append(
            self.stream, (new,), self._writer, self._seq + 1, self._chosen.actor, now, now,
            fence=lease.token if lease is not None else None, expected_version=expected_version,
        )  # fmt: skip
        appended = self._store.append(request)
        self._seq += 1
        return self._record(appended.events[0])

    def _record(self, event: Event) -> StreamRecord:
        return record_of(self._store, event, self._kinds)


def record_of(store: Store, event: Event, kinds: Mapping[str, RecordKind]) -> StreamRecord:
    payload = store.payload(event) if event.payload is not None else None
    values = value_of(payload) if payload is not None else None
    return StreamRecord(event.type, current(event, kinds), event.version, event.writer, event.actor, values)


def records_of(store: Store, stream: str, kinds: Mapping[str, RecordKind]) -> list[StreamRecord]:
    """Every record of a stream in these kinds; none of a stream that is not there."""
    return [record_of(store, event, kinds) for event in store.read(stream)]
