"""When two revisions are compared, `slower` is said only if chance is an unlikely explanation."""

from __future__ import annotations

import random

import pytest
from bench.intervals import Interval, median_interval, ratios


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # The ranks of published tables for the 95 % confidence interval of a median.
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (15, 4, 12), (20, 6, 15), (30, 10, 21), (51, 19, 33)],
)
def test_the_bounds_are_the_values_of_the_published_ranks(count: int, low: int, high: int) -> None:
    interval = median_interval([float(value) for value in range(count, 0, -1)])

    assert (interval.low, interval.high) == (low, high)
    assert interval.median == (count + 1) / 2


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_values_have_no_interval(count: int) -> None:
    with pytest.raises(ValueError, match="at least 6"):
        median_interval([1.0] * count)


@pytest.mark.parametrize("count", [15, 21])
def test_the_interval_covers_the_true_median_in_95_percent_of_skewed_samples(count: int) -> None:
    chance = random.Random(count)
    intervals = [median_interval([chance.lognormvariate(0, 1) for _ in range(count)]) for _ in range(2000)]

    assert sum(interval.low <= 1 <= interval.high for interval in intervals) / len(intervals) > 0.94


def test_three_disturbed_pairs_of_fifteen_do_not_move_the_interval() -> None:
    quiet = median_interval([1.0] * 15)

    assert median_interval([1.0] * 12 + [50.0] * 3) == quiet


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.04, 1.10, "slower"),
        (1.03, 1.10, "undecided"),  # the lower bound does not lie above the allowance
        (0.90, 1.04, "undecided"),
        (0.90, 1.03, "not slower"),
        (0.80, 0.90, "not slower"),
    ],
)
def test_slower_means_that_the_whole_interval_lies_above_the_allowance(low: float, high: float, verdict: str) -> None:
    assert Interval((low + high) / 2, low, high).verdict(0.03) == verdict


def test_ratios_are_taken_pair_by_pair() -> None:
    assert ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]


def test_ratios_of_incomplete_pairs_are_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratios([2.0, 9.0], [1.0])
