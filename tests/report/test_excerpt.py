"""The caret stands below what it is about, whatever stands before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.samples import texts
from workpacket.report.terminal import hidden, text_width
from workpacket.report.text import CUT, TAB, excerpt


def underlined(line: str, column: int, end_column: int, room: int = 80) -> str:
    """The part of the shown text that stands above the carets; of ASCII text only."""
    shown = excerpt(line, column, end_column, room)
    return shown.text[shown.start : shown.start + shown.width]


def test_the_span_of_the_finding_is_underlined() -> None:
    assert underlined("- STATUS: open", 3, 9) == "STATUS"


def test_without_an_end_one_character_is_underlined() -> None:
    assert underlined("- STATUS: open", 3, 0) == "S"


def test_a_tab_moves_the_caret_to_the_next_stop() -> None:
    shown = excerpt("\tab\tcd", 5, 7, 80)
    assert shown.text == "    ab  cd"
    assert (shown.start, shown.width) == (2 * TAB, 2)


def test_wide_characters_count_two_columns_and_combining_ones_none() -> None:
    assert excerpt("漢字 x", 4, 5, 80)[1:] == (5, 1)
    assert excerpt("e\u0301 x", 4, 5, 80)[1:] == (2, 1)
    assert excerpt("漢字", 2, 3, 80)[1:] == (2, 2)


def test_a_hidden_character_is_underlined_in_its_visible_form() -> None:
    assert underlined("a\u202eb", 2, 3) == "\\u202e"
    assert underlined("a\u202eb", 3, 4) == "b"
    assert underlined("caf\udce9 x", 4, 5) == "\\xe9"


def test_the_end_of_a_line_can_be_pointed_at() -> None:
    assert excerpt("abc", 4, 0, 80) == ("abc", 3, 1)
    assert excerpt("", 1, 0, 80) == ("", 0, 1)
    assert excerpt("abc", 99, 120, 80) == ("abc", 3, 1)


def test_a_long_line_is_cut_around_the_caret() -> None:
    line = "word " * 100 + "HERE" + " word" * 100
    shown = excerpt(line, 501, 505, 60)
    assert shown.text.startswith(CUT)
    assert shown.text.endswith(CUT)
    assert len(shown.text) <= 60
    assert shown.text[shown.start : shown.start + shown.width] == "HERE"


def test_a_long_line_is_cut_only_behind_where_the_caret_is_near_its_start() -> None:
    shown = excerpt("HERE " + "word " * 100, 1, 5, 40)
    assert shown.text.startswith("HERE")
    assert shown.text.endswith(CUT)
    assert (shown.start, shown.width) == (0, 4)


def test_a_long_line_is_cut_only_before_where_the_caret_is_at_its_end() -> None:
    shown = excerpt("word " * 100 + "HERE", 501, 505, 40)
    assert shown.text.startswith(CUT)
    assert shown.text.endswith("HERE")
    assert underlined("word " * 100 + "HERE", 501, 505, 40) == "HERE"


def test_a_line_of_two_mebibytes_costs_no_more_than_what_is_shown() -> None:
    shown = excerpt("x" * (2 << 20), 1 << 20, (1 << 20) + 3, 100)
    assert (len(shown.text), shown.width) == (100, 3)


def test_a_selector_whose_symbol_was_cut_away_is_visible() -> None:
    line = "x" * 7 + "\u26a0\ufe0f" + "x" * 20
    assert excerpt(line, 12, 0, 12).text == "...\\ufe0f..."


@pytest.mark.parametrize("room", [0, 5, 12, 30])
@given(texts, st.integers(0, 80), st.integers(0, 80))
def test_an_excerpt_fits_shows_nothing_raw_and_has_its_caret_inside(
    room: int, line: str, column: int, end_column: int
) -> None:
    shown = excerpt(line, column, end_column, room)
    room = max(room, 4 * len(CUT))
    assert hidden().search(shown.text) is None
    assert text_width(shown.text) <= room
    assert shown.width >= 1
    assert shown.start + shown.width <= room + 1
