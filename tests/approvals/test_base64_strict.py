"""Base64 has one spelling for one value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.approvals.fields import decode_base64, encode_base64


@given(st.binary(max_size=50))
def test_what_was_encoded_is_decoded(data: bytes) -> None:
    assert decode_base64(encode_base64(data)) == data


@given(st.text("AQgw+/=-_ \n", max_size=9))
def test_what_is_decoded_is_the_only_spelling(text: str) -> None:
    try:
        data = decode_base64(text)
    except ValueError:
        return
    assert encode_base64(data) == text


@pytest.mark.parametrize("text", ["YQ", "YQ=", "YR==", "YQ==\n", " YQ==", "YQ==YQ==", "Y*==", "YWI_", "é", "====", "="])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        decode_base64(text)
