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

from draft07 import twin
from text.schema_files import reading
from text.schema_strategies import schemas, values
from text.schema_verdicts import assert_twin_agrees
from workpacket.text.schema_loading import UnusableSchema
from workpacket.text.source import Plain


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
        ({"prefixItems": [True], "items": False}, {"items": [True], "additionalItems": False}),
        ({"items": {"prefixItems": [{}]}}, {"items": {"items": [{}]}}),
        ({"dependentRequired": {"a": ["b"]}}, {"dependencies": {"a": ["b"]}}),
        ({"dependentSchemas": {"a": {"prefixItems": []}}}, {"dependencies": {"a": {"items": []}}}),
        (
            {"dependentSchemas": {"a": False, "c": True}, "dependentRequired": {"a": ["b"], "d": ["a"]}},
            {"dependencies": {"a": {"allOf": [{"required": ["b"]}, False]}, "c": True, "d": ["a"]}},
        ),
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
            {"not": {"$ref": "#/$defs/w", "allOf": [True], "maxLength": 1}},
            {"not": {"allOf": [{"$ref": "#/definitions/w"}, True], "maxLength": 1}},
        ),
        (
            {"properties": {"a": {}}, "unevaluatedProperties": False},
            {"properties": {"a": {}}, "additionalProperties": False},
        ),
        (
            {"additionalProperties": {}, "unevaluatedProperties": False},
            {"additionalProperties": {}},
        ),
        (
            {"allOf": [{"unevaluatedProperties": True}], "unevaluatedProperties": False},
            {"allOf": [{"additionalProperties": True}]},
        ),
        (
            {
                "allOf": [{"properties": {"a": {"type": "null"}}, "patternProperties": {"^x": {}}}, True],
                "properties": {"b": {}},
                "unevaluatedProperties": False,
            },
            {
                "allOf": [{"properties": {"a": {"type": "null"}}, "patternProperties": {"^x": {}}}, True],
                "properties": {"a": True, "b": {}},
                "patternProperties": {"^x": True},
                "additionalProperties": False,
            },
        ),
        (
            {"$ref": "common.schema.json#/$defs/event", "properties": {"b": {}}, "unevaluatedProperties": False},
            {
                "properties": {"b": {}, "v": True, "at": True},
                "additionalProperties": False,
                "allOf": [{"$ref": "common.schema.json#/definitions/event"}],
            },
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


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"contains": {}, "minContains": 2}, "minContains"),
        ({"items": {"contains": {}, "maxContains": 2}}, "maxContains"),
        ({"unevaluatedProperties": False, "anyOf": [{}]}, "unevaluatedProperties beside a choice"),
        ({"unevaluatedProperties": False, "allOf": [{"oneOf": [{}]}]}, "unevaluatedProperties beside a choice"),
        ({"unevaluatedProperties": False, "if": {}}, "unevaluatedProperties beside a choice"),
        ({"unevaluatedProperties": False, "dependentSchemas": {}}, "unevaluatedProperties beside a choice"),
    ],
)
def test_what_draft_07_has_no_words_for_is_refused(schema: dict[str, Any], what: str) -> None:
    with pytest.raises(UnusableSchema) as caught:
        twin_of(schema)

    assert str(caught.value) == f"it.schema.json: draft-07 cannot express {what}"


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
