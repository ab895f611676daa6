"""The table of transitions is whole, and agrees with the events and lanes that it speaks of."""

from __future__ import annotations

import pytest

from workpacket.lifecycle.moving import forward_transition
from workpacket.lifecycle.transitions import (
    PLACING_EVENTS,
    TRANSITIONS,
    Transition,
    choices,
    is_legal,
    leaving,
    table_faults,
    transition,
)
from workpacket.model.event_types import DATA, LANE_MOVES
from workpacket.model.lanes import LANES
from workpacket.value import replace


def test_the_table_has_no_fault() -> None:
    assert list(table_faults(TRANSITIONS)) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (replace(TRANSITIONS[1], target="ELSEWHERE"), "activate: there is no lane ELSEWHERE"),
        (replace(TRANSITIONS[1], event="prepared"), "activate: events of type prepared move nothing"),
        (TRANSITIONS[0], "new: stands twice"),
    ],
)
def test_a_fault_of_the_table_is_found(row: Transition, fault: str) -> None:
    assert fault in list(table_faults([*TRANSITIONS, row]))


def test_a_lane_that_nothing_leads_to_is_found() -> None:
    rows = [row for row in TRANSITIONS if row.target != "BLOCKED"]
    assert list(table_faults(rows)) == ["nothing leads to BLOCKED"]


def test_every_event_that_moves_a_packet_has_a_row_or_places_it() -> None:
    assert {row.event for row in TRANSITIONS} | PLACING_EVENTS == LANE_MOVES
    assert {row.event for row in TRANSITIONS} <= DATA.keys()


def test_nothing_leads_out_of_the_archive() -> None:
    assert not list(leaving("SUPERSEDED"))
    assert not list(leaving("ABANDONED"))


def test_every_other_lane_can_be_left() -> None:
    for lane in LANES:
        if lane.token not in {"SUPERSEDED", "ABANDONED"}:
            assert list(leaving(lane.token)), lane


def test_a_verdict_has_the_outcomes_that_its_event_knows() -> None:
    assert set(choices("verdict")) == {"PASS", "FAIL", "CHANGES", "OUTDATED_ONLY"}


@pytest.mark.parametrize(
    ("event", "origin", "target", "legal"),
    [
        ("created", None, "STUB", True),
        ("created", "STUB", "STUB", False),
        ("claimed", "READY_FOR_DEV", "IN_PROGRESS", True),
        ("claimed", "STUB", "IN_PROGRESS", False),
        ("submitted", "IN_PROGRESS", "VALIDATED", False),
        ("verdict.given", "VALIDATED", "OUTDATED_ONLY", True),
        ("verdict.given", "VALIDATED", "MERGE_PENDING", False),
        ("adopted", None, "VALIDATED", True),
    ],
)
def test_a_move_is_legal_if_the_table_has_it(event: str, origin: str | None, target: str, legal: bool) -> None:
    assert is_legal(event, origin, target) == legal


def test_a_blocked_packet_goes_back_to_where_it_came_from_and_nowhere_else() -> None:
    assert is_legal("unblocked", "BLOCKED", "IN_REVIEW", came_from="IN_REVIEW")
    assert not is_legal("unblocked", "BLOCKED", "IN_REVIEW", came_from="IN_PROGRESS")


def test_the_way_forward_from_a_lane_is_a_row_that_leaves_it() -> None:
    for lane in LANES:
        row = forward_transition(lane.token)
        assert row is None or lane.token in row.origins
    assert forward_transition("FORKED") is None
    assert transition("claim") == forward_transition("FAIL")
