"""Measures steps of a DBOS workflow on its SQLite database, alternating with the floor. Run by runtime_bench.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dbos import DBOS
from figures_of_peers import TEXT, beside_the_floor, durable_append, tell

folder = Path(sys.argv[1])
DBOS(config={"name": "peer", "system_database_url": f"sqlite:///{folder / 'peer.sqlite'}"})


@DBOS.step()
def work(number: int) -> dict[str, object]:
    return {"number": number, "text": TEXT}


@DBOS.workflow()
def flow() -> dict[str, float]:
    return beside_the_floor(durable_append(folder / "floor"), work)


DBOS.launch()
tell(flow())
os._exit(0)
