"""Plays stories of a team for some seconds: `nox -s simulate`. Prints each that fails, shortened, with its seed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from simulation.story import tell
from simulation.team import Stage


def main() -> int:
    parser = argparse.ArgumentParser("simulation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to begin new stories")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="the first seed")
    parser.add_argument("--stories", type=int, default=sys.maxsize, help="how many stories, at most")
    parser.add_argument("--whole", action="store_true", help="do not shorten what fails")
    said = parser.parse_args()
    began, played, landed, reds, faults = time.monotonic(), 0, 0, 0, []
    print(f"the first seed is {said.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="simulation-") as folder:
        stage = Stage(Path(folder))
        while played < said.stories and time.monotonic() - began < said.seconds:
            outcome = stage.play(tell(said.seed + played))
            played, landed, reds = played + 1, landed + outcome.landed, reds + outcome.reds
            if outcome.fault:
                print(f"seed {outcome.story.seed}: {outcome.fault}", flush=True)
                faults.append(outcome.story.seed)
                print(outcome if said.whole else stage.shortest(outcome), flush=True)
    print(f"{played} stories, {landed} landings, {reds} refused at first, {len(faults)} failed: {faults}")
    return 1 if faults or not played else 0


if __name__ == "__main__":
    sys.exit(main())
