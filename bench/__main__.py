"""The command line of the benchmark: `python -m bench --help`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import report
from bench.catalogue import all_rows
from bench.comparing import FEWEST_PAIRS, compared
from bench.rows import Measured, Row, UnknownRow, measured, selected, with_floors
from bench.sides import ROOT, Side, UnknownRevision, commit_of, laid_out
from bench.timing import stop_on_sigterm

OK, FAILED, USAGE = 0, 1, 2

DESCRIPTION = """\
Measure the rows of the benchmark and print them as a table.

Exit status: 0 all rows were measured, and with --compare none is slower;
1 a row is slower, could not be measured, or missed a target that it must meet; 2 wrong arguments.
Without --only, peers that cannot be installed or do not end are named and do not count.
"""


class Outcome:
    """The results so far, saved after every row so that an interrupted run does not lose them."""

    def __init__(self, conditions: report.Conditions, path: Path | None) -> None:
        self._conditions = conditions
        self._path = path
        self._rows: list[Mapping[str, object]] = []
        self._names: dict[str, list[str]] = {}

    def add(self, row: Mapping[str, object], *, told: str) -> None:
        """Record a row; `told` is the heading under which its name is repeated at the end, if any."""
        self._rows.append(row)
        if told:
            self._names.setdefault(told, []).append(str(row["name"]))
        if self._path is not None:
            report.save(self._path, self._conditions, self._rows)

    def status(self) -> int:
        for told, names in self._names.items():
            print(f"\n{told}: {', '.join(names)}")
        if self._path is not None:
            print(f"\nsaved to {self._path}")
        return FAILED if {"slower", "not measured", "missed"} & self._names.keys() else OK


def main(
    arguments: Sequence[str] | None = None,
    rows: Sequence[Row] | None = None,
    sources: Path = ROOT,
    results: Path = report.RESULTS,
) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(words)
    rows = all_rows() if rows is None else rows
    try:
        chosen = selected(rows, options.only)
        if options.list:
            for row in chosen:
                print(f"{row.name:38}{row.kind:8}{row.target}".rstrip())
            return OK
        if options.compare is not None:
            chosen = with_revisions(chosen)
        conditions = report.conditions(words, sources)
        if options.compare is not None:
            conditions["compared with"] = commit_of(sources, options.compare)
        report.print_conditions(conditions)
        outcome = Outcome(conditions, options.save and results / f"{options.save}.json")
        with tempfile.TemporaryDirectory(prefix="workpacket-bench-") as folder:
            if options.compare is None:
                measure(Path(folder), sources, with_floors(chosen, rows), outcome, every=not options.only)
            else:
                compare(Path(folder), sources, chosen, outcome, options)
    except (UnknownRow, UnknownRevision) as error:
        print(f"bench: {error}", file=sys.stderr)
        return USAGE
    return outcome.status()


def with_revisions(chosen: Sequence[Row]) -> list[Row]:
    """Compare our own rows; floors and peers do not differ between revisions."""
    ours = [row for row in chosen if row.kind == "ours"]
    if not ours:
        raise UnknownRow("--compare needs a row of the package itself; floors and peers have no other revision")
    return ours


def measure(scratch: Path, sources: Path, rows: Sequence[Row], outcome: Outcome, *, every: bool) -> None:
    done: dict[str, Measured] = {}
    report.print_heading()
    with Side(sources, scratch / "this") as side:
        for row in rows:
            done[row.name] = found = measured(row, side, done.get(row.floor))
            report.print_measured(found)
            left_out = "left out" if every and row.kind == "peer" else "not measured"
            missed = "missed" if row.must and found.verdict == "missed" else ""
            outcome.add(report.measured_as_json(found), told=left_out if found.missing else missed)


def compare(scratch: Path, sources: Path, rows: Sequence[Row], outcome: Outcome, options: argparse.Namespace) -> None:
    with (
        laid_out(sources, commit_of(sources, options.compare), scratch / "revision") as revision,
        Side(sources, scratch / "this") as this,
        Side(revision, scratch / "other") as other,
    ):
        print(f"ratios of this tree to {options.compare}, {options.pairs} pairs: median [95 % interval]\n")
        for row in rows:
            found = compared(row, this, other, pairs=options.pairs, allowance=options.allow / 100)
            report.print_compared(found)
            told = "" if found.verdict == "not slower" else found.verdict
            outcome.add(report.compared_as_json(found), told=told)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("bench", description=DESCRIPTION, formatter_class=argparse.RawTextHelpFormatter)
    made.add_argument("--list", action="store_true", help="list the rows and measure nothing")
    only = "measure this row only; a name or a glob; repeatable"
    made.add_argument("--only", metavar="ROW", action="append", default=[], help=only)
    made.add_argument("--compare", metavar="REV", help="compare this tree with a revision, in turns")
    made.add_argument("--pairs", type=_pairs, default=FEWEST_PAIRS, help="pairs of samples to compare (at least 15)")
    made.add_argument(
        "--allow", type=_percent, default=3.0, metavar="PERCENT", help="allowance before a row counts as slower (3)"
    )
    saving = "write bench/results/NAME.json (bench.json)"
    made.add_argument("--save", metavar="NAME", nargs="?", const="bench", type=report.result_name, help=saving)
    return made


def _pairs(text: str) -> int:
    if not text.isdecimal() or int(text) < FEWEST_PAIRS:
        raise argparse.ArgumentTypeError(f"at least {FEWEST_PAIRS} pairs are needed, not {text}")
    return int(text)


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1
    if not 0 <= value < 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage")
    return value


if __name__ == "__main__":
    stop_on_sigterm()
    sys.exit(main())
