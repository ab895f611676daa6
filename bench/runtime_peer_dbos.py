"""Steps of a DBOS workflow on its SQLite system database, in turns with the floor. Run by runtime_bench.py."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

from dbos import DBOS

folder = Path(sys.argv[1])
TEXT = "x" * 1000
floor: list[float] = []
steps: list[float] = []
DBOS(config={"name": "peer", "system_database_url": f"sqlite:///{folder / 'peer.sqlite'}"})


@DBOS.step()
def work(number: int) -> dict[str, object]:
    return {"number": number, "text": TEXT}


@DBOS.workflow()
def flow() -> int:
    descriptor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(150):
        began = time.perf_counter()
        os.write(descriptor, TEXT.encode())
        os.fdatasync(descriptor)
        floor.append(time.perf_counter() - began)
        began = time.perf_counter()
        work(number)
        steps.append(time.perf_counter() - began)
    return len(steps)


DBOS.launch()
flow()
print(
    json.dumps(
        {
            "median_us": round(statistics.median(steps) * 1e6, 1),
            "times_floor_median": round(statistics.median(steps) / statistics.median(floor), 2),
            "times_floor_mean": round(statistics.fmean(steps) / statistics.fmean(floor), 2),
        }
    ),
    flush=True,
)
os._exit(0)
