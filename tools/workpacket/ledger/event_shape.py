"""Whether a JSON value is a valid event of a known version, and if not, what is wrong with it. Uses the schemas of
`model.event_types`, compiled by the same acceptor as for documents. Each type is compiled when its first event occurs:
a log has few types, and ten thousand events must be decoded within a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from workpacket.model.event_types import CHECKPOINT_LOG, DATA, ENVELOPE, OLDEST_VERSION, Shape
from workpacket.text.acceptor import compile_acceptor
from workpacket.text.node import Plain
from workpacket.text.schema_loading import Schema


class Fractional(float):
    """A number with a fraction or an exponent, such as `1.0`. The acceptor refuses this type."""


def event_misfit(value: Any) -> str:
    """The first error in `value` as a JSON pointer with a message; "" if it is a valid event."""
    if not _accepts("")(value):
        return _explained(value, _ready(ENVELOPE))
    if value["v"] == OLDEST_VERSION and "sig" in value:
        return f"/sig: an event of version {OLDEST_VERSION} has no signature"
    kind = value["type"]
    if not _accepts(kind)(value["data"]):
        return _explained(value, _ready({"properties": {"data": DATA[kind]}}))
    if (kind == "checkpoint") != (value["packet"] == CHECKPOINT_LOG):
        return f"/packet: events of type checkpoint, and only these, belong to {CHECKPOINT_LOG}"
    for pointer, ids in _ordered_sets(value):
        if len(ids) > 1 and ids != sorted(set(ids)):
            return f"{pointer}: must be sorted and without duplicates"
    return ""


@cache
def _accepts(kind: str) -> Callable[[Plain], bool]:
    """Accepts the data of a type of event; the envelope, for ""."""
    shape: Shape = DATA[kind] if kind else ENVELOPE
    accepts = compile_acceptor(_ready(shape))
    assert accepts is not None, "an event says nothing that the acceptor does not know"
    return accepts


def _ready(shape: Any) -> Any:
    """The schema as Python reads it: its patterns are Python's except for `$`, which also matches before a final
    newline. Uniqueness of items is checked together with their order, which implies it.
    """
    if isinstance(shape, dict):
        kept = ((key, at) for key, at in shape.items() if key != "uniqueItems")
        return {key: f"{at[:-1]}\\Z" if key == "pattern" else _ready(at) for key, at in kept}
    return [_ready(item) for item in shape] if isinstance(shape, list) else shape


def _explained(value: Plain, schema: Schema) -> str:
    from workpacket.text.schema_violations import violations

    for first in violations(schema, value):
        return f"/{'/'.join(map(str, first.location.keys))}: {first.message}"
    return "/: a whole number is written with a fraction or an exponent"  # which JSON Schema overlooks


def _ordered_sets(event: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The sets in an event. Each is sorted, so that a set has one form and an event one id."""
    yield "/parents", event["parents"]
    yield "/attest", event["attest"]
    data = event["data"]
    if "dependencies" in data:
        yield "/data/dependencies", data["dependencies"]
    if event["type"] == "reapproved":
        yield "/data/replaces", data["replaces"]
    elif event["type"] == "fork.resolved":
        yield "/data/moves", data["moves"]
    elif event["type"] == "checkpoint":
        for index, log in enumerate(data["logs"]):
            yield f"/data/logs/{index}/heads", log["heads"]
