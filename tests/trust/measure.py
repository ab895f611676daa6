"""Plays the lists and prints what share of each is answered as expected: `python -m trust.measure [LIST…] [--case ID]`.

Run with `PYTHONPATH=tools:tests`. With `--details` every case that is not answered as expected is shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from trust.play import Broken, Table, read_cases

LISTS = ("coverage_ways", "honest_changes", "review_findings", "own_attacks")
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
                said = "".join("+" if landed else "-" for landed in outcome.landings)
                codes = " ".join(sorted(outcome.codes))
                print(
                    f"  {'ok  ' if fits else 'FAIL'} {case.id} {how} [{said}] {case.title}: {codes} {outcome.unkept} {outcome.stopped}"
                )
    seconds = time.perf_counter() - begun
    share = 100 * unexpected / played if played else 0
    print(
        f"{name}: {unexpected} of {played} not as expected ({share:.0f} %), {broken} cannot be played, {seconds:.0f} s"
    )
    return broken


if __name__ == "__main__":
    raise SystemExit(main())
