"""Commands that look, and those that begin or repair: adopt, show, history, board, registry, policy, recover."""

from __future__ import annotations

import re

import pytest

from cli.commands import STUB, STUB_PATH
from lifecycle.governed import Governed
from lifecycle.world import packet_text

NAME = "WP-1-Greeting-v1"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"


def found(governed: Governed, *, board: str, packet: str) -> None:
    """A repository that was governed without a log."""
    governed.done("init")
    governed.write(f".GOV/task_packets/{NAME}.md", packet_text(NAME, packet).decode())
    governed.replace(BOARD, "## In Progress\n", f"## In Progress\n- **[{NAME}]** - [{board}]\n")


def test_adopting_believes_what_all_documents_say_and_rewrites_none(governed: Governed) -> None:
    found(governed, board="IN_PROGRESS", packet="In Progress")
    before = governed.files()
    governed.done("adopt")
    assert governed.state(NAME).lane == "IN_PROGRESS"
    assert {path: data for path, data in governed.files().items() if not path.startswith(".GOV/log/")} == before
    assert governed.json("adopt")["data"]["adopted"] == []


def test_adopting_leaves_contradictions_to_a_person(governed: Governed) -> None:
    found(governed, board="IN_PROGRESS", packet="Ready for Dev")
    answer = governed.json("adopt")["data"]
    assert answer["adopted"] == []
    assert len(answer["contradictions"]) == 1
    assert BOARD in answer["contradictions"][0]
    governed.done("adopt", "--prefer", "packet")
    assert governed.state(NAME).lane == "READY_FOR_DEV"
    assert governed.state(NAME).history[0].data["contradictions"]


@pytest.mark.parametrize(("status", "said"), [("", "names no lane"), ("Done", "says 'Done'")])
def test_what_was_preferred_in_vain_is_not_proposed_again(governed: Governed, status: str, said: str) -> None:
    found(governed, board="IN_PROGRESS", packet=status)
    board, packet = "workpacket adopt --prefer board", "workpacket adopt --prefer packet"
    assert f"next: {board} or {packet}\n" in governed.done("adopt").out
    again = governed.done("adopt", "--prefer", "packet").out
    assert said in again
    assert f"next: {board}\n" in again
    governed.done("adopt", "--prefer", "board")
    assert governed.state(NAME).lane == "IN_PROGRESS"


def test_what_has_only_a_stub_is_not_adopted_as_work(governed: Governed) -> None:
    governed.done("init")
    governed.write(STUB_PATH, STUB)
    governed.replace(BOARD, "## In Progress\n", "## In Progress\n- **[WP-1-Parser-v1]** - [VALIDATED]\n")
    said = governed.done("adopt", "--prefer", "board").out
    assert "0 packets adopted, 1 contradict themselves" in said
    assert "next: workpacket adopt --prefer packet\n" in said
    governed.done("adopt", "--prefer", "packet")
    assert governed.state("WP-1-Parser-v1").lane == "STUB"


@pytest.mark.parametrize(("board", "lane"), [("FAIL", "FAIL"), ("VALIDATED", "VALIDATED")])
def test_done_means_what_the_board_says_more_exactly(governed: Governed, board: str, lane: str) -> None:
    found(governed, board=board, packet="Done")
    governed.done("adopt")
    assert governed.state(NAME).lane == lane


def test_the_past_can_be_shown_by_day_event_and_revision(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.commit("a stub")
    first = governed.state(NAME).history[0]
    governed.clock.turn(days=2)
    governed.done("packet", "abandon", NAME, "--reason", "x")
    assert governed.json("show", NAME)["data"]["lane"] == "ABANDONED"
    for at in (first.id[:12], "2026-03-01", "main"):
        assert governed.json("show", NAME, "--at", at)["data"]["lane"] == "STUB", at
    assert governed.json("board", "show", "--at", "2026-03-01")["data"]["lanes"] == {NAME: "STUB"}
    assert [event["type"] for event in governed.json("log", "show", NAME)["data"]["events"]] == ["created", "abandoned"]


def test_a_board_that_lost_a_section_gets_it_back_and_keeps_the_words_of_its_owner(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.replace(BOARD, "## In Review\n\n", "")
    governed.replace(BOARD, "# Task Board\n", "# Task Board\n\nOurs since March.\n")
    governed.activate("WP-1-Song-v1")
    governed.work("WP-1-Song-v1")
    result = governed("submit", "WP-1-Song-v1", "--as", "coder", "--prove", "all=true")
    assert (result.status, "board_section_absent" in result.err) == (3, True)
    governed.done("board", "sync")
    assert "## In Review\n" in governed.read(BOARD)
    assert "Ours since March." in governed.read(BOARD)


def test_moving_an_entry_touches_one_line_and_leaves_no_hole(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.stub("WP-1-Song-v1")
    before = governed.read(BOARD).splitlines()
    governed.done("packet", "abandon", "WP-1-Song-v1", "--reason", "x")
    after = governed.read(BOARD).splitlines()
    assert [line for line in before if "Song" not in line] == [line for line in after if "Song" not in line]


def test_the_registry_is_drawn_from_the_log(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    path = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
    right = governed.read(path)
    governed.write(path, right.replace("Ready for Dev:", "Blocked:"))
    governed.done("board", "registry", "sync")
    assert governed.read(path) == right
    assert governed.json("board", "registry", "show")["data"]["bases"][0]["id"] == NAME


def test_the_policy_says_where_each_value_comes_from(governed: Governed) -> None:
    governed.done("init")
    assert governed.json("policy", "show")["data"]["anchored"] is False
    governed.commit("Governance")
    data = governed.json("policy", "show")["data"]
    assert data["anchored"] is True
    assert data["origins"]["target_branch"] == "default"
    assert data["origins"]["lease_hours"].startswith(".GOV/policy/policy.toml:")
    governed.replace(".GOV/policy/policy.toml", "lease_hours = 72", 'lease_hours = "long"')
    assert governed("policy", "test").status == 1


def test_nothing_to_recover_is_said_so(governed: Governed) -> None:
    governed.begin()
    assert "nothing is unfinished" in governed.done("log", "recover").out


def test_an_empty_repository_is_told_how_to_begin(governed: Governed) -> None:
    assert governed.done("status").next == "workpacket help init"


def test_a_new_stub_can_be_made_from_another_one_and_from_an_issue(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.done("new", "--next", "WP-1-Greeting", "--from", NAME)
    assert "- The name is printed." in governed.read(".GOV/task_packets/stubs/WP-1-Greeting-v2.md")
    governed.write("issue.md", "# Sing\n\nPeople asked for it.\n\n- [ ] It sings.\n- In tune.\n")
    governed.done("new", "WP-1-Song-v1", "--from", "issue.md", "--roadmap", "SPEC_v1 2")
    text = governed.read(".GOV/task_packets/stubs/WP-1-Song-v1.md")
    assert "- ROADMAP_POINTER: SPEC_v1 2\n" in text
    assert "- What: Sing\n- Why: People asked for it." in text
    assert "- It sings.\n- In tune." in text


def test_two_revisions_share_one_row_and_the_one_in_force_has_it(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("new", "--next", "WP-1-Greeting")
    rows = [
        line for line in governed.read(".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md").splitlines() if "WP-1" in line
    ]
    assert len(rows) == 1
    assert f"Ready for Dev: {NAME}" in rows[0]


def test_a_row_is_left_alone_as_long_as_a_revision_has_no_log(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    later = "WP-1-Greeting-v2"
    governed.write(f".GOV/task_packets/{later}.md", packet_text(later, "In Progress").decode())
    path = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
    governed.write(path, governed.read(path).replace(f"packets/{NAME}.md |", f"packets/{later}.md |"))
    before = governed.read(path)
    governed.done("board", "registry", "sync")
    assert governed.read(path) == before


def test_status_says_what_waits_for_a_person_and_since_when(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME)
    governed.write("src/a.py", "1\n")
    governed.commit("work")
    governed.done("block", NAME, "--as", "coder", "--reason", "no test data", "--until", "the customer answers")
    shown = governed.done("status").out
    waits = rf"(?m)^blocked: {NAME} for 0 minutes: no test data / until: the customer answers \(.+\)$"
    assert re.search(waits, shown)
    governed.done("packet", "unblock", NAME, "--as", "coder", "--reason", "they did")
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    assert re.search(
        rf"(?m)^needs a verdict: {NAME} for 0 minutes: submitted by coder \(.+\)$", governed.done("status").out
    )
    assert [one["for"] for one in governed.json("status")["data"]["waiting"]] == ["needs a verdict"]


def test_what_only_another_branch_has_is_named_with_the_branch(governed: Governed) -> None:
    governed.begin()
    governed.git("switch", "-q", "-c", "side")
    for title in ("Six", "Five", "Four", "Three", "Two", "One"):
        governed.done("new", title)
    governed.commit("New")
    governed.git("switch", "-q", "main")
    assert (
        "\non other branches: 6 packets: WP-1-Five-v1 (side), WP-1-Four-v1 (side), "
        in "\n" + governed.done("status").out
    )
    assert " and 1 more\n" in governed.done("status").out
    listed = governed.json("status")["data"]["elsewhere"]
    assert len(listed) == 6
    assert {one["branch"] for one in listed} == {"side"}
    shown = governed("show", "WP-1-One-v1")
    assert (shown.status, shown.codes) == (2, ["packet_unknown"])
    assert "git switch side" in shown.err
    governed.git("merge", "-q", "--squash", "side")
    assert governed.json("status")["data"]["elsewhere"] == []


def test_a_packet_that_another_branch_has_moved_on_is_named_with_the_branch(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    assert governed.json("status")["data"]["elsewhere"] == []
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")
    assert governed.json("status")["data"]["elsewhere"] == []
    governed.git("switch", "-q", "main")
    assert governed.json("status")["data"]["elsewhere"] == [{"id": NAME, "branch": f"wp/{NAME}"}]


def test_starting_a_stub_asks_for_what_activation_left_open(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    governed.commit("Approved")
    then = governed.json("start", NAME)["data"]["next"]
    assert then.startswith(f"fill in SEARCH_TERMS in .GOV/task_packets/{NAME}.md, then: do the work")
