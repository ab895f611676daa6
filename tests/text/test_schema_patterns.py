"""Patterns: what ECMA-262 and Python both say is translated, everything else is refused.

The verdicts were checked against V8 (with the `u` flag) on random patterns when the translation was written; the tables
here keep the cases in which the two languages part.
"""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.text.schema_loading import UnusablePattern, translate


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        ("^a$|b", "a\n", False),
        ("^(?:a|b$)", "b\n", False),
        (r"^\d$", "7", True),
        (r"^\d$", "\u0667", False),
        (r"^\D$", "\u0667", True),
        (r"^\w$", "é", False),
        (r"^\W$", "é", True),
        (r"^[\w.]$", "é", False),
        (r"^\s$", "\u00a0", True),
        (r"^\s$", "\ufeff", True),
        (r"^\s$", "\x1c", False),
        (r"^\S$", "\x85", True),
        (r"^[\s]$", "\u2028", True),
        ("^.$", "\r", False),
        ("^.$", "\u2029", False),
        ("^.$", "\x85", True),
        ("^.$", "😀", True),
        (r"^(YES|NO)\b", "YES, mostly", True),
        (r"^(YES|NO)\b", "YESTERDAY", False),
        (r"^(YES|NO)\b", "YES", True),
        (r"^é\b", "é", False),
        (r"a\Bb", "ab", True),
        (r"^\B$", "", True),
        (r"^\b$", "", False),
        (r"^[a\-z]$", "b", False),
        ("^[-a]$", "-", True),
        ("^[a-]$", "-", True),
        ("^[a-c-e]$", "d", False),
        ("^[+--]$", ",", True),
        ("^[[&&~~||a]$", "[", True),
        ("^[&&a]$", "&", True),
        (r"^[\]\\^]$", "]", True),
        ("^[^a]$", "b", True),
        (r"^[$^]$", "$", True),
        (r"^\u00e9\x41\t$", "éA\t", True),
        (r"^\.\/$", "./", True),
        ("^a{2}b{1,}c{0,2}d*?e+?f??$", "aabccde", True),
        ("^(?=a)(?!ab)..$", "ac", True),
        ("^(a|)$", "", True),
        ("# x", "# x", True),
    ],
)
def test_a_pattern_means_what_it_means_in_ecma_262(pattern: str, text: str, matches: bool) -> None:
    assert (re.search(translate(pattern), text) is not None) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        "(?P<name>a)",
        "(?<name>a)",
        "(?i)a",
        "(?i:a)",
        "(?#a)",
        "(?>a)",
        "(?<=a)b",
        "(?<!a)b",
        "(?(1)a|b)",
        "a*+",
        "a++",
        "a?+",
        "a{2}+",
        "a**",
        "a{,3}",
        "a{",
        "a}",
        "a]",
        "*a",
        "(+a)",
        "a|?b",
        "^*",
        "$+",
        "(?=a)*",
        r"\b*",
        r"\A",
        r"\Z",
        r"\z",
        r"\a",
        r"\N{DIGIT ONE}",
        r"\U0001F600",
        r"\p{L}",
        r"(a)\1",
        r"\0",
        r"\-",
        r"\_",
        r"\ud83d",
        r"[\ud800-\udfff]",
        "\\",
        "[]",
        "[]a]",
        "[^]",
        "[^]a]",
        "[a",
        r"[\w-z]",
        r"[a-\w]",
        r"[\S]",
        r"[\b]",
        r"[\A]",
        "[z-a]",
        "(a",
        "a)",
        "a))(",
        "a{3,2}",
    ],
)
def test_what_the_two_languages_do_not_share_is_refused(pattern: str) -> None:
    with pytest.raises(UnusablePattern, match=re.escape(repr(pattern))):
        translate(pattern)


def test_a_refusal_names_the_place() -> None:
    with pytest.raises(UnusablePattern) as caught:
        translate(r"^ab(?P<name>c)$")

    assert str(caught.value) == (
        "the pattern '^ab(?P<name>c)$' contains '(?P<name' at offset 3, which Python and ECMA-262 do not both support"
    )


@given(st.text(st.sampled_from(r"ab-_^$.|()[]{}*+?\dDwWsSbBuxpPZA0,1:=!<i&~#") | st.characters(), max_size=12))
def test_any_text_is_translated_or_refused(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            translated = translate(pattern)
        except UnusablePattern:
            return
        re.compile(translated)


@given(st.text())
def test_a_text_with_its_syntax_escaped_matches_itself(text: str) -> None:
    pattern = re.sub(r"([\^$\\.*+?()\[\]{}|])", r"\\\1", text)

    assert re.fullmatch(translate(pattern), text)


@given(st.sampled_from(["^a*$", r"^[^\r\n]*$", r"^\s*$", "^(?:a|b)+$", "b$"]), st.text("ab \n\r", max_size=5))
def test_no_pattern_that_ends_in_a_dollar_overlooks_a_last_line_break(pattern: str, text: str) -> None:
    if re.search(translate(pattern), text + "\n"):
        assert pattern == r"^\s*$"
