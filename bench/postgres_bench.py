"""The runtime on a PostgreSQL server beside that server's own plain inserts, in one run.

    python -m bench.postgres_bench [--quick] [--peers FOLDER]

The floor of a step is two commits of one row each, that of the queue is one. All are measured in turns, on a server
of the bench's own with everything durable; the peers (LangGraph's PostgresSaver, DBOS) on that server too, each in turn
with the same floor. A peer that cannot be installed is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
for folder in ("tools", "tests"):  # the server of the tests is the server of the bench
    sys.path.insert(0, str(HERE.parent / folder))

import psycopg  # noqa: E402  # the paths above are needed first

from bench.postgres_workers import workers  # noqa: E402
from bench.runtime_bench import asked  # noqa: E402
from postgres.server import Server, programs  # noqa: E402
from workpacket.runtime import Runtime  # noqa: E402
from workpacket.runtime.queue.offering import Job, Offer, Queue  # noqa: E402
from workpacket.runtime.records.events import NewEvent  # noqa: E402
from workpacket.runtime.stores.contract import Append  # noqa: E402
from workpacket.runtime.stores.postgres.store import PostgresStore  # noqa: E402

RESULTS = HERE / "results" / "postgres.json"
PEERS = {
    "langgraph": ("langgraph", "langgraph-checkpoint-postgres", "psycopg[binary]", "psycopg-pool"),
    "dbos": ("dbos", "psycopg[binary]"),
}
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
    """Jobs claimed and finished a second by the queue alone; one client, like the inserts."""
    inserts = JOBS / (timed(lambda: [plain.execute(INSERT, (TEXT,)) for _ in range(JOBS)]) / 1e6)
    alone = Queue(store, "alone")
    for number in range(JOBS):
        alone.offer(Offer("job", key=f"alone{number}"))

    def drain() -> None:
        finished: Job | None = None
        while (job := alone.claim("bench", 30, finished=finished)) is not None:
            finished = job

    claimed = JOBS / (timed(drain) / 1e6)
    return {
        "inserts_per_s": round(inserts),
        "claimed_and_finished_per_s": round(claimed),
        "times_inserts": round(claimed / inserts, 2),
    }


def latest(store: PostgresStore, events: int) -> dict[str, float]:
    """Nobody has looked at the tables: no ANALYZE, no autovacuum."""
    batch = 1000
    for first in range(0, events, batch):
        news = tuple(NewEvent("step.completed", "{}") for _ in range(batch - 1))
        news += (NewEvent("checkpoint", '{"id":"c","name":""}'),)
        store.append(Append("many@1", news, "many", first + 1, "bench", 1, 1))
    samples = sorted(timed(lambda: store.latest("checkpoints", "many@1")) for _ in range(1000))
    return {"events": events, "median_us": round(samples[500], 1), "p99_us": round(samples[990], 1)}


def processor_us(process: int) -> float:
    """Processor time of a process of the server until now. Its share of a busy machine is no figure; this is."""
    return int(Path(f"/proc/{process}/schedstat").read_text("ascii").split()[0]) / 1000


def growth(store: PostgresStore, streams: int) -> dict[str, float]:
    """The slope that docs/scale.md rests on: what an append costs the server beside so many streams, their size."""
    (process,) = store.access.one("SELECT pg_backend_pid()")
    figures: dict[str, float] = {}
    made = 0
    for share in (100, 10, 1):
        while made < streams // share:
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
    return {**figures, "bytes_per_run_of_two_events": round(size / made)}


def measure(results: Path, *, quick: bool, environments: Path | None = None) -> None:
    if programs() is None:
        print("postgres: there is no PostgreSQL here and no wheel that brings it")
        return
    server = Server({"fsync": "on", "autovacuum": "off"})
    figures: dict[str, object] = {}
    try:
        server.start()
        durable = PostgresStore(server.url())
        relaxed = PostgresStore(
            server.url(workpacket_schema="many", options="-csynchronous_commit%3Doff"), connections=1
        )
        with psycopg.connect(server.url(), autocommit=True) as plain:
            plain.execute("CREATE TABLE floor(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data text)")
            figures["step"] = step(durable, plain)
            figures["queue"] = queue(durable, plain)
        for count in (1, 4):
            figures[f"runs, {count} worker{'s' * (count > 1)}"] = workers(server.url(), count)
        figures["growth"] = growth(relaxed, 1000 if quick else 20_000)
        figures["latest"] = latest(relaxed, 20_000 if quick else EVENTS)
        durable.close()
        relaxed.close()
        if not quick:
            figures |= peers(environments, server.url())
    finally:
        server.remove()
    for name, row in figures.items():
        print(f"postgres {name:12} {row}")
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


def peers(environments: Path | None, url: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        place = environments or Path(folder)
        return {
            **{
                name: asked(place / name, needs, HERE / f"postgres_peer_{name}.py", url)
                for name, needs in PEERS.items()
            },
            "langgraph growth": asked(place / "langgraph", PEERS["langgraph"], HERE / "postgres_peer_growth.py", url),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer events, no peers")
    parser.add_argument("--peers", type=Path, help="keep the environments of the peers here")
    options = parser.parse_args()
    measure(RESULTS, quick=options.quick, environments=options.peers)


if __name__ == "__main__":
    main()
