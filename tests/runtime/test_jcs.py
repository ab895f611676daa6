"""Canonical bytes: equal to the published implementation wherever a value has them, refused by name elsewhere."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from workpacket.model.canonical import NotCanonical, canonical_bytes
from workpacket.runtime.records.jcs import address_of, jcs_bytes, jcs_hash, kept, number_text, stored_text, value_of

texts = st.text('aZ0 "\\\n\x00\x7fÄ€\ue000\U0001f600', max_size=8)
floats = (
    st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0]).filter(math.isfinite)
)
scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | floats | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


@given(values)
def test_every_value_has_the_bytes_of_the_published_implementation(value: Any) -> None:
    assert jcs_bytes(value) == rfc8785.dumps(value)


@given(floats)
def test_every_number_is_written_as_the_published_implementation_writes_it(number: float) -> None:
    assert number_text(number).encode() == rfc8785.dumps(number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"), (-0.0, "0"), (1.0, "1"), (-1.5, "-1.5"), (1e21, "1e+21"), (1e20, "100000000000000000000"),
        (1e-6, "0.000001"), (1e-7, "1e-7"), (5e-324, "5e-324"), (1.7976931348623157e308, "1.7976931348623157e+308"),
        (123456.789, "123456.789"), (9007199254740993.0, "9007199254740992"), (4.35, "4.35"),
    ],
)  # fmt: skip
def test_numbers_follow_the_rules_of_ecmascript(number: float, text: str) -> None:
    assert number_text(number) == text


def test_keys_are_sorted_by_utf16_code_units() -> None:
    assert jcs_bytes({"\ue000": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ue000":1}'.encode()


@given(st.dictionaries(st.text('aZ0_"\\\n', max_size=5), st.integers(-9, 9) | st.text('aÄ"\n', max_size=4)))
def test_within_the_profile_of_the_ledger_both_forms_are_one(value: Any) -> None:
    assert jcs_bytes(value) == canonical_bytes(value)


@given(values)
def test_what_is_kept_comes_back_as_it_was(value: Any) -> None:
    assert repr(value_of(stored_text(value).encode())) == repr(value)


def test_meaning_ignores_what_text_keeps() -> None:
    assert kept({"a": 1.0, "b": 2}).meaning == kept({"b": 2, "a": 1}).meaning
    assert kept({"a": 1.0, "b": 2}).text != kept({"b": 2, "a": 1}).text
    assert jcs_hash(1.0) == jcs_hash(1) == "jcs-1:" + address_of(b"1")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "/: nan"),
        ({"a": [1, float("inf")]}, "/a/1: inf"),
        ({"a": {1: 2}}, "/a/1: the key is not a string"),
        ({"k": (1,)}, "/k: tuple is not JSON; return a list"),
        ({"k": b""}, "/k: bytes"),
        ([2**53], "/0: the integer 9007199254740992"),
        (["\ud800"], "/0: the string contains a lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
        (object(), "/: object"),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        jcs_bytes(value)
    assert message in str(caught.value)


@given(values)
def test_what_is_kept_is_hashed_as_what_it_means(value: Any) -> None:
    form = kept(value)
    assert form.meaning == jcs_hash(value)
    assert form.stored == form.text.encode() == stored_text(value).encode()


@given(st.dictionaries(texts, scalars, max_size=4))
def test_the_order_of_the_keys_makes_no_difference(value: dict[str, Any]) -> None:
    forms = [dict(sorted(value.items())), dict(sorted(value.items(), reverse=True)), value]
    assert {jcs_bytes(form) for form in forms} == {rfc8785.dumps(value)}


@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["list", "object"])
def test_a_depth_bomb_is_refused_and_not_a_crash(around: Any) -> None:
    bomb: Any = around(0)
    for _ in range(100_000):
        bomb = around(bomb)
    with pytest.raises(NotCanonical, match="nested deeper"):
        jcs_bytes(bomb)
