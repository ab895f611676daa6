"""JSON that all readers understand alike, or none."""

from __future__ import annotations

import pytest

from workpacket.approvals.fields import load_json
from workpacket.model.layout import LARGEST_DATA
from workpacket.problem import WorkpacketError


def refused(data: bytes) -> tuple[str, str]:
    with pytest.raises(WorkpacketError) as caught:
        load_json(data)
    return caught.value.code, caught.value.message


def test_plain_json_is_loaded() -> None:
    assert load_json(b'{"a":[1,-2,null,true,"\\u00e9\xc3\xa9"]}') == {"a": [1, -2, None, True, "éé"]}


def test_a_key_twice_is_refused_at_any_depth() -> None:
    code, message = refused(b'{"a":{"b":1,"c":2,"b":1}}')
    assert (code, message) == ("approval_duplicate_key", "key 'b' appears twice in one object")


def test_two_spellings_of_one_key_are_the_same_key() -> None:
    assert refused(b'{"a":1,"\\u0061":2}')[0] == "approval_duplicate_key"


@pytest.mark.parametrize("number", [b"1.0", b"1e3", b"NaN", b"Infinity", b"-Infinity", b"1" * 17, b"1" * 5000])
def test_a_number_that_is_not_an_exact_integer_is_refused(number: bytes) -> None:
    code, message = refused(b"[" + number + b"]")
    assert code == "approval_not_json"
    assert message == f"the number {number[:40].decode()} is not an exact integer"


def test_sixteen_digits_are_still_exact() -> None:
    assert load_json(b"9007199254740991") == 2**53 - 1


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\xff", "the byte at offset 0 is not valid UTF-8"),
        (b'"\xed\xa0\x80"', "the byte at offset 1 is not valid UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 20_000, "nested too deeply"),
        (b"{}\n {}", "not JSON at line 2, column 2"),
        (b"", "not JSON at line 1, column 1"),
        (b"\xef\xbb\xbf{}", "not JSON at line 1, column 1"),
        (b'"' + b"a" * 262_144, "exceed the limit of 262144"),
    ],
)
def test_the_complaint_names_the_fault(data: bytes, complaint: str) -> None:
    code, message = refused(data)
    assert code == "approval_not_json"
    assert complaint in message


def test_the_largest_text_is_read() -> None:
    data = b'"' + b"a" * (LARGEST_DATA - 2) + b'"'
    assert load_json(data) == "a" * (LARGEST_DATA - 2)
