"""The gates that a policy adds to moves: shut without an approval of their own, opened by a real key, seen by check."""

from __future__ import annotations

import pytest

from lifecycle.governed import TOKENS_COUNT, Governed, forge, remembered
from lifecycle.signed import ALICE, GATES, MALLORY, NAME, VICTOR, Signed, codes_of
from lifecycle.world import adopted
from workpacket.documents.policy import PolicyDocument
from workpacket.lifecycle.gates import added_gates, bearing, moves_under
from workpacket.lifecycle.moves import Planned
from workpacket.lifecycle.policy import AddedGate, LifecyclePolicy, lifecycle_policy
from workpacket.lifecycle.side_moves import block
from workpacket.lifecycle.transitions import TRANSITIONS, transition
from workpacket.model.canonical import Json
from workpacket.model.lanes import BUILT_IN
from workpacket.model.layout import POLICY_PATH
from workpacket.shell.package_files import schemas
from workpacket.text.source import Plain, Source
from workpacket.value import replace

BOARD = ".GOV/roles_shared/TASK_BOARD.md"
PASS = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
# The command that makes each move, the lane that it begins in.
TYPED: dict[str, tuple[str, tuple[str, ...]]] = {
    "claim": ("READY_FOR_DEV", ("claim", NAME, "--as", "coder", "--branch", "work")),
    "release": ("IN_PROGRESS", ("release", NAME, "--as", "coder", "--reason", "x")),
    "handover": ("IN_PROGRESS", ("handover", NAME, "--to", "other", "--as", "coder", "--reason", "x")),
    "submit": ("IN_PROGRESS", ("submit", NAME, "--as", "coder", "--prove", "all=true")),
    "verdict CHANGES": ("IN_REVIEW", ("verdict", NAME, "CHANGES", "--reference", "x", "--as", "judge")),
    "verdict PASS": ("IN_REVIEW", PASS),
    "verdict FAIL": ("IN_REVIEW", (*PASS[:2], "FAIL", *PASS[3:])),
    "verdict OUTDATED_ONLY": (
        "IN_REVIEW",
        ("verdict", NAME, "OUTDATED_ONLY", "--report", "report.md", "--as", "judge"),
    ),
    "merged": ("MERGE_PENDING", ("merged", NAME)),
    "reopen": ("MERGE_PENDING", ("reopen", NAME, "--reason", "x")),
    "block": ("IN_PROGRESS", ("block", NAME, "--reason", "x", "--until", "y")),
    "unblock": ("BLOCKED", ("unblock", NAME)),
}


def gate(on: str) -> str:
    return f'\n[lifecycle.gates.security]\non = "{on}"\n'


RULES = """
[approvals.gates.security]
roles = ["approver"]
threshold = 1
separation = []
"""


@remembered
def standing_in(governed: Governed, lane: str, policy: str) -> None:
    governed.begin(policy=policy + TOKENS_COUNT + RULES)
    governed.activate(NAME)
    if lane == "READY_FOR_DEV":
        return
    governed.work(NAME)
    if lane == "BLOCKED":
        governed.done("block", NAME, "--reason", "x", "--until", "y")
    if lane in {"IN_REVIEW", "MERGE_PENDING"}:
        governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
        governed.write("report.md", "Good.\n")
        governed.commit("submitted")
    if lane == "MERGE_PENDING":
        governed.done(*PASS)
        governed.commit("judged")
        governed.git("switch", "--quiet", "main")
        governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")


def test_every_move_that_begins_with_a_packet_can_bear_a_gate() -> None:
    assert [row.typed for row in bearing(TRANSITIONS)] == list(TYPED), (
        "say in TYPED, above, from which lane and how it is typed"
    )
    without = {row.command for row in TRANSITIONS if row not in bearing(TRANSITIONS)}
    assert without == {"new", "activate", "supersede", "abandon"}


def test_the_schema_names_these_moves() -> None:
    accepted = [typed for typed in [row.typed for row in TRANSITIONS] + ["elsewhere", ""] if not faults(typed)]
    assert accepted == list(TYPED), "run `just reference`"


def faults(on: str) -> list[str]:
    policy: Plain = {"lifecycle": {"gates": {"security": {"on": on}}}}
    return [violation.code for violation in schemas().violations("policy", policy)]


@pytest.mark.parametrize("on", TYPED)
def test_a_gate_shuts_the_move_that_it_lies_on_whatever_the_command(governed: Governed, on: str) -> None:
    lane, words = TYPED[on]
    standing_in(governed, lane, gate(on))
    assert governed.refused(*words) == ["approval_missing"]
    (unmet,) = governed.json(*words)["data"]["unmet"]
    assert unmet["command"] == f"workpacket approve {NAME} --gate security"
    assert governed.state(NAME).lane == lane


def test_a_gate_lies_on_one_move_and_on_no_other() -> None:
    policy = LifecyclePolicy(gates=(AddedGate("security", "verdict PASS"),))
    shut = [row.typed for row in TRANSITIONS if added_gates(policy, row.event, row.choice)]
    assert shut == ["verdict PASS"]


def test_a_gate_on_no_move_that_there_is_lies_on_all() -> None:
    source = Source(POLICY_PATH, '[lifecycle.gates.security]\non = "merge"\n\n[lifecycle.gates.other]\n')
    policy = lifecycle_policy(PolicyDocument(source).root, source)
    for added in policy.gates:
        assert moves_under(added.on, BUILT_IN) == bearing(TRANSITIONS)
    assert added_gates(policy, "merged") == ("security", "other")
    assert transition("activate") not in moves_under("activate", BUILT_IN)


def test_a_word_on_the_board_does_not_pass_an_added_gate(governed: Governed) -> None:
    standing_in(governed, "READY_FOR_DEV", gate("block"))
    governed.replace(BOARD, "[READY_FOR_DEV]", "[BLOCKED] - no water")
    result = governed("board", "sync", "--adopt")
    assert (result.status, result.codes) == (3, ["approval_missing"])
    assert governed.state(NAME).lane == "READY_FOR_DEV"


def test_a_gate_that_nobody_has_asked_about_is_shut() -> None:
    facts = replace(adopted({NAME: "READY_FOR_DEV"}).facts(), policy=LifecyclePolicy(gates=(AddedGate("x", "block"),)))
    answer = block(facts, facts.packets[NAME], reason="x", until="y")
    assert not isinstance(answer, Planned)
    assert [unmet.code for unmet in answer] == ["hand_edit_not_adoptable"]


def test_a_gate_without_rules_stays_shut(governed: Governed) -> None:
    governed.begin(policy=gate("claim") + TOKENS_COUNT)
    governed.activate(NAME)
    assert governed.refused(*TYPED["claim"][1]) == ["gate_without_policy"]


def test_policy_show_tells_the_added_gates_and_where_they_stand(governed: Governed) -> None:
    governed.begin(policy=gate("merged") + TOKENS_COUNT + RULES)
    shown = governed.json("policy", "show")["data"]
    assert shown["values"]["gates"] == ["security: merged"]
    assert shown["origins"]["gates"].startswith(".GOV/policy/policy.toml:")
    assert "security: merged" in governed.done("policy", "show").out


def pending(signed: Signed, on: str = "merged") -> None:
    """Judged and merged; only `merged` is still to be typed, and an operator has to say yes at the gate `security`."""
    signed.begin(gates={**GATES, "security": "operator"}, more=gate(on))
    signed.submitted()


def accepted(signed: Signed) -> None:
    governed = signed.governed
    signed.approve("verdict", VICTOR, verdict="PASS")
    governed.done(*PASS)
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")


def test_a_real_key_opens_an_added_gate_and_stands_in_the_event(signed: Signed) -> None:
    governed = signed.governed
    pending(signed)
    accepted(signed)
    assert governed.refused("merged", NAME) == ["approval_missing"]
    assert governed.done("why", NAME).next == f"workpacket approve {NAME} --gate security"
    signed.forged(signed.draft("security", VICTOR), MALLORY)
    assert "signer_unknown" in governed.refused("merged", NAME)
    envelope = signed.approve("security", VICTOR)
    governed.done("merged", NAME)
    assert governed.state(NAME).lane == "VALIDATED"
    assert governed.state(NAME).history[-1].attest == (envelope,)


def test_check_finds_nothing_against_an_event_that_passed_two_gates(signed: Signed) -> None:
    governed = signed.governed
    pending(signed, "verdict PASS")
    right = signed.approve("verdict", VICTOR, verdict="PASS")
    assert governed.refused(*PASS) == ["approval_missing"]
    other = signed.approve("security", VICTOR)
    governed.done(*PASS)
    assert governed.state(NAME).history[-1].attest == tuple(sorted((right, other)))
    assert codes_of(governed, "--base", "main", "--uncommitted") == set()
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")
    signed.wait(days=400)
    assert codes_of(governed) == set()


def test_a_yes_at_another_gate_opens_none(signed: Signed) -> None:
    pending(signed, "verdict PASS")
    signed.approve("verdict", VICTOR, verdict="PASS")
    signed.approve("waiver", ALICE, rule="dependency_unmet", until="2026-03-10T23:59:59Z", reason="x")
    assert signed.governed.refused(*PASS) == ["approval_missing"]


def test_what_was_approved_before_the_packet_moved_opens_nothing(signed: Signed) -> None:
    pending(signed)
    signed.approve("security", VICTOR)
    accepted(signed)
    assert "log_moved" in signed.governed.refused("merged", NAME)


def forged_verdict(signed: Signed, attest: tuple[str, ...]) -> None:
    governed = signed.governed
    lanes: dict[str, Json] = {"lane_from": "IN_REVIEW", "lane_to": "MERGE_PENDING"}
    forge(governed, NAME, "verdict.given", {**lanes, "verdict": "PASS"}, attest)


def test_a_forged_move_past_an_added_gate_is_seen(signed: Signed) -> None:
    pending(signed, "verdict PASS")
    forged_verdict(signed, (signed.approve("verdict", VICTOR, verdict="PASS"),))
    assert "approval_missing" in codes_of(signed.governed)
    assert "approval_missing" in codes_of(signed.governed, "--base", "main", "--uncommitted")


def test_a_policy_that_comes_with_the_change_takes_no_gate_away(signed: Signed) -> None:
    pending(signed, "verdict PASS")
    governed = signed.governed
    governed.replace(POLICY_PATH, gate("verdict PASS"), "\n")
    governed.commit("no gate any more")
    signed.approve("verdict", VICTOR, verdict="PASS")
    assert governed.refused(*PASS) == ["approval_missing"]


def test_a_gate_that_was_taken_away_leaves_no_fault_behind(signed: Signed) -> None:
    pending(signed, "verdict PASS")
    governed = signed.governed
    signed.approve("verdict", VICTOR, verdict="PASS")
    signed.approve("security", VICTOR)
    governed.done(*PASS)
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.replace(POLICY_PATH, gate("verdict PASS"), "\n")
    signed.approve("policy", VICTOR, name="policy")
    governed.commit("no gate any more")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.git("merge", "--quiet", "--message", "merged", "main")
    assert not {"attest_unfit", "nonce_used"} & codes_of(governed, "--base", "main", "--uncommitted")


def test_an_event_that_asks_for_no_gate_uses_up_no_approval(signed: Signed) -> None:
    """Else anybody who can write an event could void what others have approved."""
    pending(signed, "verdict PASS")
    governed = signed.governed
    security = signed.approve("security", VICTOR)
    lanes: dict[str, Json] = {"lane_from": "IN_REVIEW", "lane_to": "BLOCKED"}
    forge(governed, NAME, "blocked", {**lanes, "reason": "x", "until": "y"}, (security,))
    governed.done("packet", "unblock", NAME)
    signed.approve("verdict", VICTOR, verdict="PASS")
    refused = governed.refused(*PASS)
    assert "nonce_used" not in refused
    # It is stale all the same: the packet was moved behind its back.
    assert "log_moved" in refused
