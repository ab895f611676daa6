"""Ratios of paired measurements: their median, its 95 % confidence interval, and the verdict.

The interval comes from order statistics. It does not depend on the distribution of the ratios, needs no random numbers,
and one disturbed pair cannot move it far.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

CONFIDENCE = 0.95
# With fewer values even the whole range covers the median in less than 95 % of all cases.
FEWEST = 6

Verdict = Literal["slower", "not slower", "undecided"]


@dataclass(frozen=True, slots=True)
class Interval:
    """The median of the values, and the bounds between which the true median lies with 95 % confidence."""

    median: float
    low: float
    high: float

    def verdict(self, allowance: float) -> Verdict:
        """Return `slower` only if the whole interval is above the allowance, which is a ratio: 0.03 allows 3 %."""
        limit = 1 + allowance
        if self.low > limit:
            return "slower"
        return "not slower" if self.high <= limit else "undecided"


def median_interval(values: Sequence[float]) -> Interval:
    if len(values) < FEWEST:
        raise ValueError(f"a 95 % interval needs at least {FEWEST} values, not {len(values)}")
    ordered = sorted(values)
    left_out = _left_out(len(ordered))
    return Interval(statistics.median(ordered), ordered[left_out], ordered[-1 - left_out])


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratio of each pair. A denominator of zero is an error: a sample without time was not measured."""
    return [above / below for above, below in zip(numerators, denominators, strict=True)]


def _left_out(count: int) -> int:
    """Return how many values may be left out at each end.

    The true median lies below the k-th smallest of n values when fewer than k of them fell below it, which has the
    probability of fewer than k heads in n tosses of a coin.
    """
    tail = (1 - CONFIDENCE) / 2
    below, left_out = 0.0, 0
    for heads in range(count):
        below += comb(count, heads) / 2**count
        if below > tail:
            break
        left_out = heads
    return left_out
