"""What a person is told about a value that its schema does not accept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from text.schema_files import reading
from text.schema_strategies import schemas, values
from text.schema_verdicts import assert_told_well
from workpacket.model.reason_tables.document import FIELDS
from workpacket.problem import Location, Problem
from workpacket.text.schema import SchemaSet, UnusableSchema
from workpacket.text.schema_messages import LONGEST_SHOWN
from workpacket.text.schema_violations import violations
from workpacket.text.source import Plain


def found(schema: Mapping[str, Any], value: Any) -> list[Problem]:
    return list(SchemaSet(reading(it=schema)).violations("it", value))


def told(schema: Mapping[str, Any], value: Any) -> list[str]:
    return [violation.message for violation in found(schema, value)]


REFINEMENT = {
    "x-label": "the refinement",
    "type": "object",
    "required": ["metadata"],
    "additionalProperties": False,
    "properties": {
        "metadata": {
            "x-label": "METADATA",
            "type": "object",
            "required": ["wp_id", "review", "created_at"],
            "additionalProperties": False,
            "properties": {
                "wp_id": {
                    "x-label": "WP_ID",
                    "x-noun": "work packet id",
                    "type": "string",
                    "pattern": "^WP-",
                    "format": "work-packet-id",
                    "maxLength": 80,
                    "examples": ["WP-1-Parser-v2"],
                },
                "review": {"x-label": "USER_REVIEW_STATUS", "enum": ["PENDING", "APPROVED"]},
                "created_at": {"x-label": "CREATED_AT", "type": "string", "examples": ["2026-01-31T09:30:00Z"]},
                "reason": {"x-label": "REASON", "type": "string"},
            },
            "if": {"required": ["review"], "properties": {"review": {"const": "APPROVED"}}},
            "then": {"required": ["reason"], "properties": {"reason": {"minLength": 5}}},
        },
        "anchors": {"x-label": "SPEC_ANCHORS", "type": "array", "items": {"type": "object", "required": ["token"]}},
    },
}
METADATA = {"wp_id": "WP-1-Parser", "review": "PENDING", "created_at": "2026-01-31T09:30:00Z"}


def test_a_valid_value_has_no_violations() -> None:
    assert found(REFINEMENT, {"metadata": METADATA, "anchors": [{"token": "x"}]}) == []


def test_several_violations_come_in_the_order_of_the_value_each_with_place_code_and_hint() -> None:
    value = {
        "metadata": {"Created at": "x", "review": "APPRVED", "wp_id": "WP-1-CON"},
        "anchors": [{"token": ""}, {}, 7],
        "metdata": {},
    }

    assert found(REFINEMENT, value) == [
        Problem(
            "field_missing",
            "`CREATED_AT` is missing in `METADATA`",
            Location(keys=("metadata",)),
            "for example `2026-01-31T09:30:00Z`",
        ),
        Problem(
            "field_unknown",
            "`Created at` is not a known field in `METADATA`",
            Location(keys=("metadata", "Created at")),
            "did you mean `CREATED_AT`?",
        ),
        Problem(
            "field_value",
            "`USER_REVIEW_STATUS` must be PENDING or APPROVED, not `APPRVED`",
            Location(keys=("metadata", "review")),
            "did you mean APPROVED?",
        ),
        Problem(
            "field_value",
            "`WP_ID` is not a valid work packet id: `WP-1-CON` (contains a name that Windows reserves for a device)",
            Location(keys=("metadata", "wp_id")),
            "for example `WP-1-Parser-v2`",
        ),
        Problem("field_missing", "`token` is missing in item 2 of `SPEC_ANCHORS`", Location(keys=("anchors", 1))),
        Problem("field_type", "item 3 of `SPEC_ANCHORS` must be a mapping, not 7", Location(keys=("anchors", 2))),
        Problem(
            "field_unknown", "`metdata` is not a known field", Location(keys=("metdata",)), "did you mean `METADATA`?"
        ),
    ]


def test_what_a_condition_asks_says_why() -> None:
    approved = {**METADATA, "review": "APPROVED"}

    assert told(REFINEMENT, {"metadata": approved}) == [
        "`REASON` is missing in `METADATA` (because `USER_REVIEW_STATUS` is APPROVED)"
    ]
    assert told(REFINEMENT, {"metadata": {**approved, "reason": "no"}}) == [
        "`REASON` has 2 characters; it must have at least 5 characters (because `USER_REVIEW_STATUS` is APPROVED)"
    ]


@pytest.mark.parametrize(
    ("condition", "because"),
    [
        ({"required": ["a"], "properties": {"a": {"enum": [1, 2]}}}, " (because `a` is 1 or 2)"),
        (
            {"required": ["a", "b"], "properties": {"a": {"const": 1}, "b": {"const": True}}},
            " (because `a` is 1 and `b` is true)",
        ),
        ({"required": ["a"]}, ""),
        ({"required": ["a"], "properties": {"a": True}}, ""),
        ({"required": ["a"], "properties": {"a": {"minimum": 0}}}, ""),
        ({"properties": {"a": {"const": 1}}}, ""),
        (True, ""),
    ],
)
def test_only_a_condition_that_is_as_simple_as_a_sentence_is_told(condition: Any, because: str) -> None:
    schema = {"if": condition, "then": {"required": ["c"]}}

    assert told(schema, {"a": 1, "b": True}) == [f"`c` is missing{because}"]


def test_the_innermost_simple_condition_is_told_wherever_it_stands() -> None:
    rule = {"if": {"required": ["a"], "properties": {"a": {"const": 1}}}, "then": {"required": ["c"]}}
    inner = {"properties": {"a": {"x-label": "A"}}, "allOf": [True, rule]}
    places = {
        "properties": {"x": inner},
        "patternProperties": {"^y": inner},
        "additionalProperties": inner,
        "dependentSchemas": {"x": {"else": False, "if": True, "then": {"prefixItems": [False]}}},
    }
    message = "`c` is missing in {} (because `A` is 1)"

    assert told(places, {"x": {"a": 1}, "yy": {"a": 1}, "z": {"a": 1}}) == [
        message.format(name) for name in ("`x`", "`yy`", "`z`")
    ]
    assert told({"prefixItems": [inner], "items": inner}, [{"a": 1}, {"a": 1}]) == [
        message.format(f"item {number} of the document") for number in (1, 2)
    ]


NUMBERED = [f"n{n}" for n in range(30)]
ITS_KIND = "a valid item of the kind it is for"


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "string"}, 3, "`f` must be text, not 3"),
        ({"type": "string"}, None, "`f` is empty; it must be text"),
        ({"type": "string"}, ["a"], "`f` must be text, not a list"),
        ({"type": "integer"}, "3", "`f` must be a whole number, not the text `3`"),
        ({"type": "integer"}, 1.5, "`f` must be a whole number, not 1.5"),
        ({"type": "number"}, True, "`f` must be a number, not true"),
        ({"type": "boolean"}, "", "`f` is empty; it must be true or false"),
        ({"type": "array"}, {"a": 1}, "`f` must be a list, not a mapping"),
        ({"type": ["string", "null"]}, False, "`f` must be text or empty, not false"),
        ({"type": ["string", "array", "object"]}, 10**40, "`f` must be text, a list or a mapping, not a huge number"),
        ({"enum": ["A", "B-1", "c_d"]}, "x", "`f` must be A, B-1 or c_d, not `x`"),
        ({"enum": ["a b", "", 1, None, True]}, "x", "`f` must be `a b`, ``, 1, empty or true, not `x`"),
        ({"enum": NUMBERED}, "x", f"`f` must be one of {', '.join(NUMBERED[:24])}, …, not `x`"),
        ({"const": "STUB"}, "DONE", "`f` must be STUB, not `DONE`"),
        ({"const": [1]}, [2], "`f` must be `[1]`, not a list"),
        ({"minimum": 1}, 0, "`f` must be at least 1, not 0"),
        ({"maximum": 1}, 2, "`f` must be at most 1, not 2"),
        ({"exclusiveMinimum": 1}, 1, "`f` must be more than 1, not 1"),
        ({"exclusiveMaximum": 1.5}, 1.5, "`f` must be less than 1.5, not 1.5"),
        ({"multipleOf": 5}, 7, "`f` must be a multiple of 5, not 7"),
        ({"minLength": 1}, "", "`f` is empty; it must have at least 1 character"),
        ({"minLength": 3}, "ab", "`f` has 2 characters; it must have at least 3 characters"),
        ({"maxLength": 1}, "ab", "`f` has 2 characters; at most 1 allowed"),
        ({"minItems": 1}, [], "`f` is empty; it must have at least 1 item"),
        ({"minItems": 7}, [1] * 6, "`f` has 6 items; it must have at least 7 items"),
        ({"maxItems": 1}, [1, 2], "`f` has 2 items; at most 1 allowed"),
        ({"minProperties": 2}, {"a": 1}, "`f` has 1 field; it must have at least 2 fields"),
        ({"maxProperties": 0}, {"a": 1}, "`f` has 1 field; none are allowed"),
        ({"prefixItems": [True], "items": False}, [1, 2], "`f` has 2 items; at most 1 allowed"),
        ({"items": False}, [1, 2], "`f` has 2 items; none are allowed"),
        ({"uniqueItems": True}, ["a", "b", "a"], "item 3 of `f` repeats item 1: `a`"),
        ({"contains": {"const": "x"}}, ["y"], "`f` must contain x"),
        ({"contains": {"enum": ["x", "z"]}}, [], "`f` must contain x or z"),
        ({"contains": {"x-noun": "gate"}, "minContains": 2}, [1], "`f` must contain a valid gate at least 2 times"),
        ({"contains": {"type": "null"}, "minContains": 2}, [None], f"`f` must contain {ITS_KIND} at least 2 times"),
        ({"contains": True, "maxContains": 1}, [1, 2], f"`f` must not contain {ITS_KIND} more than 1 time"),
        ({"pattern": "^a"}, "b", "`f` does not have the right form: `b`"),
        ({"pattern": "^a", "x-noun": "word in a"}, "b", "`f` is not a valid word in a: `b`"),
        ({"pattern": "^a"}, "", "`f` is empty"),
        ({"allOf": [{"pattern": "^a"}], "x-noun": "word in a"}, "b", "`f` is not a valid word in a: `b`"),
        ({"format": "date"}, "x", "`f` does not have the right form: `x` (is not written YYYY-MM-DD)"),
        (False, 1, "`f` is not allowed here"),
        ({"not": {}}, 1, "`f` is not allowed here"),
        ({"not": True}, 1, "`f` is not allowed here"),
        ({"not": {"const": "TBD"}}, "TBD", "`f` must not be TBD"),
        ({"not": {"enum": ["TBD", "x"]}}, "x", "`f` must not be TBD or x"),
        ({"not": {"pattern": "^<"}, "x-noun": "value"}, "<fill>", "`f` is not a valid value: `<fill>`"),
        ({"not": {"required": ["a"]}}, {"a": 1}, "`a` must not be given in `f`"),
        ({"not": {"required": ["a", "b"]}}, {"a": 1, "b": 1}, "`a` and `b` must not be given together in `f`"),
        ({"dependentRequired": {"a": ["b", "c"]}}, {"a": 1, "c": 1}, "`b` is missing in `f`; `a` needs it"),
        ({"propertyNames": {"pattern": "^a"}}, {"b": 1}, "`b` is not a valid name for a field in `f`"),
        ({"propertyNames": {"pattern": "^a", "x-noun": "code"}}, {"b": 1}, "`b` is not a valid code in `f`"),
        ({"propertyNames": False}, {"b": 1}, "`b` is not a valid name for a field in `f`"),
        ({"additionalProperties": False}, {"b": 1}, "`b` is not a known field in `f`"),
        (
            {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
            {"a": 1, "b": 1},
            "`b` is not a known field in `f`",
        ),
        ({"additionalProperties": {"type": "string"}}, {"b": 1}, "`b` must be text, not 1"),
        ({"unevaluatedProperties": {"type": "string"}}, {"b": 1}, "`b` must be text, not 1"),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, "`b` is missing in `f`"),
    ],
)
def test_each_keyword_has_its_words(schema: Any, value: Any, message: str) -> None:
    assert told({"properties": {"f": schema}}, {"f": value}) == [message]


@pytest.mark.parametrize(
    ("schema", "value", "code"),
    [
        ({"required": ["a"]}, {}, "field_missing"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "field_missing"),
        ({"additionalProperties": False}, {"a": 1}, "field_unknown"),
        ({"unevaluatedProperties": False}, {"a": 1}, "field_unknown"),
        ({"propertyNames": {"const": "b"}}, {"a": 1}, "field_unknown"),
        ({"properties": {"a": False}}, {"a": 1}, "field_unknown"),
        ({"type": "array"}, {"a": 1}, "field_type"),
        ({"anyOf": [{"type": "array"}, {"type": "string"}]}, {"a": 1}, "field_type"),
        ({"enum": ["a"]}, {"a": 1}, "field_value"),
        ({"properties": {"a": {"minimum": 5}}}, {"a": 1}, "field_value"),
        ({"maxProperties": 0}, {"a": 1}, "field_value"),
        ({"oneOf": [True, True]}, {"a": 1}, "field_value"),
    ],
)
def test_the_code_follows_from_the_keyword(schema: dict[str, Any], value: Any, code: str) -> None:
    assert [violation.code for violation in found(schema, value)] == [code]
    assert code in {reason.code for reason in FIELDS}


@pytest.mark.parametrize(
    ("schema", "value", "hint"),
    [
        ({"enum": ["IN_PROGRESS", "DONE"]}, "in progress", "did you mean IN_PROGRESS?"),
        ({"enum": ["IN_PROGRESS", "DONE"]}, "IN_PROGESS", "did you mean IN_PROGRESS?"),
        ({"enum": ["IN_PROGRESS", "DONE"]}, "zebra", ""),
        ({"enum": ["IN_PROGRESS", 1]}, 2, ""),
        ({"const": "STUB (NOT READY FOR DEV)"}, "STUB (NOT READY)", "did you mean `STUB (NOT READY FOR DEV)`?"),
        ({"enum": ["A"]}, "a" * 81, ""),
        ({"type": "string"}, 12, "put it in quotes to make it a string"),
        ({"type": "string"}, True, "put it in quotes to make it a string"),
        ({"type": "string", "examples": ["a b"]}, ["x"], "for example `a b`"),
        ({"type": "integer", "examples": [1]}, "x", ""),
        ({"type": "integer"}, "x", ""),
        ({"pattern": "^a", "examples": [1, "ab"]}, "x", "for example `ab`"),
        ({"required": ["b"], "properties": {"b": {"examples": ["x"]}}}, {}, "for example `x`"),
        ({"anyOf": [{"required": ["b"]}, {"required": ["c"]}], "examples": ["x"]}, {}, "for example `x`"),
        ({"additionalProperties": False, "properties": {"depends": True}}, {"depend": 1}, "did you mean `depends`?"),
        ({"additionalProperties": False, "properties": {"depends": True}}, {"zebra": 1}, ""),
        ({"additionalProperties": False}, {"zebra": 1}, ""),
    ],
)
def test_a_hint_says_what_was_probably_meant_or_would_do(schema: dict[str, Any], value: Any, hint: str) -> None:
    (violation,) = found({"properties": {"f": schema}}, {"f": value})

    assert violation.hint == hint


def test_of_several_complaints_about_one_scalar_the_most_telling_is_told() -> None:
    schema = {"pattern": "^a$", "maxLength": 2, "format": "date", "not": {"const": "xyz"}, "enum": ["a", "b"]}

    assert [violation.message for violation in found({"items": schema}, ["xyz", "xyz"])] == [
        "item 1 of the document must be a or b, not `xyz`",
        "item 2 of the document must be a or b, not `xyz`",
    ]


def test_a_key_that_is_a_number_in_an_unnamed_value_is_counted_from_one() -> None:
    assert told({"items": {"items": {"type": "string"}}}, [[], ["a", 1]]) == [
        "item 2 of item 2 of the document must be text, not 1"
    ]


def test_the_label_of_a_field_may_stand_in_another_branch_than_the_complaint() -> None:
    schema = {
        "allOf": [{"properties": {"a": {"anyOf": [{"x-label": "ALPHA"}]}}}, {"required": ["a"]}],
        "patternProperties": {"^n": {"x-label": "NUMBER", "type": "integer"}},
    }

    assert told(schema, {"n1": "x"}) == ["`ALPHA` is missing", "`NUMBER` must be a whole number, not the text `x`"]


BATCH = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
}
GATES = {
    "oneOf": [
        {
            "type": "object",
            "required": ["type", "at"],
            "properties": {"type": {"const": kind}, "at": {"type": "string"}, "count": {"type": "integer"}},
            "additionalProperties": False,
        }
        for kind in ("REFINEMENT", "SIGNATURE", "PREPARE")
    ]
}


@pytest.mark.parametrize(
    ("schema", "value", "messages"),
    [
        ({"oneOf": [{"type": "string"}, BATCH]}, 3, ["`f` must be text or a mapping, not 3"]),
        ({"oneOf": [{"type": "string"}, BATCH]}, {"id": "a"}, ["`name` is missing in `f`"]),
        ({"oneOf": [{"type": "string"}, BATCH]}, {"id": 1}, ["`name` is missing in `f`", "`id` must be text, not 1"]),
        (
            {"oneOf": [{"type": "string", "minLength": 2}, BATCH]},
            "a",
            ["`f` has 1 character; it must have at least 2 characters"],
        ),
        (
            {"anyOf": [{"type": "null"}, {"type": ["null", "array"]}]},
            "a",
            ["`f` must be empty or a list, not the text `a`"],
        ),
        (GATES, {"type": "SIGNATUR", "at": 1}, ["`type` must be REFINEMENT, SIGNATURE or PREPARE, not `SIGNATUR`"]),
        (
            GATES,
            {"type": "SIGNATURE", "at": 1, "x": 1},
            ["`at` must be text, not 1", "`x` is not a known field in `f`"],
        ),
        (GATES, {"at": "x"}, ["`type` is missing in `f`"]),
        (GATES, [], ["`f` must be a mapping, not a list"]),
        ({"anyOf": [{"enum": ["a", "b"]}, {"const": "c"}]}, "x", ["`f` must be a, b or c, not `x`"]),
        ({"anyOf": [{"const": ["a"]}, {"const": "c"}]}, "x", ['`f` must be `["a"]` or c, not `x`']),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]}, {"c": 1}, ["`a` or `b` is missing in `f`"]),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]}, {}, ["`a` or `b` and `c` is missing in `f`"]),
        (
            {"anyOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"required": ["c"]}]},
            {},
            ["`a` or `b` is missing in `f`"],
        ),
        ({"anyOf": [{"required": ["a"]}, {"minProperties": 3}]}, {"b": 1}, ["`a` is missing in `f`"]),
        (
            {"anyOf": [{"minLength": 9}, {"pattern": "^b", "maxLength": 0}]},
            "a",
            ["`f` has 1 character; it must have at least 9 characters"],
        ),
        (
            {"anyOf": [{"required": ["z"]}, {"properties": {"a": {"properties": {"b": {"type": "string"}}}}}]},
            {"a": {"b": 1}},
            ["`b` must be text, not 1"],
        ),
        ({"anyOf": [False, False]}, "x", ["`f` is not allowed here"]),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": 1, "b": 1},
            ["only one of `a` and `b` can be given in `f`"],
        ),
        (
            {"oneOf": [{"title": "a word", "type": "string"}, {"title": "short text", "maxLength": 3}]},
            "abc",
            ["`f` matches more than one of several mutually exclusive forms: a word and short text"],
        ),
        (
            {"oneOf": [{"type": "string"}, True]},
            "abc",
            ["`f` matches more than one of several mutually exclusive forms"],
        ),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["a"]}]},
            {"a": 1},
            ["`f` matches more than one of several mutually exclusive forms"],
        ),
    ],
)
def test_the_branch_that_was_probably_meant_is_explained(schema: Any, value: Any, messages: list[str]) -> None:
    assert told({"properties": {"f": schema}}, {"f": value}) == messages


def test_a_discriminator_may_leave_several_branches_and_be_one_of_two() -> None:
    def branch(kind: str, mode: str, field: str) -> dict[str, Any]:
        return {"required": [field], "properties": {"kind": {"const": kind}, "mode": {"enum": [mode]}}}

    schema = {"anyOf": [branch("a", "x", "p"), branch("b", "y", "q"), {"properties": {"kind": {"const": "c"}}}]}

    assert told(schema, {"kind": "b", "mode": "y"}) == ["`q` is missing"]
    assert told(schema, {"kind": "b"}) == ["`q` is missing"]
    assert told(schema, {"kind": "d", "mode": "y"}) == ["`kind` must be a, b or c, not `d`"]


def test_fields_with_the_same_choices_in_all_branches_tell_nothing_apart() -> None:
    severity = {"severity": {"enum": ["low", "high"]}}
    schema = {"anyOf": [{"required": ["p"], "properties": severity}, {"required": ["q", "r"], "properties": severity}]}

    assert told(schema, {"severity": "hgih"}) == ["`p` is missing", "`severity` must be low or high, not `hgih`"]


def test_a_root_that_is_refused_altogether() -> None:
    assert violations(False, 1) == (Problem("field_unknown", "the document is not allowed here", Location(keys=())),)
    assert (
        violations({"type": "object", "x-label": "the policy"}, [])[0].message
        == "the policy must be a mapping, not a list"
    )


HOSTILE = "x\n\u202e" * 100_000


SHOWN = HOSTILE[:LONGEST_SHOWN] + "…"


@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        ({"enum": ["A"]}, HOSTILE, SHOWN),
        ({"type": "integer"}, HOSTILE, SHOWN),
        ({"format": "date-time"}, HOSTILE, SHOWN),
        ({"format": "repository-path"}, HOSTILE, SHOWN),
        ({"pattern": "^a$"}, HOSTILE, SHOWN),
        ({"not": {"pattern": "x"}}, HOSTILE, SHOWN),
        ({"additionalProperties": False}, {HOSTILE: 1}, SHOWN),
        ({"additionalProperties": {"type": "string"}}, {HOSTILE: 1}, SHOWN),
        ({"propertyNames": {"maxLength": 3}}, {HOSTILE: 1}, SHOWN),
        ({"uniqueItems": True}, [HOSTILE, HOSTILE], SHOWN),
        ({"additionalProperties": {"required": ["a"]}}, {HOSTILE: {}}, SHOWN),
        ({"type": "string"}, 10**4000, "a huge number"),
        ({"type": "array"}, {"a": [HOSTILE]}, "a mapping"),
        ({"maxProperties": 1}, {str(n): n for n in range(10_000)}, "10000 fields"),
    ],
    ids=lambda parameter: str(parameter)[:40] if not isinstance(parameter, int) else "number",
)
def test_a_message_does_not_grow_with_the_value_and_keeps_its_characters(
    schema: dict[str, Any], value: Any, shown: str
) -> None:
    (violation,) = found(schema, value)

    assert shown in violation.message
    assert len(violation.message) + len(violation.hint) < 5 * LONGEST_SHOWN


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {"additionalProperties": False, "properties": {f"field_{n}": True for n in range(60)}},
            {f"fiel_{n}": n for n in range(20_000)},
        ),
        ({"allOf": [True], "unevaluatedProperties": False}, {f"fiel_{n}": n for n in range(20_000)}),
        ({"items": {"oneOf": [{"type": "string"}, BATCH]}}, [{"id": n} for n in range(5_000)]),
        ({"items": {"enum": ["abc", "abd"]}}, [f"ab{n}" for n in range(20_000)]),
    ],
)
def test_very_many_violations_are_told_in_time(schema: dict[str, Any], value: Any) -> None:
    """All of them; only the search for similar words gives up. A quadratic step would take minutes."""
    assert len(found(schema, value)) >= len(value)


@settings(max_examples=50)
@given(schemas(), values)
def test_what_is_refused_is_told_with_place_and_code(schema: Any, value: Plain) -> None:
    assert_told_well(schema, value)


def test_a_schema_that_cannot_be_used_is_an_error_of_the_package() -> None:
    with pytest.raises(UnusableSchema):
        found({"$ref": "http://localhost/x"}, 1)
