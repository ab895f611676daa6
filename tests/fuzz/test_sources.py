"""Any bytes at all: a source gives them back, and knows where everything stands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workpacket.text.source import Source

LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf", b"\xff", "\u2028".encode(), b""])
FILES = st.lists(st.one_of(st.binary(max_size=20), LINE_ENDS), max_size=40).map(b"".join)


@given(FILES)
def test_a_source_gives_back_the_bytes_it_was_read_from(data: bytes) -> None:
    assert Source.from_bytes("file", data).encode() == data


@given(FILES)
def test_every_character_stands_in_exactly_one_line(data: bytes) -> None:
    source = Source.from_bytes("file", data)
    places = [source.line_and_column(offset) for offset in range(len(source.text) + 1)]

    assert places == sorted(set(places))
    assert all(1 <= line <= source.line_count and column >= 1 for line, column in places)
    assert all(source.line_starts[line - 1] + column - 1 == offset for offset, (line, column) in enumerate(places))
