"""A row of the table: a name that never changes, and the way to take a sample."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from bench.sides import Figures, Side
from bench.timing import OUR_PATIENCE, NotMeasured

Sampler = Callable[[], Figures]


@dataclass(frozen=True, slots=True)
class Row:
    """`target` is the goal: milliseconds of wall-clock time (`30`), of processor time (`150 CPU`), or a multiple of the
    wall-clock time of the floor (`3x`), or of processor time beyond that of the floor (`12 CPU more`), megabytes
    (`400 MB`), or the most tokens that an agent reads for a packet (`6000 tokens`).
    `floor` names the row that this one is compared with. If the row `must` meet its target, the benchmark fails when it
    does not.
    """

    name: str
    prepare: Callable[[Side], Sampler]
    target: str = ""
    floor: str = ""
    kind: Literal["ours", "floor", "peer"] = "ours"
    repeats: int = 9
    must: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """The samples of a row, or the reason why there are none."""

    row: Row
    samples: Sequence[Figures] = ()
    missing: str = ""
    floor: Measured | None = field(default=None, repr=False)

    def median(self, figure: str) -> float | None:
        values = [sample[figure] for sample in self.samples if figure in sample]
        return statistics.median(values) if values else None

    @property
    def figures(self) -> dict[str, float]:
        """Return the median of each figure, the least wall-clock time, and the multiple of the floor."""
        names = dict.fromkeys(name for sample in self.samples for name in sample)
        medians = {name: median for name in names if (median := self.median(name)) is not None}
        if "wall_ms" in medians:
            medians["least_wall_ms"] = min(sample["wall_ms"] for sample in self.samples)
        for figure in ("wall_ms", "cpu_ms"):
            below = self.floor.median(figure) if self.floor else None
            if below and figure in medians:
                medians[f"times_floor_{figure.partition('_')[0]}"] = medians[figure] / below
                if figure == "cpu_ms" and self.row.target.endswith("more"):
                    medians["cpu_ms_more"] = medians[figure] - below
        return medians

    @property
    def verdict(self) -> str:
        """Whether the target, if any, is met."""
        number, unit = re.fullmatch(r"([\d.]*)(.*)", self.row.target).groups()  # type: ignore[union-attr]  # matches all
        units = {"": "wall_ms", " CPU": "cpu_ms", "x": "times_floor_wall", " CPU more": "cpu_ms_more", " MB": "peak_mb"}
        units |= {" tokens": "tokens"}
        figures = self.figures
        # Rows that measure themselves take turns with their floor.
        value = figures.get("times_floor") if unit == "x" and "times_floor" in figures else figures.get(units[unit])
        if not number or value is None:
            return ""
        return "met" if value <= float(number) else "missed"


def selected(rows: Sequence[Row], patterns: Iterable[str]) -> list[Row]:
    """Return the rows whose names match one of the patterns, in table order; all rows if there is no pattern.

    A pattern is a name or a glob; a space in it stands for a dash. A pattern that matches nothing is an error, because
    a row that was not measured must not look like one that passed.
    """
    wanted = [pattern.strip().lower().replace(" ", "-") for pattern in patterns]
    for pattern in wanted:
        if not any(fnmatchcase(row.name, pattern) for row in rows):
            raise UnknownRow(f"no row is called {pattern!r}; --list shows the names")
    return [row for row in rows if not wanted or any(fnmatchcase(row.name, pattern) for pattern in wanted)]


class UnknownRow(Exception):
    """A pattern matches no row."""


def with_floors(chosen: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return the chosen rows and the floors that they refer to, which come before them in the table."""
    names = {row.name for row in chosen} | {row.floor for row in chosen}
    return [row for row in rows if row.name in names]


def measured(row: Row, side: Side, floor: Measured | None = None) -> Measured:
    """Take the row's samples. Any failure belongs to the row, and the benchmark continues."""
    try:
        sample = row.prepare(side)
        return Measured(row, [sample() for _ in range(row.repeats)], floor=floor)
    except NotMeasured as error:
        return Measured(row, missing=str(error))


def command(
    *words: str,
    within: Callable[[Side], Path],
    before: Callable[[Side, Path], object] | None = None,
    statuses: Sequence[int] = (0,),
) -> Callable[[Side], Sampler]:
    """Take samples of `workpacket WORDS` in a repository.

    The command runs once unmeasured to warm the caches, unless there is something to do `before` each sample.
    """
    return program(lambda side: [side.workpacket, *words], within=within, before=before, statuses=statuses)


def program(
    line: Callable[[Side], Sequence[str]],
    *,
    within: Callable[[Side], Path],
    before: Callable[[Side, Path], object] | None = None,
    statuses: Sequence[int] = (0,),
    patience: float = OUR_PATIENCE,
) -> Callable[[Side], Sampler]:
    """Take samples of any command in a repository."""

    def prepare(side: Side) -> Sampler:
        folder, words = within(side), line(side)
        if before is None:
            side.run(words, folder, statuses=statuses, patience=patience)

        def sample() -> Figures:
            if before is not None:
                before(side, folder)
            taken = side.run(words, folder, statuses=statuses, patience=patience)
            return {"wall_ms": taken.wall, "cpu_ms": taken.cpu, "peak_mb": taken.peak}

        return sample

    return prepare


def within_a_process(module: str, *arguments: str) -> Callable[[Side], Sampler]:
    """Take samples that a process measures itself and prints: `python -m MODULE ARGUMENTS`."""
    return lambda side: lambda: side.figures(module, *arguments)
