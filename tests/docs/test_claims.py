"""What README and docs/guarantees.md claim names the test that shows it, and that test is there."""

from __future__ import annotations

import re

import pytest

from architecture.source_tree import ROOT

PAGES = ("README.md", "docs/guarantees.md")
PLACE = re.compile(r"`((?:tests|docs)/[^`]+)`")


def claims(page: str) -> list[tuple[str, list[str]]]:
    """Each row of the tables with two columns whose second one is headed `shown by`."""
    text = (ROOT / page).read_text("utf-8")
    (table,) = re.findall(r"^\| what \| shown by \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [row.strip("|\n").rsplit("|", 1) for row in table.splitlines()]
    return [(what.strip(), PLACE.findall(shown)) for what, shown in rows]


@pytest.mark.parametrize("page", PAGES)
def test_each_claim_names_places_that_are_there(page: str) -> None:
    listed = claims(page)
    assert len(listed) > 7
    for what, places in listed:
        assert places, what
        for place in places:
            assert (ROOT / place).exists(), f"{what}: {place}"


def test_the_readme_claims_nothing_about_runs_or_signatures_that_the_full_table_lacks() -> None:
    full = " ".join(place for _, places in claims(PAGES[1]) for place in places)
    for what, places in claims(PAGES[0]):
        assert any(place in full for place in places), what


def test_each_peer_that_the_readme_names_is_one_that_is_measured() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    (named,) = re.findall(r"against (doorstop.*?), where", text)
    measured = set(re.findall(r'peer\("([^"]+)"', (ROOT / "bench" / "peers.py").read_text("utf-8").lower()))
    for name in re.split(r", | and ", named):
        assert name in measured, measured
