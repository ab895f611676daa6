"""Measures the runtime and plain inserts on a PostgreSQL server: `python -m bench.postgres_bench NAME URL`.

The floor of a step is two commits of one row each, that of the queue one. Both are measured alternately with the row,
on a server started for the benchmark with everything durable, and so are the peers (LangGraph's PostgresSaver, DBOS).
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

from bench.postgres_workers import workers
from workpacket.runtime import Runtime
from workpacket.runtime.queue import Job, Offer, Queue
from workpacket.runtime.records.events import NewEvent
from workpacket.runtime.stores.contract import Append
from workpacket.runtime.stores.postgres.store import PostgresStore

TEXT = "x" * 1000
STEPS = 300
JOBS = 500
EVENTS = 1_000_000
STREAMS = 20_000
INSERT = "INSERT INTO floor(data) VALUES (%s)"


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def work(number: int) -> dict[str, object]:
    return {"number": number, "text": TEXT}


def step(url: str) -> dict[str, float]:
    """Measure a durable step alternately with two plain inserts of as many bytes."""
    floor: list[float] = []
    steps: list[float] = []
    cpu = 0.0
    store = PostgresStore(url)
    with psycopg.connect(url, autocommit=True) as plain, Runtime(store).run("bench") as run:
        for number in range(STEPS):
            floor.append(timed(lambda: [plain.execute(INSERT, (TEXT,)) for _ in range(2)]))
            began = time.process_time()
            steps.append(timed(partial(run.step, "work", work, number)))
            cpu += time.process_time() - began
    store.close()
    times = statistics.median(steps) / statistics.median(floor)
    return {"wall_ms": statistics.median(steps), "cpu_ms": cpu / STEPS * 1e3, "times_floor": times}


def queue(url: str) -> dict[str, float]:
    """Measure claiming and finishing a job in the queue, and an insert, with one client each."""
    with psycopg.connect(url, autocommit=True) as plain:
        insert = timed(lambda: [plain.execute(INSERT, (TEXT,)) for _ in range(JOBS)]) / JOBS
    store = PostgresStore(url)
    alone = Queue(store, f"alone {time.time_ns()}")
    for number in range(JOBS):
        alone.offer(Offer("job", key=f"alone{number}"))

    def drain() -> None:
        finished: Job | None = None
        while (job := alone.claim("bench", 30, finished=finished)) is not None:
            finished = job

    job = timed(drain) / JOBS
    store.close()
    return {"wall_ms": job, "times_floor": job / insert}


def latest(url: str) -> dict[str, float]:
    """Find the last checkpoint among this many events, without ANALYZE or autovacuum."""
    batch = 1000
    store = PostgresStore(url, connections=1)
    for first in range(0, EVENTS, batch):
        news = tuple(NewEvent("step.completed", "{}") for _ in range(batch - 1))
        news += (NewEvent("checkpoint", '{"id":"c","name":""}'),)
        store.append(Append("many@1", news, "many", first + 1, "bench", 1, 1))
    samples = sorted(timed(lambda: store.latest("checkpoints", "many@1")) for _ in range(1000))
    store.close()
    return {"wall_ms": samples[500], "p99_ms": samples[990]}


def processor_us(process: int) -> float:
    """Return the processor time that a server process has used, which does not depend on the load of the machine."""
    return int(Path(f"/proc/{process}/schedstat").read_text("ascii").split()[0]) / 1000


def growth(url: str) -> dict[str, float]:
    """Measure what an append costs the server with this many streams, and their size, for docs/scale.md."""
    store = PostgresStore(url, connections=1)
    (process,) = store.access.one("SELECT pg_backend_pid()")
    figures: dict[str, float] = {}
    made = 0
    for share in (100, 10, 1):
        while made < STREAMS // share:
            news = (NewEvent("run.started", '{"name":"many"}'), NewEvent("run.completed", "{}"))
            store.append(Append(f"many@{made:08d}", news, f"g{made}", 1, "bench", 1, 1))
            made += 1
        writer = f"last{made}"
        before = processor_us(process)
        for number in range(1, 501):
            store.append(Append(f"last@{made}", (NewEvent("step.completed", "{}"),), writer, number, "bench", 1, 1))
        figures[f"append_server_us_beside_{made}"] = round((processor_us(process) - before) / 500, 1)
    (size,) = store.access.one(
        "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c "
        "WHERE c.relnamespace = '{s}'::regnamespace AND c.relkind = 'r'"
    )
    store.close()
    figures["cpu_ms"] = figures[f"append_server_us_beside_{made}"] / 1000
    return {**figures, "bytes_per_run_of_two_events": round(size / made)}


def main() -> None:
    name, url, *arguments = sys.argv[1:]
    print(json.dumps(MEASUREMENTS[name](url, *map(int, arguments))), flush=True)


MEASUREMENTS: dict[str, Callable[..., dict[str, float]]] = {
    "step": step,
    "queue": queue,
    "workers": workers,
    "growth": growth,
    "latest": latest,
}

if __name__ == "__main__":
    main()
