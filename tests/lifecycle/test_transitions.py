"""The table of transitions is whole, and agrees with the events and lanes that it speaks of."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.world import ADDED, table_faults
from workpacket.lifecycle.event_checks import judges_of
from workpacket.lifecycle.transitions import (
    ADVANCED,
    PLACING_EVENTS,
    TRANSITIONS,
    Transition,
    choices,
    forward_transition,
    is_legal,
    leaving,
    transition,
    transitions,
)
from workpacket.model.event_types import DATA, LANE_MOVES
from workpacket.model.lanes import LANES, LaneTable
from workpacket.value import replace


def test_the_table_has_no_fault() -> None:
    assert list(table_faults(TRANSITIONS)) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (replace(TRANSITIONS[1], target="ELSEWHERE"), "activate: unknown lane ELSEWHERE"),
        (replace(TRANSITIONS[1], event="prepared"), "activate: events of type prepared are not moves"),
        (TRANSITIONS[0], "new: listed twice"),
    ],
)
def test_a_fault_of_the_table_is_found(row: Transition, fault: str) -> None:
    assert fault in list(table_faults([*TRANSITIONS, row]))


def test_a_lane_that_nothing_leads_to_is_found() -> None:
    rows = [row for row in TRANSITIONS if row.target != "BLOCKED"]
    assert list(table_faults(rows)) == ["nothing leads to BLOCKED"]


def test_every_event_that_moves_a_packet_has_a_row_or_places_it() -> None:
    assert {row.event for row in transitions(ADDED)} | PLACING_EVENTS == LANE_MOVES
    assert LANE_MOVES - {row.event for row in TRANSITIONS} - PLACING_EVENTS == {ADVANCED}
    assert {row.event for row in TRANSITIONS} <= DATA.keys()


def test_every_gate_is_asked_again_of_events_that_were_written_by_hand() -> None:
    behind = {row.event for row in TRANSITIONS if row.gate}
    judged = judges_of(TRANSITIONS).keys()
    assert judged <= behind
    assert {row.gate for row in TRANSITIONS if row.event in behind - judged} == {"reason"}
    for event in behind - judged:
        required = DATA[event]["required"]
        assert isinstance(required, list)
        assert "reason" in required, f"_NOT_ASKED_AGAIN in lifecycle/event_checks.py says that {event} requires one"


def test_a_gate_without_a_judge_names_the_file_to_edit() -> None:
    planted = replace(TRANSITIONS[-1], command="archive", gate="age")
    with pytest.raises(LookupError, match=r"'age' of 'archive'.*_JUDGES in .*event_checks\.py"):
        judges_of([*TRANSITIONS, planted])


@given(st.sets(st.sampled_from(ADDED.tokens).filter(ADDED.is_added)))
def test_added_lanes_make_the_way_longer_and_take_no_gate_from_it(chosen: set[str]) -> None:
    """Without the row that leaves any one lane of the way, nothing leads to its end: no step can be left out."""
    table = only(chosen)
    rows = transitions(table)
    assert list(table_faults(rows, table)) == []
    usual = {(row.command, row.choice): row for row in TRANSITIONS}
    for row in rows:
        if row.event != ADVANCED:
            before = usual[row.command, row.choice]
            assert (row.event, row.gate) == (before.event, before.gate)
            assert set(row.origins) - chosen == set(before.origins)
    steps = [row for row in rows if row.origins[:1] and row.target == onward(table, row.origins[0])]
    assert "VALIDATED" in reached_by(rows)
    assert len(steps) == len(table.way) - 1
    for step in steps:
        assert "VALIDATED" not in reached_by([row for row in rows if row is not step]), step.typed


def only(chosen: set[str]) -> LaneTable:
    """The added lanes of the test that were chosen, each beside what is left of its neighbours."""
    way = [token for token in ADDED.way if token in chosen or not ADDED.is_added(token)]
    lanes = [lane for lane in ADDED.added if lane.token in chosen]
    return LaneTable(
        tuple(
            replace(lane, after=way[way.index(lane.token) - 1], before=way[way.index(lane.token) + 1]) for lane in lanes
        )
    )


def onward(table: LaneTable, token: str) -> str:
    return table.onward(token) if token in table.way[:-1] else ""


def reached_by(rows: Iterable[Transition]) -> set[str]:
    rows, reached = list(rows), {"STUB"}
    while more := {row.target for row in rows if not reached.isdisjoint(row.origins)} - reached:
        reached |= more
    return reached


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
