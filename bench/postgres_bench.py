"""The runtime on a PostgreSQL server beside that server's own plain inserts, in one run.

    PYTHONPATH=tools:tests python -m bench.postgres_bench [--events N]

The floor of a step is two commits of one row each, that of the queue is one. All are measured in turns, on a server
of the bench's own with everything durable. The peers (PostgresSaver, DBOS) are not here yet.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psycopg

from postgres.server import Server
from workpacket.runtime import Runtime
from workpacket.runtime.contract import Append
from workpacket.runtime.events import NewEvent
from workpacket.runtime.postgres_queue import Job, Offer, Queue
from workpacket.runtime.postgres_store import PostgresStore
from workpacket.runtime.worker import Worker

RESULTS = Path(__file__).parent / "results" / "postgres.json"
TEXT = "x" * 1000
STEPS = 600
JOBS = 500
EVENTS = 1_000_000
INSERT = "INSERT INTO floor(data) VALUES (%s)"


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e6


def work(number: int) -> dict[str, object]:
    return {"number": number, "text": TEXT}


def step(store: PostgresStore, plain: psycopg.Connection) -> dict[str, float]:
    """A durable step in turn with two plain inserts of as many bytes."""
    floor: list[float] = []
    steps: list[float] = []
    with Runtime(store).run("bench") as run:
        for number in range(STEPS):
            floor.append(timed(lambda: [plain.execute(INSERT, (TEXT,)) for _ in range(2)]))
            steps.append(timed(partial(run.step, "work", work, number)))
    return {
        "two_inserts_us": round(statistics.median(floor), 1),
        "step_us": round(statistics.median(steps), 1),
        "times_floor_median": round(statistics.median(steps) / statistics.median(floor), 2),
        "times_floor_mean": round(statistics.fmean(steps) / statistics.fmean(floor), 2),
    }


def queue(store: PostgresStore, plain: psycopg.Connection) -> dict[str, float]:
    """Jobs claimed and finished a second, by the queue alone and as whole runs; one client, like the inserts."""
    inserts = JOBS / (timed(lambda: [plain.execute(INSERT, (TEXT,)) for _ in range(JOBS)]) / 1e6)
    alone, runs = Queue(store, "alone"), Queue(store, "runs")
    for number in range(JOBS):
        alone.offer(Offer("job", key=f"alone{number}"))
        runs.offer(Offer("job", key=f"run{number}"))

    def drain() -> None:
        finished: Job | None = None
        while (job := alone.claim("bench", 30, finished=finished)) is not None:
            finished = job

    claimed = JOBS / (timed(drain) / 1e6)
    worker = Worker(Runtime(store), runs, {"job": str})
    whole = JOBS / (timed(lambda: worker.work(until_empty=True)) / 1e6)
    return {
        "inserts_per_s": round(inserts),
        "claimed_and_finished_per_s": round(claimed),
        "times_inserts": round(claimed / inserts, 2),
        "whole_runs_per_s": round(whole),
        "whole_runs_times_inserts": round(whole / inserts, 2),
    }


def latest(store: PostgresStore, events: int) -> dict[str, float]:
    batch = 1000
    for first in range(0, events, batch):
        news = tuple(NewEvent("step.completed", "{}") for _ in range(batch - 1))
        news += (NewEvent("checkpoint", '{"id":"c","name":""}'),)
        store.append(Append("many@1", news, "many", first + 1, "bench", 1, 1))
    samples = sorted(timed(lambda: store.latest("checkpoints", "many@1")) for _ in range(1000))
    return {"events": events, "median_us": round(samples[500], 1), "p99_us": round(samples[990], 1)}


def main() -> None:
    events = int(sys.argv[sys.argv.index("--events") + 1]) if "--events" in sys.argv else EVENTS
    server = Server({"fsync": "on", "autovacuum": "off"})
    try:
        server.start()
        store = PostgresStore(server.url())
        with psycopg.connect(server.url(), autocommit=True) as plain:
            plain.execute("CREATE TABLE floor(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data text)")
            figures = {"step": step(store, plain), "queue": queue(store, plain), "latest": latest(store, events)}
        store.close()
    finally:
        server.remove()
    for name, row in figures.items():
        print(f"{name:8} {row}")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
