"""Widths on a terminal, and lines broken to fit them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.samples import texts
from workpacket.report.terminal import escape, text_width, wrap


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("漢字", 4),
        ("\uff46", 2),
        ("é", 1),
        ("e\u0301", 1),
        ("\U0001f680", 2),
        ("\u26a0", 1),
        ("\u26a0\ufe0f", 2),
        ("\u1112\u1161\u11ab", 2),
    ],
)
def test_a_character_takes_the_columns_that_terminals_give_it(text: str, columns: int) -> None:
    assert text_width(text) == columns


def test_lines_are_broken_at_spaces() -> None:
    assert wrap("one two three four", 9) == ["one two", "three", "four"]


def test_the_first_line_may_have_less_room() -> None:
    assert wrap("one two three four", 14, 4) == ["one", "two three four"]


def test_a_word_longer_than_a_line_is_cut() -> None:
    assert wrap("see abcdefghij", 4) == ["see", "abcd", "efgh", "ij"]


def test_a_wide_character_is_never_cut_in_half() -> None:
    assert wrap("漢字漢字", 3) == ["漢", "字", "漢", "字"]


def test_a_symbol_is_not_cut_from_the_selector_of_its_emoji_form() -> None:
    assert wrap("ab\u26a0\ufe0f", 3) == ["ab", "\u26a0\ufe0f"]


def test_text_that_fits_is_left_alone() -> None:
    assert wrap("two  blanks", 20) == ["two  blanks"]
    assert wrap("", 20) == [""]


@given(texts.map(escape), st.integers(2, 40), st.integers(2, 40))
def test_no_line_is_too_wide_and_no_character_is_lost(text: str, room: int, first_room: int) -> None:
    first, *rest = wrap(text, room, first_room)
    assert text_width(first) <= first_room
    assert all(text_width(line) <= room for line in rest)
    assert "".join([first, *rest]).replace(" ", "") == text.replace(" ", "")
