"""Two branches merged by git itself: no conflict on the board, nothing of the log lost, one command puts it right."""

from __future__ import annotations

from lifecycle.governed import Governed

FIRST, SECOND, THIRD = "WP-1-Greeting-v1", "WP-1-Song-v1", "WP-1-Dance-v1"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"


def test_neighbours_moved_on_two_branches_merge_and_are_drawn_anew(governed: Governed) -> None:
    governed.begin()
    for name in (FIRST, SECOND, THIRD):
        governed.activate(name)
    governed.commit("three packets")
    governed.git("switch", "--quiet", "--create", "one")
    governed.done("block", FIRST, "--reason", "no water", "--until", "rain")
    governed.done("claim", THIRD, "--as", "first")
    governed.commit("one")
    governed.git("switch", "--quiet", "--create", "two", "main")
    governed.done("claim", SECOND, "--as", "second")
    governed.commit("two")
    governed.git("merge", "--quiet", "--message", "merged", "one")
    governed.done("board", "sync")
    lanes = {FIRST: "BLOCKED", SECOND: "IN_PROGRESS", THIRD: "IN_PROGRESS"}
    assert {name: governed.state(name).lane for name in lanes} == lanes
    for name, lane in lanes.items():
        assert governed.read(BOARD).count(f"**[{name}]** - [{lane}]") == 1
        assert governed.read(BOARD).count(name) == 1
        assert len([line for line in governed.read(REGISTRY).splitlines() if f": {name} |" in line]) == 1
    governed.done("check", "--fail-on", "warning")


def test_the_same_packet_claimed_on_two_branches_is_forked_and_can_be_settled(governed: Governed) -> None:
    governed.begin()
    governed.activate(FIRST)
    governed.commit("a packet")
    for branch in ("one", "two"):
        governed.git("switch", "--quiet", "--create", branch, "main")
        governed.done("claim", FIRST, "--as", branch)
        governed.commit(branch)
    governed.git("merge", "--quiet", "--message", "merged", "one")
    assert governed.state(FIRST).forked
    assert governed.refused("release", FIRST, "--reason", "x") == ["packet_is_forked"]
    assert "packet_forked" in governed("check").out
    governed.done("resolve", FIRST, "--lane", "IN_PROGRESS", "--reason", "one began first")
    governed.done("check", "--fail-on", "error")
    assert governed.state(FIRST).lane == "IN_PROGRESS"


def test_line_ends_of_the_log_are_left_alone_by_git(governed: Governed) -> None:
    governed.begin()
    governed.stub(FIRST)
    governed.commit("a stub")
    event = governed.state(FIRST).history[0]
    assert governed.git("check-attr", "text", event.path).endswith("text: unset")
