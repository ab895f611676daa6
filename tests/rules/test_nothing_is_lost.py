"""No repair takes away a line, or part of one, that its finding does not show."""

from __future__ import annotations

from collections import Counter

import pytest

from rules.planted_repairs import BASES, PLANTED, Planted, lines_of
from workpacket.cli.fmt import formatted, repaired
from workpacket.report.catalogue import catalogue
from workpacket.rules.repair import RepairRefused
from workpacket.shell.checking import examine_bytes, load_findings
from workpacket.text.source import Source

pytestmark = pytest.mark.share(6)

CODES = frozenset(catalogue())
# What `fmt --upgrade` writes in another way, and what nobody said and it may therefore not say.
REWRITTEN = (
    "# Task Packet Stub:",
    "## Identity",
    "## Why this stub exists",
    "## Roadmap pointer",
    "## SPEC_ANCHOR_CANDIDATES",
    "## Scope sketch",
    "## Known gaps",
    "## Dependencies",
    "## Risks",
    "## Intent",
    "## Activation checklist",
)
INVENTED = ("none known", "none stated", "see wp-1-parser", "see problem_statement")


def after(case: Planted, text: str) -> str:
    base = BASES[case.base]
    data = text.encode("utf-8", "surrogateescape")
    source = Source.from_bytes(base.path, data)
    if case.command == "upgrade":
        try:
            return formatted(source, base.kind, CODES, upgrade=True).source.text
        except RepairRefused:
            return text  # the file is named, and stays as it is
    findings = load_findings(base.path, examine_bytes(base.path, base.kind, data).findings)
    return repaired(source, base.kind, findings, CODES, unsafe=case.command == "unsafe")[0].text


@pytest.mark.parametrize("name", sorted(BASES.keys() - {"older"}))
def test_without_anything_planted_nothing_is_repaired(name: str) -> None:
    case = Planted(name, "unsafe", name, "", "", [], [])
    assert after(case, case.text) == case.text


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "case",
    [case for case in PLANTED if case.command != "upgrade"],
    ids=[c.name for c in PLANTED if c.command != "upgrade"],
)
def test_a_repair_changes_the_lines_of_its_finding_and_no_other(case: Planted) -> None:
    before, repaired_text = lines_of(case.text), lines_of(after(case, case.text))
    assert (before - repaired_text, repaired_text - before) == (Counter(case.lost), Counter(case.gained))


@pytest.mark.parametrize(
    "case",
    [case for case in PLANTED if case.command == "upgrade"],
    ids=[c.name for c in PLANTED if c.command == "upgrade"],
)
def test_an_upgrade_carries_every_line_over_and_says_nothing_of_its_own(case: Planted) -> None:
    upgraded = lines_of(after(case, case.text))
    missing = []
    for line in lines_of(case.text):
        words = line.strip().removeprefix("**Status:** ").removeprefix("- Created: ")
        if not words.startswith(REWRITTEN) and not any(words in written for written in upgraded):
            missing.append(line)
    assert missing == case.lost
    said = "\n".join(upgraded - lines_of(case.text)).casefold()
    assert [words for words in INVENTED if words in said] == []
