"""The page of one code, the page of all codes, and which code was meant."""

from __future__ import annotations

import re

import pytest

from report.samples import REASONS
from workpacket.model.reasons import Reason, Registry
from workpacket.report.explain import nearest_codes, render_codes_page, render_explanation
from workpacket.report.terminal import Style

STALE = Reason(
    "stale_cell",
    "A cell of the registry is stale",
    "People read the registry first.\nAnd they believe it.",
    "Run `workpacket board registry sync`.",
    family="cross-file",
    severity="warning",
    fix="safe",
    aliases=("old_cell",),
)


def test_an_explanation_says_why_what_to_do_and_what_holds_for_the_code() -> None:
    assert render_explanation(STALE) == (
        "stale_cell: A cell of the registry is stale\n"
        "\n"
        "  People read the registry first.\n"
        "  And they believe it.\n"
        "\n"
        "What to do\n"
        "  Run `workpacket board registry sync`.\n"
        "\n"
        "  family         cross-file\n"
        "  severity       warning (under the strict profile: error)\n"
        "  exit status    1\n"
        "  fix            workpacket check --fix\n"
        "  ignore         with a written reason, in the policy\n"
        "  earlier names  old_cell\n"
    )


def test_prose_is_never_wider_than_is_good_to_read() -> None:
    reason = Reason("long", "Long", "word " * 80, "Do it.", family="document")
    assert max(map(len, render_explanation(reason, Style(width=300)).split("\n"))) <= 100
    assert max(map(len, render_explanation(reason, Style(width=60)).split("\n"))) <= 60


def test_integrity_can_never_be_ignored_and_the_page_says_so() -> None:
    assert "ignore       never\n" in render_explanation(REASONS["event_altered"])


def test_what_is_no_finding_of_a_file_is_neither_fixed_nor_ignored() -> None:
    page = render_explanation(REASONS["file_unreadable"])
    assert page.endswith("  severity     error\n  exit status  6\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("emty_field", ["empty_field"]), ("Empty-Field", ["empty_field"]), ("unreadable", ["file_unreadable"]), ("", [])],
)
def test_a_misspelt_code_finds_what_was_meant(typed: str, meant: list[str]) -> None:
    assert nearest_codes(typed, REASONS) == meant


def test_the_page_of_all_codes_has_a_section_and_a_link_for_each() -> None:
    page = render_codes_page(
        Registry([*REASONS.values(), Reason("another", "Another", "Why.", "How.", family="document")])
    )
    sections = re.findall(r"^### (.+)$", page, re.MULTILINE)
    links = re.findall(r"\]\(#(.+?)\)", page)
    assert sections == links
    assert set(sections) == {*REASONS, "another"}
    assert "## integrity\n\n### event_altered\n\n**An event was altered.** The log proves nothing then.\n" in page
    assert page.count("\n## ") == len({reason.family for reason in REASONS.values()})
