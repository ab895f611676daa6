"""Random schemas on random values, for as long as there is time: one verdict, told well, also by the twin."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from text.schema_strategies import schemas, values
from text.schema_verdicts import assert_one_verdict, assert_told_well, assert_twin_agrees
from workpacket.text.source import Plain


@given(schemas(formats=False), values)
def test_acceptor_judge_and_jsonschema_are_of_one_opinion(schema: Any, value: Plain) -> None:
    assert_one_verdict(schema, value)


@given(schemas(), values)
def test_whatever_is_wrong_is_told_with_place_and_code(schema: Any, value: Plain) -> None:
    assert_told_well(schema, value)


@given(schemas(formats=False), values)
def test_a_twin_is_of_the_same_opinion(schema: Any, value: Plain) -> None:
    assert_twin_agrees(schema, value)
