"""Compares two revisions: samples of a row are taken in pairs, one of each side, and their ratios are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.intervals import Interval, Verdict, median_interval, ratios
from bench.rows import Row
from bench.sides import Figures, Side
from bench.timing import NotMeasured

FEWEST_PAIRS = 15
# The figures that are judged, if a sample has them; those that a busy machine disturbs least come first. Wall-clock
# time says little without a floor that was measured alternately.
_JUDGED = ("cpu_ms", "times_floor", "times")
_ELSE = "wall_ms"


@dataclass(frozen=True, slots=True)
class Compared:
    """The intervals of a row's ratios (this tree : the other revision) by figure, or the reason why there are none."""

    row: Row
    intervals: Mapping[str, Interval]
    allowance: float
    missing: str = ""

    @property
    def verdict(self) -> Verdict | str:
        """Slower in any figure is slower. Otherwise the first figure decides, because it has the least noise."""
        if self.missing:
            return "not measured"
        verdicts = [interval.verdict(self.allowance) for interval in self.intervals.values()]
        return "slower" if "slower" in verdicts else verdicts[0]


def compared(row: Row, this: Side, other: Side, *, pairs: int, allowance: float) -> Compared:
    """Take pairs of samples; the two sides alternate in going first, so that neither profits from its place."""
    samples: dict[str, list[Figures]] = {"this tree": [], "the other revision": []}
    label = ""
    try:
        takers = {}
        for label, side in zip(samples, (this, other), strict=True):
            takers[label] = row.prepare(side)
        for number in range(pairs):
            for label in list(samples)[:: -1 if number % 2 else 1]:
                samples[label].append(takers[label]())
    except NotMeasured as error:
        return Compared(row, {}, allowance, f"{label}: {error}")
    ours, theirs = samples.values()
    intervals = {
        figure: median_interval(ratios([each[figure] for each in ours], [each[figure] for each in theirs]))
        for figure in judged(ours[0], theirs[0])
    }
    return Compared(row, intervals, allowance, "" if intervals else "it has no figure that can be compared")


def judged(ours: Figures, theirs: Figures) -> list[str]:
    both = [figure for figure in (*_JUDGED, _ELSE) if figure in ours and figure in theirs]
    return [figure for figure in both if figure != _ELSE or "times_floor" not in both]
