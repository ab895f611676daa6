"""What a person reads before signing: nothing that others wrote can pass for the tool's own words, or be cut short."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.report.approval_text import (
    barred,
    render_changes,
    render_contract,
    render_difference,
    render_file,
    render_told,
    word_by_word,
)
from workpacket.report.terminal import Style, escape, text_width

NARROW = Style(width=40)
WIDTHS = st.integers(30, 200)
PIECES = ["a", " ", "|", ">", "-", "\t", "\x1b[2J", "\u202e", "\u200b", "\u0301", "\u4e2d", "[-", "\x00"]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=200).map("".join)
OURS = ("| ", "|>")


def unwrapped(rows: list[str]) -> str:
    """The text that rows behind the bar show."""
    assert rows[0].startswith("| ")
    assert all(row.startswith("|>") for row in rows[1:])
    return "".join(row[2:] for row in rows)


@given(HOSTILE, WIDTHS)
def test_every_row_has_its_bar_and_fits_and_nothing_is_lost(text: str, width: int) -> None:
    rows = barred(text, Style(width=width))
    assert unwrapped(rows) == escape(text)
    assert all(text_width(row) <= width for row in rows)


@given(HOSTILE)
def test_without_a_width_a_line_is_one_row(text: str) -> None:
    assert barred(text, Style()) == [f"| {escape(text)}"]


@given(st.lists(HOSTILE.map(lambda text: text.replace("\n", " ")), max_size=4), WIDTHS)
def test_a_file_cannot_speak_for_us(lines: list[str], width: int) -> None:
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    first, *rows = render_file("x.md", data, Style(width=width)).splitlines()
    assert first == f"--- x.md ({len(data)} bytes), in full:"
    assert all(row.startswith(OURS) or row == "(no newline at end of file)" for row in rows)


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"a\n\n", b"\n"])
def test_the_end_of_a_file_is_shown(data: bytes) -> None:
    shown = render_file("x.md", data)
    assert ("(no newline at end of file)" in shown) == (not data.endswith(b"\n"))
    assert shown.count("\n| ") == data.count(b"\n") + (not data.endswith(b"\n"))


NAMES = ["what", "criteria"]


@given(st.lists(HOSTILE, min_size=1, max_size=4), WIDTHS)
def test_a_contract_cannot_speak_for_us(texts: list[str], width: int) -> None:
    shown = render_contract([("what", texts), ("why", ())], "c" * 64, Style(width=width)).splitlines()
    assert shown[:2] == ["--- the contract, in full:", "what:"]
    assert shown[-3:] == ["why:", "(nothing)", f"sha256 {'c' * 64}"]
    assert all(row.startswith(OURS) for row in shown[2:-3])
    assert sum(row.startswith("| ") for row in shown[2:-3]) == len(texts)


@given(HOSTILE, HOSTILE, WIDTHS)
def test_a_difference_cannot_speak_for_us(old: str, new: str, width: int) -> None:
    shown = render_difference([("what", (old,), (new,))], "then", Style(width=width)).splitlines()
    assert shown[:2] == ["--- the contract: changes since then:", "what:"]
    assert all(row.startswith(OURS) for row in shown[2:])


def test_words_that_were_taken_out_and_put_in_are_marked() -> None:
    assert word_by_word("a b c", "a x c d") == "a [-b-] {+x+} c {+d+}"
    assert word_by_word("", "a b") == "{+a b+}"
    assert word_by_word("a b", "") == "[-a b-]"
    assert word_by_word("a", "a") == "a"


def test_marks_in_the_text_are_not_ours() -> None:
    assert word_by_word("a", "a {+b+} [-c-]") == "a {+{\\+b+\\} [\\-c-\\]+}"


def test_only_what_differs_is_shown_item_by_item() -> None:
    shown = render_difference([("criteria", ("one", "two", "three"), ("one", "2", "three", "four"))], "then", Style())
    assert shown.splitlines()[2:] == ["| [-two-] {+2+}", "| {+four+}"]


def test_the_same_bytes_are_called_so() -> None:
    assert render_changes("x.md", b"a\n", b"a\n", "then") == "--- x.md: unchanged since then\n"
    assert (
        render_changes("x.md", b"a\n", b"a", "then").endswith("| -a\n| +a\n| +(no newline at end of file)\n") is False
    )
    assert "| +(no newline at end of file)" in render_changes("x.md", b"a\n", b"a", "then")


def test_rows_that_are_told_have_the_bar() -> None:
    assert render_told("what was submitted", ["commit c", "x" * 50], NARROW).splitlines() == [
        "--- what was submitted:",
        "| commit c",
        f"| {'x' * 38}",
        f"|>{'x' * 12}",
    ]


@pytest.mark.share(4)
@pytest.mark.parametrize("text", ["x" * 2**21, "\u0301" * 2**20, "\u4e2d " * 2**19, "\x1b" * 2**18])
def test_a_line_of_two_megabytes_is_shown_whole_and_at_once(text: str) -> None:
    began = time.process_time()
    assert unwrapped(barred(text, NARROW)) == escape(text)
    assert time.process_time() - began < 10


def test_many_words_are_compared_at_once() -> None:
    old, new = (" ".join(f"{word}{number}" for number in range(200_000)) for word in ("a", "b"))
    began = time.process_time()
    assert word_by_word(old, new) == f"[-{old}-] {{+{new}+}}"
    assert time.process_time() - began < 10
