"""A replacement can only be made of characters that stand together, and stays on the lines of its finding."""

from __future__ import annotations

import pytest

from workpacket.problem import Edit, Fix
from workpacket.text.source import NotTogether, Replacement, TextRun, fix_of

TEXT = "- A: one\n  two\n\n\n- B: three\r\n"


def at(words: str) -> TextRun:
    run = TextRun.quoting(TEXT, TEXT.index(words), words)
    assert run is not None
    return run


def test_words_that_stand_on_one_line_are_a_run() -> None:
    assert at("one").replaced_by("1").edit == Edit(5, 8, "1")
    assert at("three").part(0, 1).deleted().edit == Edit(22, 23, "")
    assert at("one").followed_by("!").edit == Edit(8, 8, "!")


@pytest.mark.parametrize("value", ["one two", "one\n  two", "", "One"])
def test_a_value_that_does_not_stand_there_as_it_is_read_is_no_run(value: str) -> None:
    assert TextRun.quoting(TEXT, 5, value) is None


@pytest.mark.parametrize(("start", "end"), [(5, 14), (8, 5), (-1, 2), (0, 1000)])
def test_words_on_two_lines_and_places_outside_are_no_run(start: int, end: int) -> None:
    assert TextRun.on_line(TEXT, start, end) is None
    with pytest.raises(NotTogether):
        TextRun(TEXT, start, end)


def test_blank_lines_are_a_run_and_leave_the_lines_beside_them_apart() -> None:
    assert TextRun(TEXT, 15, 17).deleted().edit == Edit(15, 17, "")
    with pytest.raises(NotTogether, match="would join two lines"):
        TextRun(TEXT, 14, 17).deleted()


def test_a_line_does_not_become_two() -> None:
    with pytest.raises(NotTogether, match="would split a line"):
        at("one").replaced_by("1\n2")


def fix(span: tuple[int, int], *replacements: Replacement) -> Fix | None:
    return fix_of(span, replacements, safe=True)


def test_a_fix_stays_on_the_lines_of_its_finding() -> None:
    assert fix((5, 8), at("one").deleted()) is not None
    assert fix((5, 8), at("two").deleted()) is None
    assert fix((5, 14), at("two").deleted()) is not None
    assert fix((5, 8), at("one").deleted(), at("three").deleted()) is None


def test_blank_lines_beside_a_finding_belong_to_it() -> None:
    assert fix((17, 20), TextRun(TEXT, 15, 17).deleted()) is not None
    assert fix((5, 8), TextRun(TEXT, 15, 17).deleted()) is None


def test_a_fix_whose_replacements_overlap_is_none() -> None:
    assert fix((5, 8), at("one").deleted(), at("ne").replaced_by("x")) is None
    assert fix((5, 8)) is None
