"""`report pr` says on the page of a pull request what it does to the packets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lifecycle.governed import TOKENS_COUNT, Governed, govern
from workpacket.report.pull_request import MARK

NAME = "WP-1-Greeting-v1"
PACKET = f".GOV/task_packets/{NAME}.md"
REQUIRED = '[coverage]\nmode = "required"\n'


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    """A packet on main, and its work, submitted on the branch that is checked out."""
    governed = govern(tmp_path, monkeypatch, capsys)
    governed.write("src/base.py", "one\ntwo\n")
    governed.begin(policy=REQUIRED + TOKENS_COUNT)
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME)
    governed.replace("src/base.py", "two", "2")
    governed.commit("Two")
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    return governed


def test_lane_criteria_proofs_events_and_what_it_waits_for_are_told(governed: Governed) -> None:
    page = governed.done("report", "pr", "--base", "main").out
    assert page.startswith(f"{MARK}\n### workpacket: passes\n")
    assert f"#### `{NAME}` `IN_REVIEW` (was `IN_PROGRESS`)" in page
    assert re.search(r"- 1\. proved: `The name is printed\.` by `true`, exit status 0 at `[0-9a-f]{12}`", page)
    assert "- new: `submitted by coder" in page
    assert "- waits for: " in page


def test_a_check_that_fails_is_the_first_line(governed: Governed) -> None:
    governed.write("lib/other.py", "1\n")
    governed.commit("beside the scope")
    page = governed.done("report", "pr", "--base", "main").out
    assert page.splitlines()[1].startswith("### workpacket: 1 finding: change")
    assert "`lib/other.py`" in page


def test_a_rewritten_contract_is_shown_word_by_word(governed: Governed) -> None:
    governed.replace(PACKET, "The name is printed.", "Something is printed.")
    governed.commit("rewritten")
    page = governed.done("report", "pr", "--base", "main").out
    assert "contract_changed" in page.splitlines()[1]
    assert "criteria: [-The name-] {+Something+} is printed." in page


def test_nothing_that_the_change_wrote_is_markdown(governed: Governed) -> None:
    hostile = "@everyone ![x](http://example.org/x.png) <img src=x> `` ### Approved"
    governed.replace(PACKET, "The name is printed.", hostile)
    governed.commit("rewritten")
    page = governed.done("report", "pr", "--base", "main").out
    outside = re.sub(r"(?s)\n(`{3,})text\n.*?\n\1\n|(`+)(?!`).+?(?<!`)\2(?!`)", "", page)
    assert "@everyone" in page
    assert not re.search(r"@everyone|!\[x\]|<img", outside)
    assert [line for line in page.splitlines() if line.startswith("### ")] == [page.splitlines()[1]]


def test_a_change_without_packets_says_so(governed: Governed) -> None:
    assert "No packet changes." in governed.done("report", "pr", "--base", "HEAD").out


def test_the_page_can_be_a_file_which_is_never_overwritten(governed: Governed, tmp_path: Path) -> None:
    answer = governed.json("report", "pr", "--base", "main", "--out", "comment.md")
    assert (answer["data"]["verdict"], answer["data"]["packets"][0]["lane_on_base"]) == ("passes", "IN_PROGRESS")
    assert (tmp_path / "comment.md").read_text().startswith(MARK)
    assert governed("report", "pr", "--base", "main", "--out", "comment.md").status == 6
    assert governed("report", "pr").status == 2
    assert governed("report").status == 2
