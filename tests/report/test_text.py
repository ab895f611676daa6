"""The report for people."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.samples import PACKET, STUB, finding, fix, outcome, outcomes
from workpacket.problem import Severity
from workpacket.report.outcome import CheckOutcome
from workpacket.report.terminal import NARROWEST, Style, hidden, text_width
from workpacket.report.text import render_text, shown_path, summary

# Place, severity and code are one search term and never broken.
HEAD_ALONE = re.compile(r" +(\d+:\d+|-) +(error|warning|info) +[a-z_]+( \[\*\])?")
SGR = re.compile(r"\x1b\[[0-9;]*m")

SEVERAL = outcome(
    finding(line=12, column=3, end_line=12, end_column=14, hint="name the heading", fix=fix(title="remove the line")),
    finding("stale_cell", "warning", line=140, column=1, message="the cell says READY"),
    finding("file_unreadable", path=PACKET, line=0, column=0, message="permission denied"),
    files={STUB: "stub", PACKET: "packet", "a.md": "packet"},
    lines={(STUB, 12): "- SPEC_ANCHOR:"},
    notes=("1 file is ignored by the policy",),
)


def test_findings_are_grouped_by_file_with_line_caret_help_and_fix() -> None:
    assert render_text(SEVERAL) == (
        f"{PACKET}\n"
        "  -  error  file_unreadable  permission denied\n"
        "\n"
        f"{STUB}\n"
        "   12:3  error    empty_field [*]  the field SPEC_ANCHOR is empty\n"
        "     12 | - SPEC_ANCHOR:\n"
        "        |   ^^^^^^^^^^^\n"
        "        = help: name the heading\n"
        "        = fix: remove the line (--fix)\n"
        "  140:1  warning  stale_cell  the cell says READY\n"
        "\n"
        "note: 1 file is ignored by the policy\n"
        "2 errors, 1 warning in 2 of 3 files; 1 can be fixed with --fix [*]\n"
    )


def test_colour_changes_nothing_but_the_colour() -> None:
    coloured = render_text(SEVERAL, Style(colour=True))
    assert coloured != render_text(SEVERAL)
    assert SGR.sub("", coloured) == render_text(SEVERAL)


def test_without_a_terminal_no_message_is_wrapped() -> None:
    message = "word " * 100 + "end"
    assert f"  {message}\n" in render_text(outcome(finding(message=message)))


def test_on_a_narrow_terminal_messages_are_wrapped_below_their_start() -> None:
    result = outcome(finding(message="the field SPEC_ANCHOR is empty", hint="name the heading of the specification"))
    assert render_text(result, Style(width=48)) == (
        f"{STUB}\n"
        "  2:3  error  empty_field  the field SPEC_ANCHOR\n"
        "        is empty\n"
        "      = help: name the heading of the\n"
        "              specification\n"
        "\n"
        "1 error in 1 of 1 file\n"
    )


def test_a_finding_over_several_lines_is_underlined_to_the_end_of_its_first() -> None:
    result = outcome(finding(line=3, column=5, end_line=4, end_column=2), lines={(STUB, 3): "one two"})
    assert "  3 | one two\n      |     ^^^\n" in render_text(result)


def test_a_finding_without_a_column_shows_its_line_without_a_caret() -> None:
    text = render_text(outcome(finding(line=3, column=0), lines={(STUB, 3): "one two"}))
    assert "  3 | one two\n" in text
    assert "^" not in text


def test_an_unsafe_fix_is_offered_but_not_marked() -> None:
    text = render_text(outcome(finding(fix=fix(safe=False, title="take the newer row"))))
    assert "= fix: take the newer row (--unsafe-fixes)\n" in text
    assert "[*]" not in text
    assert text.endswith("1 can be fixed with --unsafe-fixes; a person should review the result\n")


def test_a_clean_run_says_how_much_it_looked_at() -> None:
    clean = outcome(files={STUB: "stub", PACKET: "packet", "b.md": "packet"})
    assert render_text(clean) == "3 files checked, no findings (packet 2, stub 1)\n"


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        (["error"], "1 error in 1 of 2 files"),
        (["error", "error", "warning", "info", "info"], "2 errors, 1 warning, 2 info in 1 of 2 files"),
    ],
)
def test_the_summary_counts_in_words(severities: list[Severity], expected: str) -> None:
    found = [finding(severity=severity) for severity in severities]
    assert summary(outcome(*found, files={STUB: "stub", "x.md": "stub"})) == expected


def test_a_finding_of_the_repository_has_a_heading_too() -> None:
    assert render_text(outcome(finding(path="", line=0))).startswith("(repository)\n  -  error")


@pytest.mark.parametrize("path", ["::error::x.md", " ::set-output name=x::y"])
def test_a_path_never_starts_a_line_as_a_workflow_command(path: str) -> None:
    assert shown_path(path).startswith("./")


@given(outcomes(), st.sampled_from([None, 1, 40, 200]), st.booleans())
def test_nothing_raw_is_shown_and_no_line_is_too_wide(result: CheckOutcome, width: int | None, colour: bool) -> None:
    text = SGR.sub("", render_text(result, Style(width, colour)))
    lines = text.removesuffix("\n").split("\n")
    assert all(hidden().search(line) is None for line in lines)
    assert not any(line.lstrip().startswith("::") for line in lines if width is None)
    unbroken = {shown_path(finding.path) for finding in result.findings}
    assert [line for line in lines if line.endswith(" ") and line not in unbroken] == []
    if width is not None:
        broken = [line for line in lines if line not in unbroken and not HEAD_ALONE.fullmatch(line)]
        assert [line for line in broken if text_width(line) > max(width, NARROWEST)] == []


MANY = tuple(finding("stale_cell", "warning", line=number, message=f"row {number}") for number in range(1, 41))


def test_very_many_findings_of_one_code_do_not_hide_the_others() -> None:
    text = render_text(outcome(*MANY, finding(path=PACKET)))
    assert text.count("row ") == 5
    assert text.index(PACKET) < text.index(STUB), "the file with an error comes first"
    assert "stale_cell: 35 more findings in 1 file; `workpacket check --select stale_cell` lists them\n" in text
    assert "1 error, 40 warnings" in text


def test_quiet_and_selected_lists_are_whole() -> None:
    assert render_text(outcome(*MANY), quiet=True).count("row ") == 40
    assert render_text(outcome(*MANY), every=True).count("row ") == 40
