"""The JSON Schema that is shipped says what the program checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ledger.stories import ALL_TYPES, PACKET, Story
from workpacket.ledger.log import _ordered_sets, event_misfit
from workpacket.model.event_types import DATA, ENVELOPE, event_schema

SHIPPED = Path(__file__).parents[2] / "schemas" / "event.schema.json"
VALIDATOR = Draft202012Validator(event_schema())


def example(kind: str) -> dict[str, Any]:
    story = Story("_checkpoints" if kind == "checkpoint" else PACKET)
    value: dict[str, Any] = json.loads(story.add(kind, after=()).encode())
    return value


def test_the_shipped_schema_is_the_one_that_is_made_here() -> None:
    assert json.loads(SHIPPED.read_text("utf-8")) == event_schema(), "run `just reference`"


def test_the_schema_is_a_schema_and_accepts_its_own_example() -> None:
    Draft202012Validator.check_schema(event_schema())
    examples = event_schema()["examples"]
    assert isinstance(examples, list)
    for example in examples:
        assert VALIDATOR.is_valid(example)
        assert event_misfit(example) == ""


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_both_accept_what_the_tool_writes(kind: str) -> None:
    assert event_misfit(example(kind)) == ""
    assert VALIDATOR.is_valid(example(kind))


def sets_of(shape: Any, pointer: str = "") -> list[str]:
    if shape.get("uniqueItems"):
        return [pointer]
    found = [one for name, field in shape.get("properties", {}).items() for one in sets_of(field, f"{pointer}/{name}")]
    return found + (sets_of(shape["items"], f"{pointer}/0") if "items" in shape else [])


def test_every_set_of_an_event_is_asked_whether_it_is_sorted() -> None:
    """One that is new in `model.event_types` is named in `ledger.log._ordered_sets`."""
    declared = {("envelope", pointer) for pointer in sets_of(ENVELOPE)}
    declared |= {(kind, pointer) for kind, shape in DATA.items() for pointer in sets_of(shape, "/data")}

    asked = {("envelope", pointer) for pointer in ("/parents", "/attest")}
    for kind in ALL_TYPES:
        event = example(kind)
        if kind == "checkpoint":
            event["data"]["logs"] = [{"heads": []}]
        asked |= {(kind, pointer) for pointer, _ in _ordered_sets(event) if pointer.startswith("/data")}
    assert asked == declared


ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1,
        2**53,
        "",
        "x",
        "X",
        "a" * 64,
        "a\nb",
        "x" * 5000,
        [],
        ["x"],
        [1],
        {},
        {"x": 1},
        "../x",
        "WP-1-X",
    ]
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        found += places(child, (*path, key))
    return found


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_both_give_the_same_verdict_on_events_with_one_thing_changed(data: st.DataObject) -> None:
    value = example(data.draw(st.sampled_from(ALL_TYPES)))
    *way, last = data.draw(st.sampled_from(places(value)))
    holder: Any = value
    for key in way:
        holder = holder[key]
    deed = data.draw(st.sampled_from(["replace", "remove", "add"]))
    if deed == "replace":
        holder[last] = data.draw(ODD)
    elif deed == "remove":
        del holder[last]
    elif isinstance(holder, dict):
        holder[data.draw(st.sampled_from(["novelty", "reason", "origin", "holder"]))] = data.draw(ODD)
    assert (event_misfit(value) == "") == VALIDATOR.is_valid(value)
