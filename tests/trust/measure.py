"""Plays the lists and prints what share of each is answered as expected: `python -m trust.measure [LIST…] [--case ID]`.

Run with `PYTHONPATH=tools:tests`. With `--details` every case that is not answered as expected is shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from trust.play import Broken, Case, Outcome, Table, read_cases

LISTS = (
    "coverage_ways", "honest_changes", "review_findings", "own_attacks", "open_holes", "first_minutes", "later_attacks",
    "fresh_attacks", "in_flight", "last_attacks", "newest_attacks",
)  # fmt: skip
HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lists", nargs="*", default=LISTS)
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--details", action="store_true")
    options = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        table = Table(Path(folder))
        for name in options.lists:
            broken += measure(table, name, options.case, details=options.details or bool(options.case))
    return 1 if broken else 0


def measure(table: Table, name: str, only: list[str], *, details: bool) -> int:
    played = unexpected = broken = 0
    begun = time.perf_counter()
    for case in read_cases(HERE / f"{name}.jsonl"):
        if only and case.id not in only:
            continue
        for how in case.how:
            played += 1
            try:
                outcome = table.play(case, how)
            except Broken as caught:
                broken += 1
                print(f"  {case.id} {how}: cannot be played: {caught}", file=sys.stderr)
                continue
            fits = outcome.fits(case)
            unexpected += not fits
            if details and (not fits or only or case.expect == "refused"):
                print(line_about(case, how, outcome))
    seconds = time.perf_counter() - begun
    share = 100 * unexpected / played if played else 0
    print(
        f"{name}: {unexpected} of {played} not as expected ({share:.0f} %), {broken} cannot be played, {seconds:.0f} s"
    )
    return broken


def line_about(case: Case, how: str, outcome: Outcome) -> str:
    """`+` is a landing that was accepted, `-` one that was refused."""
    landings = "".join("+" if accepted else "-" for accepted in outcome.landings)
    said = [*sorted(outcome.codes), *outcome.unkept, outcome.stopped]
    fits = "ok  " if outcome.fits(case) else "FAIL"
    return f"  {fits} {case.id} {how} [{landings}] {case.title}: {' '.join(said)}"


if __name__ == "__main__":
    raise SystemExit(main())
