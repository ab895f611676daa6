"""Canonical JSON: the same bytes as RFC 8785 inside the profile, a refusal with its place outside of it."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from workpacket.model.canonical import LARGEST_INTEGER, Json, NotCanonical, canonical_bytes

KEYS = st.text(st.characters(max_codepoint=0x7F), max_size=8)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-LARGEST_INTEGER, LARGEST_INTEGER),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@given(VALUES)
def test_inside_the_profile_it_is_rfc_8785(value: Json) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"a": [1, LARGEST_INTEGER + 1]},
            "/a/1: not every JSON parser can represent the integer 9007199254740992 exactly",
        ),
        (-LARGEST_INTEGER - 1, "/: not every JSON parser can represent the integer -9007199254740992"),
        ({"a": {"é": 1}}, "/a: the key 'é' is not ASCII"),
        (["\ud800"], "/0: the string contains a lone surrogate"),
        ({"a": 1.5}, "/a: float is not allowed in canonical JSON"),
    ],
)
def test_outside_of_it_the_place_is_named(value: Json, said: str) -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical_bytes(value)
    assert str(refused.value).startswith(said)
