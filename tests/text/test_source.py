"""A source: the bytes of a file, and where each character of it stands."""

from __future__ import annotations

import hashlib

import pytest

from workpacket.text.source import Source

MIXED = b"\xef\xbb\xbfone\r\ntw\xc3\xb6\xff\n\nfour\rfive  "


def test_bytes_that_are_not_utf8_survive() -> None:
    source = Source.from_bytes("file", MIXED)
    assert source.bom
    assert source.text == "one\r\ntwö\udcff\n\nfour\rfive  "
    assert source.encode() == MIXED


def test_the_digest_is_that_of_the_raw_bytes() -> None:
    expected = hashlib.sha256(MIXED).hexdigest()
    assert Source.from_bytes("file", MIXED).digest == expected
    assert Source("file", "one\r\ntwö\udcff\n\nfour\rfive  ", bom=True).digest == expected
    assert Source.from_bytes("file", MIXED).sha1 == hashlib.sha1(MIXED).hexdigest()


def test_lines_end_at_crlf_lf_and_cr_and_nowhere_else() -> None:
    source = Source("file", "a\r\nb\nc\rd\x0be\u2028f\x85g")
    assert [source.line(line) for line in range(1, source.line_count + 1)] == ["a", "b", "c", "d\x0be\u2028f\x85g"]


def test_a_file_without_a_final_line_end_has_no_empty_last_line() -> None:
    assert Source("file", "a\nb").line_count == 2
    assert Source("file", "a\nb\n").line_count == 3
    assert Source("file", "").line_count == 1


def test_a_place_is_a_line_and_a_character_of_it() -> None:
    source = Source("file", "a😀b\r\nc")
    assert [source.line_and_column(offset) for offset in range(7)] == [
        (1, 1),
        (1, 2),
        (1, 3),
        (1, 4),
        (1, 5),
        (2, 1),
        (2, 2),
    ]


def test_a_span_of_a_line_leaves_out_its_line_end() -> None:
    source = Source("file", "ab\r\n\ncd")
    assert [source.line_span(line) for line in (1, 2, 3)] == [(0, 2), (4, 4), (5, 7)]


@pytest.mark.parametrize(
    ("text", "eol"), [("a\nb\r\n", "\n"), ("a\r\nb\n", "\r\n"), ("a\rb", "\r"), ("a", "\n"), ("\na\r\n", "\n")]
)
def test_new_lines_end_as_the_first_one_does(text: str, eol: str) -> None:
    assert Source("file", text).eol == eol


def test_unusual_characters_are_all_but_printable_ascii_tabs_and_line_ends() -> None:
    assert Source("file", "aZ~ \t\r\n\x7f\x00\u2014\u00c4\udc80\U0001f6a2").unusual == {
        *("\x7f", "\x00", "\u2014", "\u00c4", "\udc80", "\U0001f6a2")
    }
    assert Source("file", "plain\n").unusual == frozenset()


def test_a_word_is_mentioned_whatever_its_capitals() -> None:
    source = Source("file", "The last Verdict: PASS \u0130")
    assert source.mentions(b"fail", b"verdict")
    assert not source.mentions(b"fail")
