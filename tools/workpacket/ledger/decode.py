"""One event file: bytes and name in, the event or what is wrong with it out.

The order of the checks is the order of trust: the name proves the bytes, the bytes must be the canonical form of what
they say, what they say must have the shape of an event. Comparing with the canonical form also refuses what a JSON
reader would let pass: duplicate keys, spaces, escapes, numbers written in another way, a missing final newline.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container
from typing import Any, Final

from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.faults import fault
from workpacket.ledger.upcast import FORMAT, Format
from workpacket.model.event_schema import event_misfit
from workpacket.model.events import Event, event_of
from workpacket.model.findings import Finding

LARGEST_EVENT: Final = 256 * 1024

_EVENT_NAME = lazy_pattern(r"[0-9a-f]{64}\.json")
_decode_json = json.JSONDecoder().decode
# The canonical form of values inside the profile, and the shapes allow no others; see `model.canonical`.
_encode_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def is_event_name(name: str) -> bool:
    return _EVENT_NAME.fullmatch(name) is not None


def decode_event(
    folder: str, name: str, data: bytes, *, names: Container[str] = (), form: Format = FORMAT
) -> Event | Finding:
    """The event in the file `name` of `folder`, the packet's log; `names` are the names of all files there."""
    path = f"{folder}/{name}"
    if len(data) > LARGEST_EVENT:
        return fault("event_too_large", path, f"{len(data):,} bytes; an event has at most {LARGEST_EVENT:,}")
    identity = hashlib.sha256(data).hexdigest()
    if f"{identity}.json" != name:
        return _not_what_was_written(path, data, identity, names)
    value = _canonical_value(data)
    if value is None:
        return fault("event_not_canonical", path, "the file is not the canonical JSON of one object and a newline")
    return _event_of_value(folder, path, form.upcast(value), identity, form)


def _event_of_value(folder: str, path: str, value: dict[str, Any], identity: str, form: Format) -> Event | Finding:
    if form.too_new(value):
        return fault("event_version_unknown", path, f"format version {value['v']}; known here: up to {form.version}")
    misfit = event_misfit(value)
    if misfit is not None:
        return fault("event_malformed", path, str(misfit))
    packet = folder.rpartition("/")[2]
    if value["packet"] != packet:
        return fault("event_wrong_packet", path, f"the event belongs to {value['packet']}, not to {packet}")
    return event_of(value, identity)


def _canonical_value(data: bytes) -> dict[str, Any] | None:
    """What the bytes say, if they are its canonical form."""
    try:
        text = data.decode("utf-8")
        value = _decode_json(text[:-1])
        if type(value) is not dict or f"{_encode_json(value)}\n" != text:
            return None
    except (ValueError, RecursionError):
        return None
    return value


def _not_what_was_written(path: str, data: bytes, identity: str, names: Container[str]) -> Finding:
    if f"{identity}.json" in names:
        return fault("event_names_swapped", path, f"these are the bytes of {identity}.json")
    unconverted = hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()
    if path.endswith(f"/{unconverted}.json"):
        return fault("event_line_ends", path, "LF was turned into CRLF; apart from that the event is unchanged")
    return fault("event_edited", path, f"the bytes have the SHA-256 {identity}, not the one in the file's name")
