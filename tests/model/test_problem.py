"""One problem from its finder to the report: places are added, and nothing else of it changes."""

from __future__ import annotations

import pytest

from workpacket import errors
from workpacket.problem import NOWHERE, Edit, Fix, Location, Problem, WorkpacketError, by_remedy
from workpacket.text.source import Source

FIX = Fix((Edit(6, 9, "two"),), safe=True)
FOUND = Problem("field_value", "it must be two", Location.span(6, 9), "write two", FIX, confidence="likely")


def test_a_source_adds_path_line_and_column_to_a_span_and_keeps_the_rest() -> None:
    placed = Source("a.md", "first\none\nlast").placed(FOUND)

    assert placed.location == Location("a.md", 2, 1, 2, 4, 6, 9)
    assert placed == Problem("field_value", "it must be two", placed.location, "write two", FIX, confidence="likely")


@pytest.mark.parametrize(("span", "place"), [((-1, -1), (1, 1, 1, 1)), ((4, 2), (1, 5, 1, 5))])
def test_a_span_that_is_not_in_order_is_a_point(span: tuple[int, int], place: tuple[int, ...]) -> None:
    location = Source("a.md", "first").placed(Problem("x", "y", Location.span(*span))).location

    assert (location.line, location.column, location.end_line, location.end_column) == place


def test_what_was_found_in_a_part_of_a_file_is_moved_and_loses_a_repair_of_the_part() -> None:
    assert FOUND.moved(10) == Problem(
        "field_value", "it must be two", Location.span(16, 19), "write two", confidence="likely"
    )


def test_problems_are_ordered_by_place_then_code() -> None:
    late, early, other = (Problem(code, "", Location("a.md", line)) for code, line in [("b", 2), ("b", 1), ("a", 2)])

    assert sorted([late, early, other], key=lambda one: one.order) == [early, other, late]


def test_an_error_carries_its_problem() -> None:
    named = WorkpacketError("tool_missing", "git is not installed", hint="install git", path="x")
    assert named.problem == Problem("tool_missing", "git is not installed", Location("x"), "install git")
    assert WorkpacketError("a", "b").problem.location is NOWHERE

    error = WorkpacketError.of(FOUND.at("a.md", 3))
    assert (error.code, error.message, error.hint, error.path) == ("field_value", "it must be two", "write two", "a.md")
    assert (str(error), error.problem.line) == ("it must be two", 3)


def test_what_was_thrown_is_told_with_its_place_or_with_none() -> None:
    refused = WorkpacketError("key_weak", "the key is weak")
    assert refused.problem == Problem("key_weak", "the key is weak")
    assert refused.problem.at("signers", 3) == Problem("key_weak", "the key is weak", Location("signers", 3))
    assert str(refused) == "the key is weak"


def test_problems_that_one_action_settles_are_one_group_in_the_order_of_the_first() -> None:
    unsigned = Problem("user_signature_missing", "not signed", Location("r.md", 3), "workpacket approve X")
    open_one = Problem("refinement_incomplete", "A is open", Location("r.md", 7), "edit r.md:7")
    lane = Problem("wrong_lane", "it is in review")
    asked = Problem("approval_missing", "needs 1 approval", hint="workpacket approve X")
    other = Problem("refinement_incomplete", "B is open", Location("r.md", 9), "edit r.md:9")
    lane_too = Problem("packet_superseded", "it is superseded")
    grouped = by_remedy([unsigned, open_one, lane, asked, other, lane_too])
    assert grouped == [[unsigned, asked], [open_one, other], [lane], [lane_too]]


def test_the_exception_is_importable_from_its_public_home() -> None:
    assert errors.WorkpacketError is WorkpacketError
