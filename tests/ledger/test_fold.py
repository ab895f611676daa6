"""The state that a log folds to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.stories import ALL_TYPES, A, B, Story
from workpacket.ledger.fold import Assignment, PacketLease, PacketState, fold


def state(*kinds: str) -> PacketState:
    story = Story()
    story.tell(*kinds)
    return fold(story.read())


TO_PROGRESS = ("created", "activated", "claimed")


@pytest.mark.parametrize(
    ("kinds", "lane"),
    [
        (("created",), "STUB"),
        (("adopted",), "IN_PROGRESS"),
        (("created", "activated"), "READY_FOR_DEV"),
        (TO_PROGRESS, "IN_PROGRESS"),
        ((*TO_PROGRESS, "released"), "READY_FOR_DEV"),
        ((*TO_PROGRESS, "handed_over", "claimed"), "IN_PROGRESS"),
        ((*TO_PROGRESS, "submitted"), "IN_REVIEW"),
        ((*TO_PROGRESS, "submitted", "verdict.given"), "MERGE_PENDING"),
        ((*TO_PROGRESS, "submitted", "verdict.given", "merged"), "VALIDATED"),
        ((*TO_PROGRESS, "submitted", "verdict.given", "reopened"), "IN_PROGRESS"),
        ((*TO_PROGRESS, "blocked", "unblocked"), "IN_PROGRESS"),
        (("created", "activated", "superseded"), "SUPERSEDED"),
        (("created", "activated", "abandoned"), "ABANDONED"),
    ],
)
def test_the_lane_is_where_the_last_move_led(kinds: tuple[str, ...], lane: str) -> None:
    found = state(*kinds)
    assert (found.lane, found.forked, found.sound, found.findings) == (lane, False, True, ())
    assert [event.type for event in found.history] == list(kinds)
    assert len(found.heads) == 1


@pytest.mark.parametrize("kind", [kind for kind in ALL_TYPES if kind not in ("created", "adopted", "checkpoint")])
def test_what_does_not_move_the_lane_leaves_it(kind: str) -> None:
    story = Story()
    story.tell("created", "activated")
    moved = story.add(kind)
    assert fold(story.read()).lane == (moved.lane_to or "READY_FOR_DEV")


def test_an_empty_log_is_in_no_lane() -> None:
    found = fold(Story().read())
    assert (found.lane, found.came_from, found.heads, found.history) == ("", None, (), ())


def test_a_lane_that_a_policy_added_is_taken_from_the_event() -> None:
    story = Story()
    story.tell("created", "activated")
    story.add("claimed", lane_to="SECURITY_REVIEW")
    assert fold(story.read()).lane == "SECURITY_REVIEW"


def test_a_blocked_packet_knows_where_it_came_from() -> None:
    story = Story()
    story.tell("created", "activated")
    assert fold(story.read()).came_from is None
    story.add("blocked", lane_from="READY_FOR_DEV")
    assert fold(story.read()).came_from == "READY_FOR_DEV"
    story.add("waived")
    assert fold(story.read()).came_from == "READY_FOR_DEV"
    story.add("unblocked", lane_to="READY_FOR_DEV")
    assert fold(story.read()).came_from is None


def test_a_packet_adopted_as_blocked_says_where_it_came_from() -> None:
    story = Story()
    story.add("adopted", lane_to="BLOCKED", came_from="IN_REVIEW", holder="bob", branch="b")
    found = fold(story.read())
    assert (found.came_from, found.lease) == ("IN_REVIEW", PacketLease("bob", "", ""))
    assert found.assignment.branch == "b"


def test_a_move_out_of_another_lane_is_a_gap() -> None:
    found = state("created", "claimed")
    (finding,) = found.findings
    assert finding.code == "log_lane_gap"
    assert finding.message == "claimed leaves READY_FOR_DEV, but the packet was in STUB"
    assert found.lane == "IN_PROGRESS"
    assert not found.sound


def test_a_claim_gives_a_lease_and_a_renewal_prolongs_it() -> None:
    story = Story()
    story.tell("created", "activated")
    story.add("claimed", branch="work", worktree="../work")
    assert fold(story.read()).lease == PacketLease("bob", "lease-1", "2026-12-31T00:00:00Z")
    assert fold(story.read()).assignment == Assignment(branch="work", worktree="../work")
    story.add("lease.renewed", expires_at="2027-01-31T00:00:00Z")
    assert fold(story.read()).lease == PacketLease("bob", "lease-1", "2027-01-31T00:00:00Z")
    story.add("lease.renewed", lease="another", expires_at="2028-01-31T00:00:00Z")
    assert fold(story.read()).lease == PacketLease("bob", "lease-1", "2027-01-31T00:00:00Z")


@pytest.mark.parametrize(
    ("kind", "changes", "held"),
    [
        ("released", {}, False),
        ("handed_over", {}, False),
        ("abandoned", {}, False),
        ("superseded", {}, False),
        ("merged", {}, False),
        ("verdict.given", {"verdict": "FAIL"}, False),
        ("verdict.given", {"verdict": "OUTDATED_ONLY"}, False),
        ("verdict.given", {"verdict": "PASS"}, True),
        ("verdict.given", {"verdict": "CHANGES"}, True),
        ("submitted", {}, True),
        ("blocked", {}, True),
        ("reopened", {}, True),
    ],
)
def test_a_lease_ends_when_nobody_can_go_on(kind: str, changes: dict[str, Any], held: bool) -> None:
    story = Story()
    story.tell(*TO_PROGRESS)
    story.add(kind, **changes)
    found = fold(story.log())
    assert (found.lease is not None) == held
    assert found.holders == ("bob",)


def test_a_renewal_after_the_lease_ended_renews_nothing() -> None:
    assert state(*TO_PROGRESS, "released", "lease.renewed").lease is None


def test_an_assignment_is_prepared_and_handed_over() -> None:
    story = Story()
    story.tell("created", "activated")
    story.add("prepared", worktree="../tree", base_packet="WP-1-Stove-v1")
    assert fold(story.read()).assignment == Assignment("bob", "work", "../tree", "d" * 40, "WP-1-Stove-v1")
    story.tell("claimed", "handed_over")
    assert fold(story.read()).assignment == Assignment("cem", "work", "../tree", "d" * 40, "WP-1-Stove-v1")


def test_all_holders_are_remembered_so_that_none_of_them_judges() -> None:
    story = Story()
    story.tell(*TO_PROGRESS, "released")
    story.add("claimed", holder="cem")
    assert fold(story.read()).holders == ("bob", "cem")


def test_runs_are_linked_and_closed() -> None:
    story = Story()
    story.tell(*TO_PROGRESS)
    story.add("run.linked")
    story.add("run.linked", run="run-2")
    story.add("run.closed")
    story.add("run.closed", run="unknown")
    found = fold(story.read())
    assert [(run.run, run.closed is not None) for run in found.runs] == [("run-1", True), ("run-2", False)]
    assert [run.run for run in found.open_runs] == ["run-2"]
    assert [run.store for run in found.runs] == ["", ""]


def test_a_run_of_one_clone_is_not_closed_by_one_of_the_same_name_in_another() -> None:
    story = Story()
    story.tell(*TO_PROGRESS)
    for store in ("here", "there"):
        story.add("run.linked", store=store)
    story.add("run.closed", store="there")
    story.add("run.closed")
    assert [(run.run, run.store) for run in fold(story.read()).open_runs] == [("run-1", "here")]


def test_what_gates_ask_for_is_collected() -> None:
    found = state(
        "created",
        "refinement.recorded",
        "refinement.presented",
        "approval.recorded",
        "activated",
        "waived",
        "overridden",
        "claimed",
        "evidence.recorded",
        "submitted",
        "verdict.given",
    )
    assert found.refinement is not None
    assert found.presented is not None
    assert found.presented.text("block_sha256") == B
    assert [event.type for event in found.approvals] == ["approval.recorded"]
    assert [event.type for event in found.waivers] == ["waived", "overridden"]
    assert [event.type for event in found.evidence] == ["evidence.recorded", "submitted"]
    assert [event.type for event in found.verdicts] == ["verdict.given"]
    assert state("created", "activated", "superseded").superseded_by == "WP-1-Kettle-v2"


def forked_story() -> Story:
    story = Story()
    story.tell(*TO_PROGRESS, "submitted")
    submitted = story.events[-1]
    story.add("verdict.given", after=(submitted,))
    story.add("verdict.given", after=(submitted,), verdict="FAIL", lane_to="FAIL")
    return story


def test_contradicting_moves_fork_the_packet_and_are_listed() -> None:
    story = forked_story()
    found = fold(story.read())
    passed, failed = story.events[-2:]
    assert (found.lane, found.forked, found.sound, found.came_from) == ("FORKED", True, False, None)
    assert set(found.latest_moves) == {passed, failed}
    assert set(found.heads) == {passed.id, failed.id}
    (finding,) = found.findings
    assert finding.code == "packet_forked"
    assert "MERGE_PENDING" in finding.message
    assert "FAIL" in finding.message
    moves = sorted((passed, failed), key=lambda move: move.order)
    said = [f"verdict.given by ann to {move.lane_to} ({move.id[:12]}, {move.at})" for move in moves]
    assert finding.message == f"{story.packet} was moved independently: {'; '.join(said)}"


def test_the_same_move_on_two_branches_is_agreement() -> None:
    story = Story()
    story.tell("created", "activated")
    activated = story.events[-1]
    story.add("blocked", after=(activated,), lane_from="READY_FOR_DEV")
    story.add("blocked", after=(activated,), lane_from="READY_FOR_DEV", until="the other branch")
    found = fold(story.read())
    assert (found.lane, len(found.heads), found.findings) == ("BLOCKED", 2, ())
    assert (len(found.latest_moves), found.came_from) == (2, "READY_FOR_DEV")


def test_the_same_move_contradicts_itself_where_something_was_named_on_the_way() -> None:
    """A holder, a commit or a verdict on one branch: what comes after it is about another piece of work."""
    story = Story()
    story.tell("created", "activated")
    activated = story.events[-1]
    story.add("claimed", after=(activated,))
    story.add("claimed", after=(activated,), lease="lease-2")
    assert fold(story.read()).forked
    story = Story()
    story.tell(*TO_PROGRESS)
    claimed = story.events[-1]
    story.add("blocked", after=(claimed,), lane_from="IN_PROGRESS")
    released = story.add("released", after=(claimed,))
    again = story.add("claimed", after=(released,))
    story.add("blocked", after=(again,), lane_from="IN_PROGRESS")
    assert fold(story.read()).forked


NAMING = ("claimed", "released", "handed_over", "submitted", "merged", "verdict.given", "fork.resolved")


@pytest.mark.parametrize("kind", [*NAMING, "advanced", "reopened", "unblocked"])
def test_what_names_a_holder_a_commit_or_a_verdict_makes_two_pieces_of_work(kind: str) -> None:
    """Before the fork, and nothing else, it makes none."""
    for shared in (False, True):
        story = Story()
        story.tell(*TO_PROGRESS)
        origin = "FORKED" if kind == "fork.resolved" else "IN_PROGRESS"
        one = story.add(kind, lane_from=origin, lane_to="IN_PROGRESS")
        story.add("blocked", after=(one,), lane_from="IN_PROGRESS")
        story.add("blocked", after=(one if shared else story.events[2],), lane_from="IN_PROGRESS", until="other")
        assert fold(story.read()).forked is (kind in NAMING and not shared)


def test_two_successors_are_a_fork() -> None:
    story = Story()
    ready = story.tell("created", "activated")
    story.add("superseded", after=(ready,), by="WP-1-Kettle-v2")
    story.add("superseded", after=(ready,), by="WP-1-Kettle-v2", reason="the same one")
    assert not fold(story.read()).forked
    story.add("superseded", after=(ready,), by="WP-1-Kettle-v3")
    assert fold(story.read()).forked


def test_two_contracts_are_a_fork() -> None:
    for contract, forked in ((A, False), (B, True)):
        story = Story()
        created = story.add("created")
        story.add("activated", after=(created,))
        story.add("activated", after=(created,), contract=contract, dependencies=["WP-1-Tap-v1"])
        assert fold(story.read()).forked is forked


def test_two_activations_agree_only_upon_one_refinement() -> None:
    refinement = {"path": ".GOV/refinements/WP-1-Kettle-v1.md", "sha256": A}
    for other, forked in ((refinement, False), ({**refinement, "sha256": B}, True)):
        story = Story()
        created = story.add("created")
        story.add("activated", after=(created,), refinement=refinement)
        story.add("activated", after=(created,), refinement=other, checklist=[])
        story.add("noted", text="x")
        assert fold(story.read()).forked == forked


def test_two_claims_by_different_holders_contradict_each_other() -> None:
    story = Story()
    story.tell("created", "activated")
    activated = story.events[-1]
    story.add("claimed", after=(activated,))
    story.add("claimed", after=(activated,), holder="cem")
    assert fold(story.read()).forked


def test_a_branch_that_moved_nothing_contradicts_nothing() -> None:
    story = Story()
    story.tell(*TO_PROGRESS)
    claimed = story.events[-1]
    story.add("submitted", after=(claimed,))
    story.add("evidence.recorded", after=(claimed,))
    story.add("run.linked", after=(claimed,))
    found = fold(story.read())
    assert (found.lane, len(found.heads), found.findings) == ("IN_REVIEW", 3, ())


def test_a_resolution_that_names_the_moves_ends_the_fork() -> None:
    story = forked_story()
    moves = sorted(event.id for event in story.events[-2:])
    story.add("fork.resolved", moves=moves, lane_to="FAIL")
    found = fold(story.read())
    assert (found.lane, found.findings, found.lease) == ("FAIL", (), None)
    story.add("claimed", lane_from="FAIL")
    assert fold(story.read()).findings == ()


def test_a_resolution_can_say_who_holds_the_packet() -> None:
    story = forked_story()
    moves = sorted(event.id for event in story.events[-2:])
    story.add("fork.resolved", moves=moves, lane_to="FAIL", holder="cem")
    assert fold(story.read()).lease == PacketLease("cem", "", "")


def test_where_a_packet_was_blocked_is_what_the_block_says_and_no_settlement() -> None:
    story = Story()
    story.tell(*TO_PROGRESS)
    claimed = story.events[-1]
    blocked = story.add("blocked", after=(claimed,), lane_from="IN_PROGRESS")
    released = story.add("released", after=(claimed,))
    moves = sorted((blocked.id, released.id))
    story.add("fork.resolved", moves=moves, lane_to="BLOCKED", came_from="VALIDATED")
    assert fold(story.read()).came_from == "IN_PROGRESS"


def test_a_settlement_of_no_block_leads_nowhere_back() -> None:
    story = forked_story()
    moves = sorted(event.id for event in story.events[-2:])
    story.add("fork.resolved", moves=moves, lane_to="BLOCKED", came_from="IN_REVIEW")
    assert (fold(story.read()).lane, fold(story.read()).came_from) == ("BLOCKED", None)


@pytest.mark.parametrize("moves", [[A, B], None])
def test_a_resolution_that_does_not_name_them_all_settles_nothing(moves: list[str] | None) -> None:
    story = forked_story()
    named = moves if moves is not None else sorted((story.events[-1].id, A))
    story.add("fork.resolved", moves=list(named))
    found = fold(story.read())
    assert found.forked
    assert [finding.code for finding in found.findings] == ["packet_forked", "log_moved_while_forked"]


def test_an_ordinary_move_does_not_paper_over_a_fork() -> None:
    story = forked_story()
    passed, failed = story.events[-2:]
    first = story.add("merged")
    second = story.add("reopened")
    found = fold(story.read())
    assert found.forked
    # Of the moves made upon the fork the last stands for all; the contradicting ones stay.
    assert set(found.latest_moves) == {passed, failed, second}
    story.add("fork.resolved", moves=sorted((passed.id, failed.id, second.id)))
    settled = fold(story.read())
    assert (settled.lane, settled.findings) == ("IN_PROGRESS", ())
    assert first in settled.history


def test_a_move_upon_a_fork_that_was_settled_elsewhere_forks_again() -> None:
    story = forked_story()
    passed, failed = story.events[-2:]
    moved = story.add("merged", after=(passed, failed))
    resolved = story.add("fork.resolved", moves=sorted((passed.id, failed.id)), after=(passed, failed))
    found = fold(story.read())
    assert set(found.latest_moves) == {moved, resolved}
    assert found.forked


def test_two_resolutions_that_differ_fork_again() -> None:
    story = forked_story()
    both = tuple(story.events[-2:])
    moves = sorted(event.id for event in both)
    story.add("fork.resolved", moves=list(moves), after=both)
    story.add("fork.resolved", moves=list(moves), after=both, lane_to="FAIL")
    assert fold(story.read()).forked


def test_a_resolution_without_a_fork_is_a_gap() -> None:
    found = state(*TO_PROGRESS, "fork.resolved")
    assert [finding.code for finding in found.findings] == ["log_lane_gap"]


def test_two_beginnings_are_found_and_agree_or_fork() -> None:
    story = Story()
    story.add("created", after=())
    story.add("adopted", after=())
    found = fold(story.read())
    assert found.forked
    assert {finding.code for finding in found.findings} == {"log_second_genesis", "packet_forked"}


@given(st.lists(st.tuples(st.sampled_from(["run.linked", "run.closed", "join"]), st.integers(0, 2), st.integers(0, 1))))
def test_a_link_is_open_unless_who_closed_it_knew_of_it(steps: list[tuple[str, int, int]]) -> None:
    """On three branches that are joined now and then, with two runs."""
    story = Story()
    tips = [story.add("created")] * 3
    for kind, branch, run in steps:
        if kind == "join":
            tips = [story.add("lease.renewed", after=tuple(dict.fromkeys(tips)))] * 3
        else:
            tips[branch] = story.add(kind, after=(tips[branch],), run=f"run-{run}")
    log = story.log()
    links = [event for event in log.events if event.type == "run.linked"]
    closed = {
        (link.id, close.id)
        for close in log.events
        if close.type == "run.closed"
        for link in links
        if link.id in log.ancestry(close.parents) and link.text("run") == close.text("run")
    }
    open_links = {link.text("run") for link in links if link.id not in {known for known, _ in closed}}
    assert {run.run for run in fold(log).open_runs} == open_links


def test_the_form_of_a_packet_is_what_the_log_said_last() -> None:
    story = Story()
    story.add("created", form="light")
    assert fold(story.log()).light is True
    story.add("noted")
    assert fold(story.log()).light is True, "a note says nothing about it"
    story.add("activated")
    assert fold(story.log()).light is False, "it was raised to the full form"
    story.add("amended", form="light")
    assert fold(story.log()).light is True


def test_a_packet_whose_log_does_not_say_so_is_not_light() -> None:
    for kind in ("created", "adopted"):
        story = Story()
        story.add(kind)
        assert fold(story.log()).light is False


def test_a_run_that_is_closed_twice_was_closed_the_first_time() -> None:
    story = Story()
    story.add("created")
    linked = story.add("run.linked")
    first = story.add("run.closed", after=(linked,))
    story.add("run.closed", after=(first,), events=10)
    (run,) = fold(story.log()).runs
    assert run.closed == first


def test_a_lease_was_given_when_it_was_last_renewed() -> None:
    story = Story()
    story.tell("created", "activated")
    assert fold(story.read()).lease_given == ""
    story.add("claimed")
    renewed = story.add("lease.renewed")
    story.add("noted")
    assert fold(story.read()).lease_given == renewed.at
    story.add("released")
    assert fold(story.read()).lease_given == ""
