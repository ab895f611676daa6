"""The output door: nothing that hides or steers gets through, and nothing else is touched."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given

from report.samples import texts
from workpacket.report.terminal import escape, escape_lines, hidden, without_surrogates

# UAX #9, table 4: every explicit directional formatting character.
EXPLICIT_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u202eevil", "\\u202eevil"),
        ("\x1b[31mred\x1b[0m", "\\u001b[31mred\\u001b[0m"),
        ("\x9b2J", "\\u009b2J"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("soft\xadhyphen", "soft\\u00adhyphen"),
        ("line\u2028separator", "line\\u2028separator"),
        ("one\r\ntwo", "one\\r\\ntwo"),
        ("tab\there", "tab\\there"),
        ("byte \udcff", "byte \\xff"),
        ("half \ud83d pair", "half \\ud83d pair"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("filler \u3164", "filler \\u3164"),
        ("nul \x00", "nul \\u0000"),
    ],
)
def test_what_hides_or_steers_is_written_visibly(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize(
    "text",
    ["plain", "naïve", "漢字", "\u05e9\u05dc", "e\u0301", "\U0001f680", "\u26a0\ufe0f", "a\\u202e", "## [x]", "\xa0"],
)
def test_ordinary_text_of_any_language_is_left_alone(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize("command", ["##[error]x", "##vso[task.setvariable]x", "##VSO[x]", "##teamcity[x]"])
def test_a_logging_command_of_a_ci_agent_is_defused_anywhere_in_a_line(command: str) -> None:
    shown = escape(f"text {command}")
    assert "[" not in shown
    assert "\\u005b" in shown


def test_every_explicit_bidi_character_is_escaped() -> None:
    assert all(hidden().fullmatch(character) for character in EXPLICIT_BIDI)
    formatting = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    by_class = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.bidirectional(chr(code)) in formatting]
    assert len(by_class) >= 9
    assert all(hidden().fullmatch(character) for character in by_class)


def test_the_ranges_hold_every_control_format_separator_and_surrogate_that_this_python_knows() -> None:
    let_through = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and not hidden().fullmatch(chr(code))
    ]
    assert let_through == []


def test_no_letter_or_digit_is_escaped_except_the_invisible_fillers_of_hangul() -> None:
    fillers = {0x115F, 0x1160, 0x3164, 0xFFA0}
    escaped = {
        code
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] in "LNPS" and hidden().fullmatch(chr(code))
    }
    assert escaped == fillers


def test_a_variation_selector_stays_only_behind_a_symbol() -> None:
    assert escape("\u26a0\ufe0f") == "\u26a0\ufe0f"
    assert escape("a\ufe0f") == "a\\ufe0f"
    assert escape("\u26a0\ufe0f\ufe0f") == "\u26a0\ufe0f\\ufe0f"


@given(texts)
def test_what_comes_through_the_door_is_one_safe_line_and_passes_it_again_unchanged(text: str) -> None:
    shown = escape(text)
    assert hidden().search(shown) is None
    assert len(shown.splitlines()) <= 1
    assert escape(shown) == shown
    shown.encode("utf-8")


@given(texts)
def test_lines_and_tabs_survive_where_text_is_laid_out_already(text: str) -> None:
    shown = escape_lines(text)
    assert shown.count("\n") == text.count("\n")
    assert shown.count("\t") == text.count("\t")
    assert all(hidden().search(part) is None for line in shown.split("\n") for part in line.split("\t"))


@given(texts)
def test_text_without_surrogates_can_always_be_encoded_and_is_otherwise_exact(text: str) -> None:
    clean = without_surrogates(text)
    clean.encode("utf-8")
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert clean == text
