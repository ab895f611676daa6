"""Values are what frozen data classes would be."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from functools import cached_property
from typing import ClassVar

import pytest

from workpacket.problem import WorkpacketError
from workpacket.value import NOTHING, Value, replace


class Point(Value):
    kind: ClassVar[str] = "point"
    x: int
    y: int = 0

    @cached_property
    def size(self) -> int:
        return abs(self.x) + abs(self.y)


class Named(Point, kw_only=True):
    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is missing")


def test_fields_are_given_by_place_or_by_name() -> None:
    assert Point(1, 2) == Point(1, y=2) == Point(y=2, x=1)
    assert (Point(1).x, Point(1).y) == (1, 0)


@pytest.mark.parametrize(
    ("places", "names"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((), {"y": 1}), ((1,), {"z": 1}), ((), {"y": 1, "z": 2})],
)
def test_too_few_too_many_and_unknown_fields_are_refused(places: tuple[int, ...], names: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point has the fields x, y"):
        Point(*places, **names)


def test_a_value_never_changes() -> None:
    point = Point(1)
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc] # the type checker knows it too
    with pytest.raises(AttributeError):
        del point.x
    assert point == Point(1)


def test_what_was_worked_out_is_kept_and_is_no_part_of_the_value() -> None:
    point = Point(3, -4)
    assert point.size == 7
    assert (point, hash(point), repr(point)) == (Point(3, -4), hash(Point(3, -4)), "Point(x=3, y=-4)")


def test_values_of_two_kinds_are_two() -> None:
    class Place(Value):
        x: int
        y: int = 0

    assert {Point(1), Place(1)} == {Place(1), Point(1)}
    assert Point(1) != Place(1)


def test_fields_of_the_base_come_first_and_its_defaults_hold() -> None:
    assert Named(1, name="a") == Named(1, 0, name="a")
    with pytest.raises(ValueError, match="missing"):
        Named(1, name="")


def test_a_changed_value_is_another_one_and_is_judged_again() -> None:
    named = Named(1, 2, name="a")
    assert replace(named, x=5) == Named(5, 2, name="a")
    assert named.x == 1
    with pytest.raises(ValueError, match="missing"):
        replace(named, name="")


def test_values_travel_between_processes() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2))) == copy.deepcopy(Point(1, 2)) == Point(1, 2)


def test_an_empty_mapping_and_the_error_of_a_command_travel_too() -> None:
    assert pickle.loads(pickle.dumps(NOTHING)) == NOTHING
    error = WorkpacketError("tree_unreadable", "shut", hint="chmod", path=".GOV/log")
    assert pickle.loads(pickle.dumps(error)).problem == error.problem


def test_a_pattern_takes_a_value_apart() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_the_empty_mapping_stays_empty() -> None:
    with pytest.raises(TypeError):
        NOTHING["a"] = 1  # type: ignore[index] # the type checker knows it too


def test_the_machinery_of_data_classes_is_not_imported() -> None:
    script = "import sys, workpacket.value; print(*{'dataclasses', 'inspect'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
