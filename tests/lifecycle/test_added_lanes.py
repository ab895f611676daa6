"""The lanes that a policy adds: a packet goes the whole way through one, and nothing gets around it."""

from __future__ import annotations

from lifecycle.governed import TOKENS_COUNT, Governed
from lifecycle.signed import NAME, PACKET, codes_of

BOARD = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
QA = """
[lifecycle.lanes.QA]
after = "IN_REVIEW"
before = "MERGE_PENDING"
section = "Quality Assurance"
means = "testers try it on the staging machine"
"""
STAGING = """
[lifecycle.lanes.STAGING]
after = "MERGE_PENDING"
before = "VALIDATED"
"""
PASS = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")


def submitted(governed: Governed, lanes: str = QA, *, sections: bool = True) -> None:
    governed.begin(policy=lanes + TOKENS_COUNT)
    if sections:
        governed.done("board", "sync")
        governed.commit("sections")
    governed.activate(NAME)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.write("report.md", "Good.\n")
    governed.commit("submitted")


def lane(governed: Governed) -> str:
    return governed.state(NAME).lane


def merge(governed: Governed) -> None:
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")


def test_a_packet_goes_the_whole_way_through_two_added_lanes(governed: Governed) -> None:
    submitted(governed, QA + STAGING)
    headings = [line for line in governed.read(BOARD).splitlines() if line.startswith("## ")]
    assert headings[4:8] == ["## In Review", "## Quality Assurance", "## Staging", "## Done"]
    judged = governed.done(*PASS)
    assert (lane(governed), judged.next) == ("QA", f"workpacket advance {NAME}")
    assert f"## Quality Assurance\n- **[{NAME}]** - [QA]\n" in governed.read(BOARD)
    assert f"Quality Assurance: {NAME}" in governed.read(REGISTRY)
    assert "**Status:** QA" in governed.read(PACKET)
    governed.commit("judged")
    assert codes_of(governed, "--base", "main") == set()
    assert governed.done("why", NAME).next == f"workpacket advance {NAME}"
    assert governed.done("next").next == f"workpacket advance {NAME}"
    assert "[QA]" in governed.done("board", "show").out
    assert "     1  QA" in governed.done("status").out
    assert NAME in governed.done("list", "--lane", "qa").out
    assert governed.refused("merged", NAME) == ["wrong_lane"]
    advanced = governed.done("advance", NAME, "--to", "MERGE_PENDING")
    assert advanced.next == f"workpacket merged {NAME}"
    governed.commit("tried")
    merge(governed)
    staged = governed.done("merged", NAME)
    assert (lane(governed), staged.next) == ("STAGING", f"workpacket advance {NAME}")
    governed.done("advance", NAME, "--reason", "a week without a crash")
    assert lane(governed) == "VALIDATED"
    governed.commit("done")
    assert codes_of(governed, "--base", "HEAD~3") == set()
    assert [event.type for event in governed.state(NAME).history if event.moves_lane][-4:] == [
        "verdict.given",
        "advanced",
        "merged",
        "advanced",
    ]
