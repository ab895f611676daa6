"""Events of a stream as CloudEvents 1.0, structured JSON, one a line: for tools that take in what happened.

    source    /workpacket/<stream>; with it the id is like no other
    id        the idempotency key if there is one, else stream and version
    type      dev.workpacket.<type of the record>
    subject   what the record is about: the step, effect or checkpoint that it names, else the stream
    time      when it happened, as the writer said
    data      the record and where it stands in the chain; of the payload only the address

Payloads stay where they are. What has been redacted from a record has not been there since before it was stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from workpacket.model.canonical import Json
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.jcs import text_encoder
from workpacket.runtime.stores.contract import Store

SPEC_VERSION = "1.0"
TYPE_PREFIX = "dev.workpacket."
CONTENT_TYPE = "application/json"

_SUBJECTS = ("step", "effect", "checkpoint", "id", "subject")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_line = text_encoder(sort_keys=True)


def cloudevent_lines(store: Store, stream: str) -> Iterator[str]:
    """Each event of the stream, in order, verified."""
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
    """A key that is made to look like the name of another record is not taken for it."""
    own = f"{event.stream}#{event.version}"
    return event.key if event.key and not event.key.startswith(f"{event.stream}#") else own


def _time(microseconds: int) -> str:
    """RFC 3339; a claim of a time that no calendar has becomes the nearest one it has."""
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        moment = datetime.max.replace(tzinfo=UTC) if microseconds > 0 else datetime.min.replace(tzinfo=UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
