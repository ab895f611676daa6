"""Loading schemas: references are replaced, nothing is fetched, and what would be overlooked is refused."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from urllib import request

import pytest

from text.schema_files import loaded, reading
from workpacket.text.schema_loading import DIALECT, Loader, UnusableSchema


def refusal(schema: dict[str, Any], **others: dict[str, Any]) -> str:
    with pytest.raises(UnusableSchema) as caught:
        loaded(schema, **others)
    return str(caught.value)


def test_a_local_reference_is_replaced_by_its_definition() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/word"}}, "$defs": {"word": {"type": "string"}}}

    assert loaded(schema) == {"properties": {"a": {"type": "string"}}}


def test_a_shared_definition_may_refer_to_another_one_beside_it() -> None:
    shared = {"$defs": {"word": {"type": "string"}, "words": {"type": "array", "items": {"$ref": "#/$defs/word"}}}}

    schema = loaded({"$ref": "common.schema.json#/$defs/words", "$defs": {"word": False}}, common=shared)

    assert schema == {"type": "array", "items": {"type": "string"}}


def test_annotations_beside_a_reference_win_over_those_of_the_definition() -> None:
    definition = {"type": "string", "title": "Word", "x-noun": "word"}

    schema = loaded({"$ref": "#/$defs/w", "title": "Name", "x-label": "NAME", "$defs": {"w": definition}})

    assert schema == {"type": "string", "title": "Name", "x-noun": "word", "x-label": "NAME"}


def test_assertions_beside_a_reference_hold_as_well() -> None:
    schema = {"$ref": "#/$defs/w", "maxLength": 3, "allOf": [{"minLength": 1}], "$defs": {"w": {"maxLength": 9}}}

    assert loaded(schema) == {"maxLength": 3, "allOf": [{"maxLength": 9}, {"minLength": 1}]}


def test_a_definition_that_is_true_or_false_may_be_referred_to() -> None:
    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/any"},
            "b": {"$ref": "#/$defs/none"},
            "c": {"$ref": "#/$defs/any", "title": "C"},
        },
        "$defs": {"any": True, "none": False},
    }

    assert loaded(schema) == {"properties": {"a": True, "b": {"not": {}}, "c": {"title": "C", "allOf": [True]}}}


def test_headers_comments_and_definitions_are_left_behind() -> None:
    schema = {"$id": "urn:x", "$comment": "x", "title": "X", "properties": {"$id": {"$comment": "y"}}, "$defs": {}}

    assert loaded(schema) == {"title": "X", "properties": {"$id": {}}}


def test_false_is_kept_only_where_messages_know_it() -> None:
    schema = {"properties": {"a": False}, "additionalProperties": False, "items": False, "allOf": [False]}

    assert loaded(schema) == {
        "properties": {"a": {"not": {}}},
        "additionalProperties": False,
        "items": False,
        "allOf": [{"not": {}}],
    }


def test_patterns_are_translated_also_as_names_of_properties() -> None:
    schema = {"pattern": "^a$", "patternProperties": {r"^\d$": {"propertyNames": {"pattern": "x$"}}}}

    assert loaded(schema) == {
        "pattern": r"^a\Z",
        "patternProperties": {r"^[0-9]\Z": {"propertyNames": {"pattern": r"x\Z"}}},
    }


def test_a_file_is_asked_for_once() -> None:
    asked: list[str] = []
    read = reading(a={"$ref": "common.schema.json#/$defs/x"}, common={"$defs": {"x": {"type": "string"}}})

    def noting(name: str) -> bytes:
        asked.append(name)
        return read(name)

    loader = Loader(noting)

    assert loader.load("a") == loader.load("a") == {"type": "string"}
    assert asked == ["a", "common"]


def test_a_schema_that_is_not_there_is_the_business_of_whoever_reads() -> None:
    with pytest.raises(KeyError):
        Loader(reading()).load("nothing")


@pytest.mark.parametrize(
    "reference",
    [
        "http://localhost:1/x.schema.json#/$defs/a",
        "https://json-schema.org/draft/2020-12/schema",
        "other.schema.json#/$defs/a",
        "../common.schema.json#/$defs/a",
        "common.schema.json",
        "common.schema.json#/properties/a",
        "#",
        "#/properties/a",
        "#anchor",
        "#/$defs/a/b",
        "#/$defs/a\n",
        "",
        7,
        None,
    ],
)
def test_a_reference_to_anywhere_else_is_refused(reference: object) -> None:
    message = refusal({"properties": {"a": {"$ref": reference}}, "$defs": {"a": {}}})

    assert message == (
        f"it.schema.json#/properties/a/$ref refers to {reference!r}; "
        "only `#/$defs/<name>` and `common.schema.json#/$defs/<name>` are followed"
    )


def test_no_reference_makes_the_loader_open_a_file_or_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would give an acceptable schema: the file exists, and the connection would be noticed."""

    def unwanted(*_: object, **__: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket, "socket", unwanted)
    monkeypatch.setattr(request, "urlopen", unwanted)
    (tmp_path / "x.json").write_text(json.dumps({"$schema": DIALECT, "type": "string"}), "utf-8")

    for reference in ((tmp_path / "x.json").as_uri(), "http://127.0.0.1:9/x.json"):
        assert "are followed" in refusal({"$ref": reference})


def test_a_definition_that_is_missing_is_named() -> None:
    message = refusal({"items": {"$ref": "#/$defs/b"}, "$defs": {"a": {}}})

    assert message == "it.schema.json#/items/$ref refers to '#/$defs/b', which does not exist"


@pytest.mark.parametrize(
    ("schema", "circle"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "a -> a"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}},
            "a -> b -> a",
        ),
    ],
)
def test_a_circle_of_references_is_refused(schema: dict[str, Any], circle: str) -> None:
    assert refusal(schema).endswith(f"refers to itself: {circle}")


def test_definitions_that_double_each_other_are_loaded_once_each() -> None:
    """Written out, the last one would have 2 to the power of 60 parts."""
    definitions = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}] * 2} for n in range(1, 60)}

    schema = loaded({"$ref": "#/$defs/d59", "$defs": {"d0": {"type": "string"}, **definitions}})

    assert isinstance(schema, dict)
    assert schema["allOf"][0] is schema["allOf"][1]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"typ": "string"}, "#/typ is not a supported keyword, or has the wrong type of argument"),
        ({"items": {"$dynamicRef": "#x"}}, "#/items/$dynamicRef is not a supported keyword"),
        ({"properties": {"a": {"$id": "x"}}}, "#/properties/a/$id is not a supported keyword"),
        ({"properties": {"a": {"$defs": {}}}}, "#/properties/a/$defs is not a supported keyword"),
        ({"unevaluatedItems": False}, "#/unevaluatedItems is not a supported keyword"),
        ({"allOf": {}}, "#/allOf is not a supported keyword, or has the wrong type of argument"),
        ({"properties": []}, "#/properties is not a supported keyword, or has the wrong type of argument"),
        ({"properties": {"a": "string"}}, "#/properties/a is not a schema"),
        ({"anyOf": [None]}, "#/anyOf/0 is not a schema"),
        ({"format": "email"}, "#/format specifies the format 'email'; supported formats are date, date-time, "),
        ({"format": ["date"]}, "#/format specifies the format ['date']; supported formats are date, date-time, "),
        ({"pattern": "(?P<a>b)"}, "#/pattern cannot be used: the pattern '(?P<a>b)' contains '(?P<a>b)' at offset 0"),
        ({"pattern": 7}, "#/pattern cannot be used: a pattern must be a string"),
        ({"patternProperties": {"[": {}}}, "#/patternProperties cannot be used: the pattern '[' contains '['"),
    ],
)
def test_what_would_be_overlooked_is_refused(schema: dict[str, Any], message: str) -> None:
    assert refusal(schema).startswith(f"it.schema.json{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "it.schema.json# is not JSON: "),
        (b"\xff", "it.schema.json# is not JSON: "),
        (b'{"type": "string", "type": "array"}', "it.schema.json# is not JSON: duplicate key; the keys are ['type']"),
        (b"[]", "it.schema.json# does not have"),
        (b"{}", 'it.schema.json# does not have `"$schema": "https://json-schema.org/draft/2020-12/schema"`'),
        (b'{"$schema": "http://json-schema.org/draft-07/schema#"}', "it.schema.json# does not have"),
    ],
)
def test_a_file_that_is_no_schema_of_the_dialect_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(UnusableSchema) as caught:
        Loader({"it": text}.__getitem__).load("it")

    assert str(caught.value).startswith(message)
