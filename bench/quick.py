"""The quick benchmark: `python -m bench.quick` fails if a row is slower than the recorded figures.

It takes at most a minute and measures no peers. Figures from two machines cannot be compared, so each row is measured
as a multiple of `python -c pass`, alternating with it, in processor time, which a busy machine affects least. The
recorded figures are in bench/landed.json. A row fails only if in two measurements the whole 95 % interval of its ratio
is above the recorded one by more than the noise. That finds a row that takes a third longer, but not one that takes a
twentieth longer; `python -m bench --compare` does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench import report
from bench.catalogue import all_rows
from bench.governance import PYTHON
from bench.intervals import FEWEST, Interval, median_interval
from bench.rows import Row, Sampler, selected
from bench.sides import ROOT, Side
from bench.timing import NotMeasured, stop_on_sigterm

LANDED = ROOT / "bench" / "landed.json"
ROWS = (
    "version",
    "one-unchanged-file",
    "one-edited-file",
    "one-file-without-cache",
    "list-100",
    "next-100-warm",
    "claim-100",
    "refused-with-pinned-spec",
    "verdict-fresh",
    "step",
    "effect",
)
# Seconds after which no further round begins, if there are enough for an interval.
LIMIT = 50
ROUNDS = 15
NOISE = 0.30
LAND = "python3 tools/just.py bench-quick --land"

Ratios = dict[str, list[float]]


class Benchmark:
    """Measures rows alternately with the floor. Rows that could not be measured are in `missing`, with the reason."""

    def __init__(self, side: Side, rows: Sequence[Row], floor: Row) -> None:
        self.missing: dict[str, str] = {}
        self._floor = floor.prepare(side)
        self._samplers: dict[str, Sampler] = {}
        for row in rows:
            try:
                self._samplers[row.name] = row.prepare(side)
            except NotMeasured as error:
                self.missing[row.name] = str(error)

    def measure(self, names: Iterable[str], until: float) -> Ratios:
        """Return the multiple of the floor's processor time for each row and round."""
        ratios: Ratios = {name: [] for name in names if name not in self.missing}
        for number in range(ROUNDS):
            if number >= FEWEST and time.monotonic() > until:
                break
            for name in [name for name in ratios if name not in self.missing]:
                try:
                    below = self._floor()["cpu_ms"]
                    ratios[name].append(self._samplers[name]()["cpu_ms"] / below)
                except NotMeasured as error:
                    self.missing[name] = str(error)
        return {name: values for name, values in ratios.items() if name not in self.missing}


def slower(ratios: Ratios, landed: Mapping[str, float], noise: float) -> list[str]:
    """Return the rows whose whole interval is above the recorded figure by more than the noise."""
    return [
        name
        for name, values in ratios.items()
        if name in landed and median_interval([each / landed[name] for each in values]).verdict(noise) == "slower"
    ]


def read_landed(path: Path) -> tuple[dict[str, float], str]:
    """Return the recorded figures, and the Python version that they were measured with."""
    if not path.exists():
        return {}, ""
    found = json.loads(path.read_text(encoding="utf-8"))
    return {name: float(value) for name, value in found["times python -c pass"].items()}, found["python"]


def land(path: Path, intervals: Mapping[str, Interval], conditions: report.Conditions) -> None:
    figures = {name: round(interval.median, 4) for name, interval in intervals.items()}
    found = {**conditions, "python": _python(), "times python -c pass": figures}
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def main(
    arguments: Sequence[str] | None = None,
    rows: Sequence[Row] | None = None,
    sources: Path = ROOT,
    landed_path: Path = LANDED,
) -> int:
    began = time.monotonic()
    parser = argparse.ArgumentParser("bench.quick", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--land", action="store_true", help="write the figures to bench/landed.json, to be committed")
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(words)
    rows = selected(all_rows(), [PYTHON, *ROWS]) if rows is None else rows
    chosen = [row for row in rows if row.name != PYTHON]
    conditions = report.conditions(words, sources, "bench.quick")
    report.print_conditions(conditions)
    landed, python = read_landed(landed_path)
    noise = NOISE if python in ("", _python()) else 2 * NOISE
    if noise > NOISE:
        print(f"landed with Python {python}, measured with {_python()}: judged with twice the noise\n")
    (floor,) = selected(rows, [PYTHON])
    with (
        tempfile.TemporaryDirectory(prefix="workpacket-bench-") as folder,
        Side(sources, Path(folder) / "this") as side,
    ):
        benchmark = Benchmark(side, chosen, floor)
        ratios = benchmark.measure([row.name for row in chosen], began + LIMIT)
        found = [] if options.land else slower(ratios, landed, noise)
        if found:  # measure again, because another process may have disturbed the first measurement
            found = slower(benchmark.measure(found, time.monotonic() + LIMIT), landed, noise)
    intervals = {name: median_interval(values) for name, values in ratios.items()}
    _print(intervals, landed, found, benchmark.missing)
    print(f"\n{len(next(iter(ratios.values()), []))} rounds, {time.monotonic() - began:.0f} s")
    if options.land and not benchmark.missing:
        land(landed_path, intervals, conditions)
        return 0
    unknown = [] if options.land else sorted({row.name for row in chosen} ^ landed.keys())
    return _failed(found, benchmark.missing, unknown)


def _failed(found: Sequence[str], missing: Mapping[str, str], unknown: Sequence[str]) -> int:
    if found:
        print(f"slower than landed, twice, by more than {NOISE:.0%}: {', '.join(found)}")
        print(f"find the change with `just bench --only {found[0]} --compare REV`; if it is meant to be: {LAND}")
    for name, reason in missing.items():
        print(f"not measured: {name}: {reason}")
    if unknown:
        print(f"measured or landed, but not both: {', '.join(unknown)}; {LAND}")
    return 1 if found or missing or unknown else 0


def _print(
    intervals: Mapping[str, Interval], landed: Mapping[str, float], found: Sequence[str], missing: Mapping[str, str]
) -> None:
    print(f"{'CPU, times `python -c pass`':30}{'median':>9}  {'95 % interval':20}{'landed':>9}")
    for name, interval in intervals.items():
        bounds = f"[{interval.low:.3f}, {interval.high:.3f}]"
        before = f"{landed[name]:9.3f}" if name in landed else f"{'none':>9}"
        print(f"{name:30}{interval.median:9.3f}  {bounds:20}{before}  {'slower' if name in found else ''}".rstrip())
    for name in missing:
        print(f"{name:30}not measured")


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


if __name__ == "__main__":
    stop_on_sigterm()
    sys.exit(main())
