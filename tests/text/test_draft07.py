"""Draft-07 twins: the same verdicts in older words, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft7Validator
from jsonschema.validators import validator_for
from referencing.jsonschema import DRAFT7

from text.schema_files import reading
from text.schema_strategies import schemas, values
from text.schema_verdicts import assert_twin_agrees
from workpacket.text.draft07 import twin
from workpacket.text.node import Plain
from workpacket.text.schema_loading import UnusableSchema


def twin_of(schema: Mapping[str, Any], **others: Mapping[str, Any]) -> Any:
    made = json.loads(twin("it", reading(it=schema, **others)))
    assert made.pop("$schema") == "http://json-schema.org/draft-07/schema#"
    return made


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"type": "string", "title": "T", "examples": ["x"], "x-label": "L"},
            {"type": "string", "title": "T", "examples": ["x"], "x-label": "L"},
        ),
        (
            {"$id": "https://x.example/schemas/a.schema.json"},
            {"$id": "https://x.example/schemas/draft-07/a.schema.json"},
        ),
        ({"$id": "urn:x:a"}, {"$id": "urn:x:a:draft-07"}),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/w"}, "b": {"$ref": "common.schema.json#/$defs/w", "title": "B"}},
                "$defs": {"w": {}},
            },
            {
                "properties": {
                    "a": {"$ref": "#/definitions/w"},
                    "b": {"title": "B", "allOf": [{"$ref": "common.schema.json#/definitions/w"}]},
                },
                "definitions": {"w": {}},
            },
        ),
        (
            {"not": {"$ref": "#/$defs/w", "allOf": [True], "maxLength": 1}, "$defs": {"w": {}}},
            {"not": {"allOf": [{"$ref": "#/definitions/w"}, True], "maxLength": 1}, "definitions": {"w": {}}},
        ),
    ],
)
def test_a_twin_says_the_same_in_older_words(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    shared = {
        "$defs": {
            "w": {},
            "event": {"$ref": "#/$defs/base", "properties": {"v": {}}},
            "base": {"properties": {"at": {}}},
        }
    }

    assert twin_of(schema, common=shared) == expected


def test_what_the_schema_may_not_say_its_twin_does_not_say_either() -> None:
    with pytest.raises(UnusableSchema, match="#/items/contains is not a supported keyword"):
        twin_of({"items": {"contains": {}, "maxContains": 2}})


@settings(max_examples=50)
@given(schemas(formats=False), values)
def test_a_twin_judges_as_the_schema_does(schema: Any, value: Plain) -> None:
    assert_twin_agrees(schema, value)


def test_a_twin_is_readable_and_keeps_half_a_character() -> None:
    made = twin("it", reading(it={"title": "Größe", "const": "\ud83d"}))

    assert "Größe" in made.decode()
    assert json.loads(made)["const"] == "\ud83d"


def test_a_twin_is_a_schema_that_editors_recognise_by_its_dialect() -> None:
    made = json.loads(twin("it", reading(it={"type": "string"})))

    assert validator_for(made) is Draft7Validator
    assert DRAFT7.create_resource(made).contents == made
