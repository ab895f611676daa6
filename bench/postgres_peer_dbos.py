"""Steps of a DBOS workflow on a PostgreSQL server, in turns with the floor. Run by postgres_bench.py."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

import psycopg
from dbos import DBOS

TEXT = "x" * 1000
INSERT = "INSERT INTO floor(data) VALUES (%s)"
floor: list[float] = []
steps: list[float] = []
DBOS(config={"name": "peer", "system_database_url": sys.argv[1]})


@DBOS.step()
def work(number: int) -> dict[str, object]:
    return {"number": number, "text": TEXT}


@DBOS.workflow()
def flow() -> int:
    with psycopg.connect(sys.argv[1], autocommit=True) as plain:
        for number in range(150):
            began = time.perf_counter()
            plain.execute(INSERT, (TEXT,))
            plain.execute(INSERT, (TEXT,))
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
