"""Judged work that landed as it was judged is done, in the tree of the target branch, without a second commit."""

from __future__ import annotations

import pytest

from lifecycle.governed import STAGING, TOKENS_COUNT, Governed, remembered

NAME, OTHER = "WP-1-Greeting-v1", "WP-1-Song-v1"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
GATE_ON_MERGED = '[lifecycle.gates.release]\non = "merged"\n'


@remembered
def judged(governed: Governed, policy: str = "") -> None:
    """The branch of the work, with its verdict, is checked out."""
    governed.begin(policy=policy + TOKENS_COUNT)
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    governed.write("docs/report.md", "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", "docs/report.md", "--as", "judge")
    governed.commit("judged")


def land(governed: Governed, how: str = "merge") -> None:
    governed.git("switch", "--quiet", "main")
    if how == "merge":
        governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")
    else:
        governed.git("merge", "--quiet", "--squash", f"wp/{NAME}")
        governed.commit("squashed")


def lanes(governed: Governed) -> tuple[str, ...]:
    """As each output says it."""
    shown = governed.json("show", NAME)["data"]["lane"]
    board = governed.json("board", "show")["data"]["lanes"][NAME]
    why = governed.json("why", NAME)["data"]["lane"]
    return shown, board, why


@pytest.mark.share(2)
@pytest.mark.parametrize("how", ["merge", "squash"])
def test_landed_work_is_done_on_the_target_branch_and_nowhere_else(governed: Governed, how: str) -> None:
    judged(governed)
    assert lanes(governed) == ("MERGE_PENDING",) * 3
    land(governed, how)
    before = governed.files()
    assert lanes(governed) == ("VALIDATED",) * 3
    assert governed.state(NAME).lane == "MERGE_PENDING"
    assert "1  VALIDATED" in governed.done("status").out
    governed.done("check")
    assert governed.files() == before
    governed.git("switch", "--quiet", f"wp/{NAME}")
    assert lanes(governed) == ("MERGE_PENDING",) * 3


def test_a_later_edit_does_not_undo_it_and_the_event_may_still_be_written(governed: Governed) -> None:
    judged(governed)
    land(governed)
    governed.write("src/greet.py", "print('later')\n")
    governed.commit("later")
    assert lanes(governed) == ("VALIDATED",) * 3
    governed.done("board", "sync")
    assert f"- **[{NAME}]** - [VALIDATED]" in governed.read(BOARD)
    governed.done("check")
    governed.done("merged", NAME)
    assert governed.state(NAME).lane == "VALIDATED"
    governed.done("check")


def test_work_goes_on_from_where_the_log_is(governed: Governed) -> None:
    judged(governed)
    land(governed)
    governed.done("packet", "reopen", NAME, "--reason", "more")
    assert governed.state(NAME).lane == "IN_PROGRESS"
    assert governed.state(NAME).sound


def test_what_depends_on_it_waits_no_longer(governed: Governed) -> None:
    judged(governed)
    governed.git("switch", "--quiet", "main")
    policy = ".GOV/policy/policy.toml"
    governed.replace(policy, '["VALIDATED", "MERGE_PENDING", "MERGED"]', '["VALIDATED"]')
    governed.activate(OTHER, depends=NAME)
    governed.commit("activated")
    claim = ("claim", OTHER, "--as", "poet", "--branch", f"wp/{OTHER}")
    assert governed(*claim).codes == ["dependency_unmet"]
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.git("merge", "--quiet", "-X", "theirs", "main")
    governed.done("board", "sync")
    governed.commit("synced")
    governed.git("switch", "--quiet", "main")
    land(governed)
    assert OTHER in governed.done("next").out
    governed.done(*claim)
    governed.commit("claimed")
    governed.done("check", "--base", "HEAD~1")


@pytest.mark.parametrize("policy", [GATE_ON_MERGED, STAGING])
def test_where_a_gate_or_a_lane_lies_behind_it_the_command_is_needed(governed: Governed, policy: str) -> None:
    judged(governed, policy)
    land(governed)
    assert lanes(governed) == ("MERGE_PENDING",) * 3


def test_what_came_along_without_a_packet_leaves_it_to_a_person(governed: Governed) -> None:
    judged(governed)
    governed.write("lib/evil.py", "1\n")
    governed.commit("evil")
    land(governed)
    assert lanes(governed) == ("MERGE_PENDING",) * 3


def test_a_verdict_that_is_there_before_its_work_leaves_it_to_a_person(governed: Governed) -> None:
    judged(governed)
    governed.git("switch", "--quiet", "main")
    governed.git("checkout", f"wp/{NAME}", "--", ".GOV", "docs/report.md")
    governed.commit("verdict only")
    land(governed)
    assert lanes(governed) == ("MERGE_PENDING",) * 3
    governed.done("merged", NAME)
    assert governed.state(NAME).lane == "VALIDATED"
