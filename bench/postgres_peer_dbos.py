"""Measures steps of a DBOS workflow on a PostgreSQL server, alternating with the floor. Run by postgres_bench.py."""

from __future__ import annotations

import os
import sys

import psycopg
from dbos import DBOS
from figures_of_peers import TEXT, beside_the_floor, tell

INSERT = "INSERT INTO floor(data) VALUES (%s)"
DBOS(config={"name": "peer", "system_database_url": sys.argv[1]})


@DBOS.step()
def work(number: int) -> dict[str, object]:
    return {"number": number, "text": TEXT}


@DBOS.workflow()
def flow() -> dict[str, float]:
    with psycopg.connect(sys.argv[1], autocommit=True) as plain:
        return beside_the_floor(lambda: [plain.execute(INSERT, (TEXT,)) for _ in range(2)], work)


DBOS.launch()
tell(flow())
os._exit(0)
