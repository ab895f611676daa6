"""`step` keeps the signature of the function for type checkers: mypy checks this file, strictly.

An ignore that is not needed is an error there, so each `type: ignore` below proves that the mistake beside it is found.
"""

from __future__ import annotations

from typing import assert_type

import pytest

from runtime.worlds import World
from workpacket.runtime.run import Run


def convert(number: int, *, unit: str = "m") -> str:
    return f"{number} {unit}"


def typed(run: Run) -> None:
    assert_type(run.step(convert, 1), str)
    assert_type(run.step("named", convert, 2, unit="km"), str)
    assert_type(run.call("named", convert, 3).function(4), str)
    assert_type(run.gather(run.call(convert, 5), run.call("other", convert, 6)), list[str])
    assert_type(run.map("each", convert, [7, 8]), list[str])
    assert_type(run.effect("send", convert, 9, key="k"), str)
    assert_type(run.using(version="2").step(convert, 10), str)


def mistaken(run: Run) -> None:
    run.step(convert, "one")  # type: ignore[call-overload]
    run.step("named", convert, 1, united="km")  # type: ignore[call-arg]
    run.step("named", convert)  # type: ignore[call-overload]


def test_the_types_are_those_of_the_functions() -> None:
    with World().runtime.run("types") as run:
        typed(run)
        results = run.state.steps
    assert len(results) == 7  # `gather` and `map` take two; the effect is none, and one call is not made by the run


def test_a_call_that_does_not_fit_fails_as_the_function_itself_would() -> None:
    with pytest.raises(TypeError), World().runtime.run("types") as run:
        mistaken(run)
