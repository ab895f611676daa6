"""What follows from the intervals of several figures of one row."""

from __future__ import annotations

import pytest
from bench.comparing import Compared, judged
from bench.intervals import Interval

from benchmark.programs import WORK

FASTER, SAME, NOISY, SLOWER = (
    Interval(0.9, 0.8, 0.95),
    Interval(1, 0.99, 1.01),
    Interval(1, 0.7, 1.5),
    Interval(2, 1.9, 3),
)


@pytest.mark.parametrize(
    ("cpu", "wall", "verdict"),
    [
        (SAME, SAME, "not slower"),
        (SAME, NOISY, "not slower"),
        (NOISY, SAME, "undecided"),
        (FASTER, SLOWER, "slower"),  # it waits for something
        (SLOWER, NOISY, "slower"),
    ],
)
def test_any_figure_can_say_slower_and_processor_time_decides_the_rest(
    cpu: Interval, wall: Interval, verdict: str
) -> None:
    assert Compared(WORK, {"cpu_ms": cpu, "wall_ms": wall}, 0.03).verdict == verdict


def test_a_comparison_without_figures_is_not_measured() -> None:
    assert Compared(WORK, {}, 0.03, "the other revision: exit status 4").verdict == "not measured"


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (["wall_ms", "cpu_ms"], ["cpu_ms", "wall_ms"]),
        (["wall_ms", "cpu_ms", "floor_ms", "times_floor"], ["cpu_ms", "times_floor"]),
        (["times", "open_times"], ["times"]),
        (["p99_ms"], []),
    ],
)
def test_figures_that_are_judged(figures: list[str], expected: list[str]) -> None:
    sample = dict.fromkeys(figures, 1.0)

    assert judged(sample, sample) == expected


def test_a_figure_that_one_side_lacks_is_not_judged() -> None:
    assert judged({"wall_ms": 1.0, "cpu_ms": 1.0}, {"wall_ms": 1.0}) == ["wall_ms"]
