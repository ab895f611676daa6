"""What a settlement of a fork may say, asked of histories with branches: docs/approvals/moves.md, rules 2 to 5."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ledger.stories import LATER, A, B, Story
from workpacket.ledger.fold import LaneReplay
from workpacket.lifecycle.change_checks import (
    HOLDER_JUDGED,
    dropped_decisions,
    dropped_verdicts,
    holder_faults,
    settlement_faults,
    unseen_moves,
)
from workpacket.model.events import LogEvent

SAID: tuple[dict[str, Any], ...] = ({}, {"came_from": "IN_PROGRESS"})
NOT_HELD = "eve did not hold the packet on any of its branches"


class Fork:
    """A packet that was claimed by ann on one branch and by bob on another."""

    def __init__(self) -> None:
        self.story = Story()
        self.ready = self.story.tell("created", "activated")
        self.ann = self.story.add("claimed", after=(self.ready,), holder="ann")
        self.bob = self.story.add("claimed", after=(self.ready,), holder="bob")

    def settled(self, *after: LogEvent, moves: tuple[LogEvent, ...] | None = None, **said: Any) -> LogEvent:
        named = sorted(move.id for move in (after if moves is None else moves))
        return self.story.add("fork.resolved", after=after, **{"moves": named, **said})

    def faults(self, event: LogEvent) -> list[str]:
        log = self.story.log()
        return list(settlement_faults(log, LaneReplay(log), event))


def test_a_settlement_names_the_latest_moves_and_leads_to_a_lane_of_theirs() -> None:
    fork = Fork()
    assert fork.faults(fork.settled(fork.ann, fork.bob)) == []


def test_without_a_fork_there_is_nothing_to_settle() -> None:
    fork = Fork()
    alone = fork.settled(fork.ann, moves=(fork.ann, fork.ready), lane_to="VALIDATED", holder="eve")
    assert fork.faults(alone) == ["there is no fork to resolve"]


def test_a_settlement_names_all_of_the_latest_moves_and_no_others() -> None:
    for named in (("ann", "ready"), ("ann", "bob", "ready")):
        fork = Fork()
        event = fork.settled(fork.ann, fork.bob, moves=tuple(getattr(fork, name) for name in named))
        assert fork.faults(event) == ["it must list exactly the latest moves"]


def test_a_settlement_does_not_lead_to_a_lane_that_is_on_no_branch() -> None:
    fork = Fork()
    event = fork.settled(fork.ann, fork.bob, lane_to="VALIDATED")
    assert fork.faults(event) == ["none of the moves that it resolves leads to VALIDATED"]


def test_the_holder_of_a_settlement_held_the_packet_on_a_branch_that_it_has_seen() -> None:
    fork = Fork()
    for holder in ("ann", "bob"):
        assert fork.faults(fork.settled(fork.ann, fork.bob, holder=holder)) == []
    assert fork.faults(fork.settled(fork.ann, fork.bob, holder="eve")) == [
        "eve did not hold the packet on any of its branches"
    ]
    eve = fork.story.add("claimed", after=(fork.ready,), holder="eve")
    unseen = fork.settled(fork.ann, fork.bob, holder="eve")
    assert fork.faults(unseen) == [NOT_HELD]
    assert fork.faults(fork.settled(fork.ann, fork.bob, eve, holder="eve")) == []


# --- where a blocked packet comes back to ---


def blocked(first: str, second: str) -> tuple[Fork, LogEvent, LogEvent]:
    """Blocked on two branches, on each in the lane that is named."""
    fork = Fork()
    ends = []
    for claim, lane in ((fork.ann, first), (fork.bob, second)):
        end = claim
        if lane == "IN_REVIEW":
            end = fork.story.add("submitted", after=(claim,))
        ends.append(fork.story.add("blocked", after=(end,), lane_from=lane))
    return fork, ends[0], ends[1]


def test_a_packet_that_stays_blocked_comes_back_to_where_it_was_blocked() -> None:
    fork, one, other = blocked("IN_PROGRESS", "IN_PROGRESS")
    for said in SAID:
        assert fork.faults(fork.settled(one, other, lane_to="BLOCKED", **said)) == []
    event = fork.settled(one, other, lane_to="BLOCKED", came_from="IN_REVIEW")
    assert fork.faults(event) == ["the packet was blocked in IN_PROGRESS, but the resolution says IN_REVIEW"]


def test_blocks_in_two_lanes_leave_no_answer() -> None:
    fork, one, other = blocked("IN_PROGRESS", "IN_REVIEW")
    for said in SAID:
        event = fork.settled(one, other, lane_to="BLOCKED", **said)
        assert fork.faults(event) == ["the packet was blocked in different lanes before the moves that it resolves"]


def test_a_packet_that_is_not_blocked_comes_back_from_nowhere() -> None:
    fork = Fork()
    event = fork.settled(fork.ann, fork.bob, came_from="IN_REVIEW")
    assert fork.faults(event) == ["it says that the packet was blocked in IN_REVIEW, but it leads to IN_PROGRESS"]


# --- moves of the base ---


def test_a_move_rests_on_all_that_the_base_has() -> None:
    fork = Fork()
    log = fork.story.log()
    replay = LaneReplay(log)
    assert list(unseen_moves(log, replay, fork.ann, [fork.ready.id, fork.ann.id])) == []
    assert list(unseen_moves(log, replay, fork.ann, [fork.ready.id, fork.bob.id])) == [
        f"it does not follow claimed by ann ({fork.bob.id[:12]}), which is on the base"
    ]


# --- verdicts that a settlement drops ---


def judged(*attest: str) -> tuple[Fork, LogEvent, LogEvent]:
    """Released on one branch, judged on another."""
    fork = Fork()
    submitted = fork.story.add("submitted", after=(fork.ann,))
    return (
        fork,
        fork.story.add("released", after=(fork.ann,)),
        fork.story.add("verdict.given", after=(submitted,), attest=attest),
    )


def dropped(fork: Fork, heads: tuple[LogEvent, ...], lane: str | None) -> list[LogEvent]:
    return dropped_verdicts(LaneReplay(fork.story.log()), [head.id for head in heads], lane)


def test_a_settlement_beside_a_signed_verdict_drops_it() -> None:
    fork, released, passed = judged(A, B)
    assert dropped(fork, (released, passed), "READY_FOR_DEV") == [passed]
    assert dropped(fork, (released, passed), "MERGE_PENDING") == []


def test_an_unsigned_verdict_is_not_kept_from_anyone() -> None:
    fork, released, passed = judged()
    assert dropped(fork, (released, passed), "READY_FOR_DEV") == []


def test_an_approval_of_something_else_is_no_verdict() -> None:
    fork = Fork()
    signed = fork.story.add("released", after=(fork.ann,), attest=(A,))
    assert dropped(fork, (signed, fork.bob), "BLOCKED") == []


def test_a_history_without_a_fork_drops_nothing() -> None:
    fork, _, passed = judged(A)
    assert dropped(fork, (passed,), "READY_FOR_DEV") == []
    assert dropped(fork, (), "READY_FOR_DEV") == []


def test_a_verdict_below_two_branches_is_named_once() -> None:
    fork, released, passed = judged(A)
    merged = fork.story.add("merged", after=(passed,))
    reopened = fork.story.add("reopened", after=(passed,))
    assert dropped(fork, (released, merged, reopened), "READY_FOR_DEV") == [passed]
    assert dropped(fork, (merged, reopened), "READY_FOR_DEV") == [], "both branches hold it"


def test_two_successors_leave_no_answer() -> None:
    fork = Fork()
    one, other = (fork.story.add("superseded", after=(fork.ready,), by=f"WP-1-Kettle-v{number}") for number in (2, 3))
    assert fork.faults(fork.settled(one, other, lane_to="SUPERSEDED")) == [
        "the moves that it resolves specify different replacements for the packet"
    ]
    third = fork.story.add("superseded", after=(fork.ready,), by="WP-1-Kettle-v2", reason="the same one")
    assert fork.faults(fork.settled(one, third, fork.ann, lane_to="SUPERSEDED")) == []
    assert fork.faults(fork.settled(one, other, fork.ann)) == []


# --- who holds the packet ---


DAY = timedelta(hours=24)
SOON = "2026-01-01T12:00:00Z"


def held(by: str, kind: str, /, *, ends: str = SOON, **said: Any) -> list[tuple[str, str]]:
    """What is said of an event by ann of a packet that somebody holds."""
    story = Story()
    story.tell("created", "activated")
    story.add("claimed", holder=by, expires_at=ends)
    event = story.add(kind, **said)
    return [(one.code, one.message) for one in holder_faults(story.log(), event, DAY, LATER)]


@pytest.mark.parametrize("kind", ["released", "handed_over", "submitted"])
def test_only_the_holder_writes_what_ends_the_work_while_the_lease_lasts(kind: str) -> None:
    assert kind in HOLDER_JUDGED
    assert held("ann", kind) == []
    assert held("bob", kind) == [("not_the_holder", f"ann wrote {kind} while bob held the packet")]
    assert held("bob", kind, ends="2026-01-01T00:00:01Z") == [], "the lease had ended"
    assert held("bob", "noted") == []


def test_whether_a_lease_came_from_a_clock_ahead_is_asked_of_the_clock_and_not_of_the_event() -> None:
    story = Story()
    story.tell("created", "activated")
    story.add("claimed", holder="bob", lease="l", at="2026-01-01T06:00:00Z", expires_at=SOON)
    event = story.add("released", at="2026-01-01T00:00:00Z")
    assert [one.code for one in holder_faults(story.log(), event, DAY, LATER)] == ["not_the_holder"]
    assert [one.code for one in holder_faults(story.log(), event, DAY, "2026-01-01T05:55:00Z")] == ["not_the_holder"]
    assert list(holder_faults(story.log(), event, DAY, "2026-01-01T05:54:59Z")) == [], "it is ahead now"


def test_a_lease_is_renewed_for_the_one_who_has_it() -> None:
    last = {"expires_at": SOON}
    assert held("ann", "lease.renewed", holder="ann", **last) == []
    assert held("ann", "lease.renewed", holder="eve", **last) == [
        ("not_the_holder", "it renews the lease of eve, but ann held the packet")
    ]
    assert held("bob", "lease.renewed", holder="bob", **last) == [
        ("not_the_holder", "ann wrote lease.renewed while bob held the packet")
    ]
    assert held("ann", "lease.renewed", ends="2026-01-01T00:00:01Z", holder="ann", **last) == [
        ("not_the_holder", "it renews the lease of ann, but no one held the packet")
    ]


def test_a_lease_lasts_no_longer_than_the_policy_says() -> None:
    assert held("ann", "lease.renewed", holder="ann", expires_at="2026-01-02T00:00:03Z") == []
    assert held("ann", "lease.renewed", holder="ann", expires_at="2026-01-02T00:00:04Z") == [
        (
            "lease_too_long",
            "its lease ends at 2026-01-02T00:00:04Z, more than 24 hours after 2026-01-01T00:00:03Z",
        )
    ]
    story = Story()
    story.tell("created", "activated")
    event = story.add("claimed", expires_at="2026-01-09T00:00:00Z")
    assert [one.code for one in holder_faults(story.log(), event, DAY, LATER)] == ["lease_too_long"]
    fork = Fork()
    settled = fork.settled(fork.ann, fork.bob, holder="ann", lease="l", expires_at="2026-01-09T00:00:00Z")
    assert [one.code for one in holder_faults(fork.story.log(), settled, DAY, LATER)] == ["lease_too_long"]
    waived = fork.story.add("waived", expires_at="2027-01-09T00:00:00Z")
    assert list(holder_faults(fork.story.log(), waived, DAY, LATER)) == []


# --- what a revert drops ---


def test_a_revert_does_not_drop_a_signed_amendment_without_the_contract_that_it_replaced() -> None:
    story = Story()
    story.tell("created")
    activated = story.add("activated", attest=(A,))
    first = story.add("amended", attest=(B,))
    second = story.add("amended", attest=(A, B), previous=B, contract=A)
    gone = {first.id, second.id}
    assert list(dropped_decisions(story.log(), gone)) == [first]
    assert list(dropped_decisions(story.log(), {second.id})) == [second]
    assert list(dropped_decisions(story.log(), {activated.id, *gone})) == []
    assert list(dropped_decisions(story.log(), set())) == []


def test_a_revert_drops_an_amendment_that_nobody_signed() -> None:
    story = Story()
    story.tell("created", "activated")
    amended = story.add("amended")
    assert list(dropped_decisions(story.log(), {amended.id})) == []


@pytest.mark.parametrize(("verdict", "signed"), [("FAIL", True), ("CHANGES", True), ("PASS", True), ("FAIL", False)])
def test_a_revert_does_not_drop_a_signed_refusal_without_the_work_that_was_refused(verdict: str, signed: bool) -> None:
    story = Story()
    story.tell("created", "activated", "claimed")
    submitted = story.add("submitted", attest=(A,))
    judged = story.add("verdict.given", verdict=verdict, attest=(A,) if signed else ())
    refused = [judged] if signed and verdict != "PASS" else []
    assert list(dropped_decisions(story.log(), {judged.id})) == refused
    assert list(dropped_decisions(story.log(), {submitted.id, judged.id})) == []


def test_a_revert_drops_a_signed_waiver() -> None:
    story = Story()
    story.tell("created", "activated", "claimed", "submitted")
    waived = story.add("waived", attest=(A,))
    assert list(dropped_decisions(story.log(), {waived.id})) == []


def test_a_verdict_about_nothing_is_dropped_with_a_revert() -> None:
    story = Story()
    story.tell("created", "activated")
    judged = story.add("verdict.given", verdict="FAIL", attest=(A,))
    assert list(dropped_decisions(story.log(), {judged.id})) == []
