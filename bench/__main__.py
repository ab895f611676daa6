"""`python -m bench [--quick]`: measures, prints two tables, writes JSON into bench/results."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench import approvals, governance, postgres_bench, runtime_bench
from bench.results import show

RESULTS = Path(__file__).parent / "results"
LARGE = 10_000
QUICK = 1_000


def main() -> None:
    large = QUICK if "--quick" in sys.argv else LARGE
    with tempfile.TemporaryDirectory(prefix="workpacket-bench-") as scratch:
        show(governance.rows(Path(scratch), large=large), RESULTS / "governance.json")
        show(approvals.rows(Path(scratch) / "approvals", large=large), RESULTS / "approvals.json")
    print()
    runtime_bench.measure(RESULTS / "runtime.json", quick="--quick" in sys.argv)
    print()
    postgres_bench.measure(RESULTS / "postgres.json", quick="--quick" in sys.argv)


if __name__ == "__main__":
    main()
