"""The shape of a whole event: the envelope that all share, and the data of its type.

`event_misfit` is what the ledger checks each file with; `event_schema` prints the same as JSON Schema for editors and
other tools, and is shipped as `schemas/event.schema.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from workpacket.model.canonical import Json
from workpacket.model.event_types import CHECKPOINT_LOG, DATA, DIGEST, LOG_NAME, NAME, PATH
from workpacket.model.shapes import Misfit, Shape, array, choice, integer, nullable, record, text, timestamp

VERSION: Final = 1
ACTOR_KINDS: Final = ("human", "agent", "ci")

_UUID7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

_ENVELOPE: Final[Mapping[str, Shape]] = {
    "v": integer("version of the event format", least=VERSION, most=VERSION),
    "type": choice("what happened", tuple(DATA)),
    "packet": LOG_NAME,
    "clock": integer("1 + the largest clock of the parents", least=1),
    "parents": array("ids of all heads that the writer saw; none for the first", DIGEST, most=50, ordered_set=True),
    "at": timestamp("when, as the writer claims"),
    "actor": record("who, as the writer claims", {"id": NAME, "kind": choice("what kind of actor", ACTOR_KINDS)}),
    "tool": NAME,
    "tx": text("the transaction, a UUID of version 7", pattern=_UUID7, longest=36),
    "subjects": array(
        "the files that changed with it, or that it was said of",
        record(
            "one file, before and after; null where there was none",
            {"path": PATH, "prev": nullable(DIGEST), "sha256": nullable(DIGEST)},
        ),
        most=200,
    ),
    "attest": array("ids of approval envelopes", DIGEST, most=50, ordered_set=True),
    "data": Shape(lambda _value: None, {"type": "object", "description": "as the type asks"}),
}
_EVENT = record("an event in the log of a work packet", _ENVELOPE)
_EXAMPLE: Final[Mapping[str, Json]] = {
    "v": VERSION,
    "type": "created",
    "packet": "WP-1-Kettle-v1",
    "clock": 1,
    "parents": [],
    "at": "2026-01-31T12:00:00Z",
    "actor": {"id": "ann", "kind": "human"},
    "tool": "workpacket 0.1.0",
    "tx": "0190a5de-ac96-774b-bcce-b302099a8057",
    "subjects": [],
    "attest": [],
    "data": {"lane_from": None, "lane_to": "STUB", "base": "WP-1-Kettle"},
}


def event_misfit(value: Json) -> Misfit | None:
    """The first place where `value` is not an event of the current version."""
    misfit = _EVENT.misfit(value)
    if misfit is not None:
        return misfit
    assert isinstance(value, dict)
    kind = value["type"]
    if (kind == "checkpoint") != (value["packet"] == CHECKPOINT_LOG):
        return Misfit("/packet", f"events of type checkpoint, and only these, belong to {CHECKPOINT_LOG}")
    misfit = DATA[kind].misfit(value["data"])
    return None if misfit is None else misfit.inside("data")


def event_schema() -> dict[str, Json]:
    """The same as JSON Schema 2020-12; `$defs` holds the data of each type, `_` standing for the dot in its name."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://workpacket.dev/schemas/event.schema.json",
        "title": "Event",
        **_EVENT.schema,
        "examples": [_EXAMPLE],
        "allOf": [
            {
                "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
                "then": {"properties": {"data": {"$ref": f"#/$defs/{_definition(kind)}"}, "packet": _packet_of(kind)}},
            }
            for kind in DATA
        ],
        "$defs": {_definition(kind): {"title": kind, **shape.schema} for kind, shape in DATA.items()},
    }


def _definition(kind: str) -> str:
    return kind.replace(".", "_")


def _packet_of(kind: str) -> dict[str, Json]:
    return {"const": CHECKPOINT_LOG} if kind == "checkpoint" else {"not": {"const": CHECKPOINT_LOG}}
