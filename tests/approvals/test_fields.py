"""The SSH encoding has one form for one value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softkeys import minimal, packed
from workpacket.approvals.fields import Reader, WireFault, string


@given(st.integers(min_value=1, max_value=2**600))
def test_a_number_in_its_shortest_form_is_read(number: int) -> None:
    reader = Reader(packed(minimal(number)))
    assert reader.positive() == number
    reader.end()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not positive"),
        (b"\x80", "not positive"),
        (b"\xff\x01", "not positive"),
        (b"\0", "redundant leading zero"),
        (b"\0\x7f", "redundant leading zero"),
        (b"\0\0\x80", "redundant leading zero"),
    ],
)
def test_every_other_spelling_of_a_number_is_refused(content: bytes, complaint: str) -> None:
    with pytest.raises(WireFault, match=f"at offset 0 .*{complaint}"):
        Reader(packed(content)).positive()


def test_a_length_beyond_the_end_names_what_was_wanted_and_what_is_left() -> None:
    with pytest.raises(WireFault, match="expected 5 bytes at offset 4, but only 2 remain"):
        Reader(b"\0\0\0\5ab").string()


def test_a_length_of_four_gigabytes_is_only_a_fault() -> None:
    with pytest.raises(WireFault, match="expected 4294967295 bytes"):
        Reader(b"\xff\xff\xff\xff").string()


def test_bytes_after_the_last_field_are_refused() -> None:
    reader = Reader(b"\0\0\0\1ab")
    assert reader.string() == b"a"
    with pytest.raises(WireFault, match="1 unexpected bytes follow the last field at offset 5"):
        reader.end()


@pytest.mark.parametrize("name", [b"a b", b"a\0", b"\x7f", b"\xe9", b"\n"])
def test_a_name_is_printable_ascii(name: bytes) -> None:
    with pytest.raises(WireFault, match="the name at offset 0 is not printable ASCII, or is longer than 255 bytes"):
        Reader(packed(name)).text()


def test_printable_ascii_goes_from_exclamation_mark_to_tilde() -> None:
    assert Reader(packed(b"!~")).text() == "!~"


def test_a_name_has_at_most_255_bytes() -> None:
    assert Reader(packed(b"a" * 255)).text() == "a" * 255
    with pytest.raises(WireFault):
        Reader(packed(b"a" * 256)).text()


@given(st.binary(max_size=40))
def test_a_string_is_read_as_it_was_written(data: bytes) -> None:
    reader = Reader(string(data) + b"\x07\0\0\1\0")
    assert (reader.string(), reader.byte(), reader.u32()) == (data, 7, 256)
    reader.end()
