"""Streams as JSON Lines: to inspect them, to move them between stores, or to rescue them from a store that this version
cannot write.

    {"kind": "event", ...}       every field of the event as it is stored, its data as text
    {"kind": "payload", "digest": "...", "text": "..."}         or "base64", if it is not text

An import verifies the chain and the payloads before it writes anything, and keeps every hash. An export interprets
nothing, so it also works on a store of a newer version.

A stream can also be exported as CloudEvents 1.0 in structured JSON, one per line, for other tools.

    source    /workpacket/<stream>; makes the id unique
    id        the idempotency key if there is one, else stream and version
    type      dev.workpacket.<type of the record>
    subject   the step, effect or checkpoint that the record names, else the stream
    time      when it happened, according to the writer
    data      the record and its position in the chain; only the address of the payload

Payloads are not exported. Redacted parts are missing, because they were removed before a record was stored.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import cast
from urllib.parse import quote

from workpacket.model.canonical import Json
from workpacket.runtime.errors import LogDamaged, PayloadErased
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.jcs import text_encoder
from workpacket.runtime.stores.contract import Store

_line = text_encoder(sort_keys=True)


def export_lines(store: Store, stream: str, until: int | None = None) -> Iterator[str]:
    """Yield one line per event, preceded by its payload unless the payload was erased."""
    for event in store.read(stream, 0, until):
        try:
            payload = store.payload(event)
        except PayloadErased:
            # Erased on purpose. The event still verifies, because only the address of a payload is hashed.
            payload = None
        if payload is not None:
            yield _line({"kind": "payload", "digest": event.payload, **_as_text(payload)})
        yield _line({"kind": "event", **event._asdict()})


def import_lines(store: Store, lines: Iterable[str]) -> str:
    """Import one exported stream, and return its name. Nothing is written unless the whole stream verifies."""
    events: list[Event] = []
    payloads: list[bytes] = []
    for number, line in enumerate(lines, start=1):
        record = _record(line, number)
        if record.get("kind") == "payload":
            payloads.append(_as_bytes(record, number))
        else:
            events.append(_event(record, number))
    if not events:
        raise LogDamaged("import", 0, "it contains no events")
    # All or nothing: the first half of a chain verifies too, and would be taken for the whole stream.
    store.restore(events, payloads)
    return events[0].stream


def _as_text(payload: bytes) -> dict[str, str]:
    try:
        return {"text": payload.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(payload).decode("ascii")}


def _as_bytes(record: Mapping[str, object], number: int) -> bytes:
    if "base64" not in record:
        return str(record.get("text")).encode("utf-8")
    try:
        return base64.b64decode(str(record["base64"]), validate=True)
    except ValueError:
        raise LogDamaged("import", number, f"line {number} is not base64") from None


def _record(line: str, number: int) -> Mapping[str, object]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise LogDamaged("import", number, f"line {number} is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise LogDamaged("import", number, f"line {number} is not an object")
    return cast("Mapping[str, object]", record)


def _event(record: Mapping[str, object], number: int) -> Event:
    try:
        return Event(**{name: record[name] for name in Event._fields})  # type: ignore[arg-type]  # the hash judges it
    except KeyError as error:
        raise LogDamaged("import", number, f"line {number} has no field {error}") from None


SPEC_VERSION = "1.0"
TYPE_PREFIX = "dev.workpacket."
CONTENT_TYPE = "application/json"

_SUBJECTS = ("step", "effect", "checkpoint", "id", "subject")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cloudevent_lines(store: Store, stream: str) -> Iterator[str]:
    """Yield each event of the stream, verified and in order."""
    for event in store.read(stream):
        yield _line(cloudevent(event))


def cloudevent(event: Event) -> dict[str, Json]:
    record = dict(event.values())
    return {
        "specversion": SPEC_VERSION,
        "id": _id(event),
        "source": f"/workpacket/{quote(event.stream, errors='surrogatepass')}",
        "type": f"{TYPE_PREFIX}{event.type}",
        "subject": next((str(record[name]) for name in _SUBJECTS if record.get(name)), event.stream),
        "time": _time(event.occurred_at),
        "datacontenttype": CONTENT_TYPE,
        "data": {
            "stream": event.stream,
            "version": event.version,
            "type_version": event.type_version,
            "actor": event.actor,
            "recorded_at": _time(event.recorded_at),
            "record": record,
            "payload": event.payload,
            "previous": event.previous,
            "hash": event.hash,
        },
    }


def _id(event: Event) -> str:
    """Return the id. A key that looks like another record's name cannot be mistaken for it."""
    own = f"{event.stream}#{event.version}"
    return event.key if event.key and not event.key.startswith(f"{event.stream}#") else own


def _time(microseconds: int) -> str:
    """Format as RFC 3339; a time outside the calendar becomes the nearest time within it."""
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        moment = datetime.max.replace(tzinfo=UTC) if microseconds > 0 else datetime.min.replace(tzinfo=UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
