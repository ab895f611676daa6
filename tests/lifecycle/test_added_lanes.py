"""The lanes that a policy adds: a packet goes the whole way through them, and nothing gets around one."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.governed import QA, STAGING, TOKENS_COUNT, Governed, forge, remembered
from lifecycle.signed import MALLORY, NAME, PACKET, VICTOR, Signed, codes_of
from lifecycle.world import ADDED, table_faults
from workpacket.lifecycle.policy import added_lanes
from workpacket.lifecycle.transitions import transitions
from workpacket.model.canonical import Json
from workpacket.model.lanes import BUILT_IN, WAY, AddedLane
from workpacket.model.layout import POLICY_PATH
from workpacket.shell.base import lifecycle_of
from workpacket.shell.cache import Cache
from workpacket.shell.checking import known_or_examined
from workpacket.shell.tree import find_documents

BOARD = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
PASS = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")


@remembered
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
    assert (lane(governed), judged.next) == ("QA", f"workpacket packet advance {NAME}")
    assert f"## Quality Assurance\n- **[{NAME}]** - [QA]\n" in governed.read(BOARD)
    assert f"Quality Assurance: {NAME}" in governed.read(REGISTRY)
    assert "**Status:** QA" in governed.read(PACKET)
    governed.commit("judged")
    assert codes_of(governed, "--base", "main", "--uncommitted") == set()
    assert governed.done("why", NAME).next == f"workpacket packet advance {NAME}"
    assert governed.done("next").next == f"workpacket packet advance {NAME}"
    assert "[QA]" in governed.done("board", "show").out
    assert "     1  QA" in governed.done("status").out
    assert NAME in governed.done("list", "--lane", "qa").out
    assert governed.refused("merged", NAME) == ["wrong_lane"]
    advanced = governed.done("packet", "advance", NAME, "--to", "MERGE_PENDING")
    assert advanced.next == f"workpacket packet merged {NAME}"
    governed.commit("tried")
    merge(governed)
    staged = governed.done("merged", NAME)
    assert (lane(governed), staged.next) == ("STAGING", f"workpacket packet advance {NAME}")
    governed.done("packet", "advance", NAME, "--reason", "a week without a crash")
    assert lane(governed) == "VALIDATED"
    governed.commit("done")
    assert codes_of(governed, "--base", "HEAD~3", "--uncommitted") == set()
    assert [event.type for event in governed.state(NAME).history if event.moves_lane][-4:] == [
        "verdict.given",
        "advanced",
        "merged",
        "advanced",
    ]


def test_a_section_that_the_board_lacks_is_offered_and_then_added_alone(governed: Governed) -> None:
    submitted(governed, sections=False)
    assert codes_of(governed) == set()
    before = governed.read(BOARD)
    refused = governed(*PASS)
    assert refused.status == 3
    assert "the board has no 'Quality Assurance' section" in refused.err
    assert "workpacket board sync" in refused.err
    governed.done("board", "sync")
    assert governed.read(BOARD) == before.replace("## Done\n", "## Quality Assurance\n\n## Done\n")
    governed.done(*PASS)


def test_advance_is_for_added_lanes_and_comes_only_where_the_way_leads(governed: Governed) -> None:
    submitted(governed)
    refused = governed("packet", "advance", NAME)
    assert refused.codes == ["wrong_lane"]
    assert "advance applies only in QA" in refused.err
    assert refused.next == f"workpacket verdict {NAME} PASS --report FILE"
    governed.done(*PASS)
    assert governed.refused("packet", "advance", NAME, "--to", "VALIDATED") == ["advance_elsewhere"]
    assert governed.refused("submit", NAME, "--as", "coder") == ["wrong_lane"]


def test_without_added_lanes_advance_says_what_leaves_the_lane(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    refused = governed("packet", "advance", NAME)
    assert (refused.status, refused.codes) == (3, ["wrong_lane"])
    assert "the policy does not add any lanes. Possible now: claim" in refused.err


def test_blocked_in_an_added_lane_it_returns_there_and_reopened_it_is_in_progress(governed: Governed) -> None:
    submitted(governed)
    governed.done(*PASS)
    governed.done("block", NAME, "--reason", "no machine", "--until", "Monday")
    governed.done("packet", "unblock", NAME)
    assert lane(governed) == "QA"
    governed.done("packet", "reopen", NAME, "--reason", "it crashes")
    assert lane(governed) == "IN_PROGRESS"
    governed.commit("back")
    assert codes_of(governed, "--base", "main", "--uncommitted") == set()


def test_a_hand_edit_out_of_an_added_lane_is_taken_over_as_a_move(governed: Governed) -> None:
    submitted(governed)
    governed.done(*PASS)
    governed.replace(BOARD, "[QA]", "[MERGE_PENDING]")
    assert "board_drift" in codes_of(governed)
    governed.done("board", "sync", "--adopt")
    assert governed.state(NAME).history[-1].type == "advanced"
    assert f"## In Review\n- **[{NAME}]** - [MERGE_PENDING]\n" in governed.read(BOARD)


LEFT_OUT: dict[str, tuple[str, dict[str, Json]]] = {
    "the verdict leads past the lane": (
        "verdict.given",
        {"lane_from": "IN_REVIEW", "lane_to": "MERGE_PENDING", "verdict": "PASS"},
    ),
    "advance leads past two lanes": ("advanced", {"lane_from": "IN_REVIEW", "lane_to": "MERGE_PENDING"}),
    "advance leads to the end": ("advanced", {"lane_from": "IN_REVIEW", "lane_to": "VALIDATED"}),
    "advance comes from a lane of another policy": ("advanced", {"lane_from": "UAT", "lane_to": "MERGE_PENDING"}),
}


@pytest.mark.parametrize("how", LEFT_OUT)
def test_a_shortcut_around_an_added_lane_is_refused_by_the_policy_of_the_base(how: str, governed: Governed) -> None:
    submitted(governed)
    forge(governed, NAME, *LEFT_OUT[how])
    checked = governed("check", "--base", "main").out
    assert "move_illegal" in checked
    assert how != "the verdict leads past the lane" or "not a valid transition: it leaves out QA" in checked


def test_a_policy_that_comes_with_the_change_takes_no_lane_away(governed: Governed) -> None:
    submitted(governed)
    governed.replace(POLICY_PATH, QA, "\n")
    governed.commit("no lane any more")
    governed.done(*PASS)
    assert lane(governed) == "QA"
    forge(governed, NAME, "verdict.given", {"lane_from": "QA", "lane_to": "MERGE_PENDING", "verdict": "PASS"})
    assert "move_illegal" in codes_of(governed, "--base", "main", "--uncommitted")


def test_a_lane_that_comes_with_the_change_is_not_in_force(governed: Governed) -> None:
    submitted(governed, "")
    governed.write(POLICY_PATH, governed.read(POLICY_PATH) + QA)
    governed.commit("a lane of ours")
    governed.done(*PASS)
    assert lane(governed) == "MERGE_PENDING"


def stranded(governed: Governed) -> None:
    """A packet in a lane that the policy, on the base too, has no more."""
    submitted(governed)
    governed.done(*PASS)
    governed.commit("judged")
    merge(governed)
    governed.replace(POLICY_PATH, QA, "\n")
    governed.commit("QA is taken out")


def test_a_packet_in_a_lane_that_was_taken_out_is_named_and_never_lost(governed: Governed) -> None:
    stranded(governed)
    assert "lane_not_in_policy" in codes_of(governed)
    assert governed.refused("packet", "advance", NAME) == ["lane_not_in_policy"]
    assert governed.refused("merged", NAME) == ["lane_not_in_policy"]
    assert "restore [lifecycle.lanes.QA]" in governed.done("why", NAME).next
    assert f"## Not in the policy\n- **[{NAME}]** - [QA]" in governed.done("board", "show").out
    assert "     1  QA" in governed.done("status").out
    for words in (["next"], ["list"], ["show", NAME], ["log", "show", NAME], ["audit"], ["board", "export"]):
        assert governed(*words).status in {0, 1, 5}, words
    before = governed.read(BOARD), governed.read(REGISTRY)
    assert f"left unchanged: {NAME} is in QA" in governed.done("board", "sync").out
    assert (governed.read(BOARD), governed.read(REGISTRY)) == before


def test_with_the_lane_put_back_the_packet_goes_on(governed: Governed) -> None:
    stranded(governed)
    governed.write(POLICY_PATH, governed.read(POLICY_PATH) + QA)
    governed.commit("QA is back")
    governed.done("packet", "advance", NAME)
    governed.done("merged", NAME)
    governed.replace(POLICY_PATH, QA, "\n")
    governed.commit("QA is taken out")
    assert "info  lane_retired  a move leads to QA" in governed("check").out


BROKEN = {
    "a neighbour that is no lane": QA.replace("IN_REVIEW", "REVIEWED"),
    "no table": "\n[lifecycle]\nlanes = 3\n",
    "no TOML": "\n[lifecycle.lanes.QA\n",
}


@pytest.mark.parametrize("lanes", BROKEN.values(), ids=BROKEN)
def test_with_lanes_that_do_not_hold_nothing_moves_and_nothing_is_believed(lanes: str, governed: Governed) -> None:
    submitted(governed, "")
    text = governed.read(POLICY_PATH)
    broken = text.replace("[lifecycle]\n", lanes) if "[lifecycle]\n" in lanes else text + lanes
    governed.git("switch", "--quiet", "main")
    governed.write(POLICY_PATH, broken)
    governed.commit("a slip of the pen")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    result = governed(*PASS)
    assert (result.status, "lanes_unfit" in result.err) == (3, True)
    assert "until this is fixed, no packet can move" in governed.done("policy", "show").out
    assert lane(governed) == "IN_REVIEW"
    forge(governed, NAME, "verdict.given", {"lane_from": "IN_REVIEW", "lane_to": "MERGE_PENDING", "verdict": "PASS"})
    assert "base_lanes_unfit" in codes_of(governed, "--base", "main", "--uncommitted")


def test_policy_show_tells_the_way_and_where_it_comes_from(governed: Governed) -> None:
    governed.begin(policy=QA + STAGING + TOKENS_COUNT)
    shown = governed.json("policy", "show")["data"]
    assert shown["values"]["lanes"] == [
        "QA: after IN_REVIEW, before MERGE_PENDING",
        "STAGING: after MERGE_PENDING, before VALIDATED",
    ]
    assert shown["way"][3:] == ["IN_REVIEW", "QA", "MERGE_PENDING", "STAGING", "VALIDATED"]
    assert shown["origins"]["lanes"].startswith(f"{POLICY_PATH}:")
    out = governed.done("policy", "show").out
    assert "IN_REVIEW > QA > MERGE_PENDING > STAGING > VALIDATED" in out
    assert "testers try it on the staging machine; section Quality Assurance" in out
    assert "way out: anyone may advance it" in out
    governed.done("policy", "test")


def test_remembered_output_does_not_survive_a_change_of_lanes(governed: Governed) -> None:
    submitted(governed)
    governed.done(*PASS)
    at_rest(governed.root)
    for words in (["list", "--json"], ["check"], ["board", "show"]):
        assert governed(*words).out == governed(*words).out
    assert governed.json("list")["data"]["work"][0]["lanes"] == ["QA"]
    governed.replace(POLICY_PATH, QA, "\n")
    at_rest(governed.root)
    assert governed.json("list")["data"]["work"][0]["lanes"] == []
    assert {"lane_not_in_policy", "board_token_unknown"} <= codes_of(governed)


def at_rest(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        if ".git" not in path.parts:
            os.utime(path, (1_700_000_000, 1_700_000_000 + path.stat().st_size))


def test_what_was_found_in_a_file_is_kept_for_the_lanes_by_which_it_was_read(
    governed: Governed, tmp_path: Path
) -> None:
    governed.begin(policy=QA + TOKENS_COUNT)
    governed.activate(NAME)
    governed.replace(PACKET, "**Status:** Ready for Dev", "**Status:** QA")
    files = [found for found in find_documents(str(governed.root)) if found.kind == "packet"]
    lanes = lifecycle_of(governed.read(POLICY_PATH).encode()).lanes
    cache = Cache(str(tmp_path / "kept"), "x")
    for table, said in ((BUILT_IN, "[]"), (lanes, '["QA"]'), (BUILT_IN, "[]"), (lanes, '["QA"]')):
        (result,) = known_or_examined(str(governed.root), files, cache, lambda *_: None, table)
        assert f'"lanes":{said}' in result.summary
    cache.close()


def test_a_table_of_lanes_goes_to_other_processes_and_comes_back_the_same() -> None:
    assert ADDED.named("self test")[0].token == "SELF_TEST"
    again = pickle.loads(pickle.dumps(ADDED))
    assert (again, again.key, again.tokens) == (ADDED, ADDED.key, ADDED.tokens)
    assert [section.heading for section in again.sections][3:8] == [
        "In Progress",
        "Self Test",
        "In Review",
        "Quality",
        "Done",
    ]


def test_a_lane_beside_one_with_a_fault_is_not_in_force_either() -> None:
    """Or work would come to it that could not go on."""
    lanes = [
        AddedLane("QA", "IN_REVIEW", "UAT", "QA", "QA"),
        AddedLane("UAT", "QA", "MERGE_PENDING", "In Review", "UAT"),
        AddedLane("STAGING", "MERGE_PENDING", "VALIDATED", "Staging", "Staging"),
    ]
    table, faults = added_lanes(lanes)
    assert [fault.code for fault in faults] == ["lane_name_taken"]
    assert [lane.token for lane in table.added] == ["STAGING"]


NAMED = st.sampled_from(("QA", "UAT", "SOAK", "IN_REVIEW", "FOR_REVIEW", "qa", *WAY, "BLOCKED", "NOWHERE", ""))
DECLARED = st.lists(
    st.builds(AddedLane, NAMED, NAMED, NAMED, NAMED, NAMED), max_size=4, unique_by=lambda one: one.token
)


@given(DECLARED)
def test_whatever_is_declared_the_table_holds_together_or_says_what_is_wrong(declared: list[AddedLane]) -> None:
    table, faults = added_lanes(declared)
    assert list(table_faults(transitions(table), table)) == []
    assert {lane.token for lane in table.added} <= {lane.token for lane in declared} - {one.token for one in faults}
    if not faults:
        assert {lane.token for lane in table.added} == {lane.token for lane in declared}
    for lane in table.added:
        assert (table.way[table.way.index(lane.token) - 1], table.onward(lane.token)) == (lane.after, lane.before)
        assert [one.token for one in table.named(lane.title)] == [lane.token]


def in_qa(signed: Signed) -> None:
    """In a lane whose way out an operator has to open."""
    governed = signed.governed
    gate = '\n[lifecycle.gates.tested]\non = "advance QA"\n'
    gates = {"activation": "approver", "policy": "operator", "tested": "operator"}
    signed.begin(gates=gates, more=QA + gate)
    governed.done("board", "sync")
    governed.commit("sections")
    signed.submitted()
    governed.done(*PASS)
    governed.commit("judged")


def test_a_gate_on_the_way_out_of_an_added_lane_is_opened_by_a_real_key(signed: Signed) -> None:
    governed = signed.governed
    in_qa(signed)
    assert "way out: the gate tested" in governed.done("policy", "show").out
    assert governed.refused("packet", "advance", NAME) == ["approval_missing"]
    assert governed.done("why", NAME).next == f"workpacket approve {NAME} --gate tested"
    governed.replace(BOARD, "[QA]", "[MERGE_PENDING]")
    assert governed("board", "sync", "--adopt").codes == ["approval_missing"]
    governed.done("board", "sync")
    signed.forged(signed.draft("tested", VICTOR), MALLORY)
    assert "signer_unknown" in governed.refused("packet", "advance", NAME)
    envelope = signed.approve("tested", VICTOR)
    governed.done("packet", "advance", NAME)
    assert governed.state(NAME).history[-1].attest == (envelope,)
    assert codes_of(governed, "--base", "main", "--uncommitted") == set()


def test_a_forged_advance_past_its_gate_is_seen(signed: Signed) -> None:
    in_qa(signed)
    forge(signed.governed, NAME, "advanced", {"lane_from": "QA", "lane_to": "MERGE_PENDING"}, ())
    assert "approval_missing" in codes_of(signed.governed)
    assert "approval_missing" in codes_of(signed.governed, "--base", "main", "--uncommitted")
