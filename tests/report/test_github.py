"""Annotations of GitHub Actions, read back as the runner reads them."""

from __future__ import annotations

import re

from hypothesis import given

from report.samples import STUB, finding, outcome, outcomes
from workpacket.problem import Severity
from workpacket.report.ci import ANNOTATIONS_PER_LEVEL, render_github
from workpacket.report.outcome import CheckOutcome
from workpacket.report.terminal import hidden

COMMAND = re.compile(r"::(?P<name>[a-z]+)(?: (?P<properties>[^:]*))?::(?P<data>.*)")


def unescape(text: str, *, in_property: bool) -> str:
    if in_property:
        text = text.replace("%3A", ":").replace("%2C", ",")
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """What the runner takes for a command: a line that starts with '::' after white space."""
    found = []
    for line in text.split("\n"):
        if line.strip().startswith("::"):
            match = COMMAND.fullmatch(line.strip())
            assert match is not None, line
            pairs = [pair.split("=", 1) for pair in (match["properties"] or "").split(",") if pair]
            properties = {name: unescape(value, in_property=True) for name, value in pairs}
            found.append((match["name"], properties, unescape(match["data"], in_property=False)))
    return found


def test_a_finding_is_an_annotation_at_its_place() -> None:
    text = render_github(outcome(finding(hint="100% of it")))
    assert commands(text) == [
        (
            "error",
            {"file": STUB, "line": "2", "col": "3", "title": "empty_field"},
            "the field SPEC_ANCHOR is empty\nHelp: 100% of it",
        )
    ]
    assert text.endswith("\n1 error in 1 of 1 file\n")


def test_severities_become_error_warning_and_notice() -> None:
    found = [finding(severity="info"), finding(severity="warning"), finding()]
    assert [name for name, _, _ in commands(render_github(outcome(*found)))] == ["error", "warning", "notice"]


def test_a_file_and_the_repository_are_annotated_as_far_as_they_have_a_place() -> None:
    whole, repository = commands(render_github(outcome(finding(line=0), finding(path="", line=4))))[::-1]
    assert whole[1] == {"file": STUB, "title": "empty_field"}
    assert repository[1] == {"title": "empty_field"}


def test_a_path_with_commas_and_colons_stays_one_property() -> None:
    ((_, properties, _),) = commands(render_github(outcome(finding(path="a,line=9:b%.md"))))
    assert properties["file"] == "a,line=9:b%.md"
    assert properties["line"] == "2"


def test_beyond_ten_a_level_the_log_lists_the_rest_and_the_last_annotation_counts_them() -> None:
    found = [finding(line=line) for line in range(1, 24)] + [
        finding(severity="info", line=line) for line in range(1, 12)
    ]
    text = render_github(outcome(*found, notes=("a note",)))
    annotations = [command for command in commands(text) if command[0] not in {"group", "endgroup"}]
    levels = [name for name, _, _ in annotations]
    assert (levels.count("error"), levels.count("notice")) == (ANNOTATIONS_PER_LEVEL, ANNOTATIONS_PER_LEVEL)
    assert annotations[-1][2].startswith("not annotated: 13 errors, 2 info; GitHub limits")
    assert "::group::15 further findings\n" in text
    assert f"- {STUB}:23:3: error empty_field: the field SPEC_ANCHOR is empty\n" in text
    assert "note: a note\n" in text


def test_ten_of_each_level_are_not_cut() -> None:
    levels: tuple[Severity, ...] = ("error", "info")
    found = [finding(severity=severity, line=line) for severity in levels for line in range(1, 11)]
    text = render_github(outcome(*found))
    assert len(commands(text)) == 20
    assert "::group::" not in text


@given(outcomes())
def test_a_document_cannot_give_orders_to_the_runner(result: CheckOutcome) -> None:
    text = render_github(result)
    assert all(hidden().search(line) is None for line in text.split("\n"))
    expected = sorted({"error": "error", "warning": "warning", "info": "notice"}[f.severity] for f in result.findings)
    assert sorted(name for name, _, _ in commands(text)) == expected
