"""The acceptor has the opinion of `jsonschema`, or none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings

from text.schema_files import loaded
from text.schema_strategies import schemas, values
from text.schema_verdicts import assert_one_verdict
from workpacket.text.schema import compile_acceptor
from workpacket.text.schema_messages import complaints
from workpacket.text.source import Plain

ROOT = Path(__file__).parents[2]


@settings(max_examples=50)
@given(schemas(formats=False), values)
@example({"const": 1}, True)
@example({"const": [1]}, [True])
@example({"enum": [0, False]}, -0.0)
@example({"enum": [{"a": 1.0}]}, {"a": 1})
@example({"uniqueItems": True}, [1, True, [1], [True], {"a": 1}, {"a": True}])
@example({"uniqueItems": True}, ["😀", "\ud83d\ude00"])
@example({"type": "integer"}, 1e300)
@example({"type": ["number", "integer"]}, 1.5)
@example({"not": {"type": "integer"}}, 1.5)
@example({"contains": {"type": "null"}, "minContains": 0, "maxContains": 1}, [None, None])
@example({"prefixItems": [{"type": "null"}], "items": False}, [None, None])
@example({"if": {"type": "string"}, "then": {"maxLength": 1}, "else": {"type": "null"}}, "ab")
@example({"oneOf": [True, {"type": "string"}, {"maxLength": 1}]}, "ab")
@example({"unevaluatedProperties": False, "additionalProperties": {"type": "null"}}, {"a": None})
@example({"allOf": [{"unevaluatedProperties": True}], "unevaluatedProperties": False}, {"a": None})
def test_acceptor_judge_and_plain_jsonschema_agree(schema: Any, value: Plain) -> None:
    assert_one_verdict(schema, value)


@settings(max_examples=50)
@given(schemas(), values)
def test_acceptor_and_judge_agree_on_formats_too(schema: Any, value: Plain) -> None:
    ready = loaded({"allOf": [schema]})
    accepts = compile_acceptor(ready)

    assert accepts is not None
    assert accepts(value) is (complaints(ready, value) == [])


@pytest.mark.parametrize(
    "schema", [{"multipleOf": 0.1}, {"$ref": "#"}, {"format": "email"}, {"items": {"unheardOf": 1}}]
)
def test_a_schema_with_something_unknown_has_no_acceptor(schema: dict[str, Any]) -> None:
    assert compile_acceptor(schema) is None


def test_annotations_ask_for_nothing() -> None:
    accepts = compile_acceptor({"title": "x", "examples": [], "x-label": "X", "default": 1})

    assert accepts is not None
    assert accepts("anything")


@pytest.mark.parametrize(("schema", "value"), [(True, True), (False, False)])
def test_a_schema_may_be_true_or_false(schema: bool, value: bool) -> None:
    accepts = compile_acceptor(schema)

    assert accepts is not None
    assert accepts(1) is value


@pytest.mark.parametrize("value", [object(), (1,), b"x", {1}])
def test_what_is_no_value_of_json_is_not_accepted(value: Any) -> None:
    accepts = compile_acceptor(True)

    assert accepts is not None
    assert not accepts(value)


def test_no_pattern_is_tried_on_a_text_that_is_too_long() -> None:
    """This pattern would take longer than the universe has existed."""
    schema = loaded({"maxLength": 240, "pattern": "^(?:a|a)*$"})
    accepts = compile_acceptor(schema)

    assert accepts is not None
    assert not accepts("a" * 100_000 + "b")
    assert [complaint.keyword for complaint in complaints(schema, "a" * 100_000 + "b")] == ["maxLength"]


def test_repetitions_are_found_in_time_proportional_to_the_list() -> None:
    """All these numbers have one hash, so a set of them would compare each with each; texts have hashes with a key."""
    modulus = sys.hash_info.modulus
    hostile: list[Plain] = [[n * modulus] for n in range(20_000)]
    schema = loaded({"uniqueItems": True})
    accepts = compile_acceptor(schema)

    assert accepts is not None
    assert accepts(hostile)
    assert [complaint.path for complaint in complaints(schema, [*hostile, hostile[7]])] == [(20_000,)]


def test_saying_yes_does_not_import_jsonschema() -> None:
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from workpacket.text.schema import SchemaSet
dialect = b'{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string", "format": "date-time"}'
schemas = SchemaSet({"moment": dialect}.__getitem__)
assert schemas.violations("moment", "2026-01-31T09:30:00Z") == ()
assert "jsonschema" not in sys.modules and "referencing" not in sys.modules and "difflib" not in sys.modules
assert schemas.violations("moment", "yesterday") != ()
assert "jsonschema" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, str(ROOT / "tools")], check=True, timeout=60)
