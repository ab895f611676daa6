"""Measures runs per second by worker processes, and plain inserts by as many processes on the same server.

Runs and inserts alternate in short rounds, so that both see the same load and the same disk. There are two kinds of
runs: `empty` ones write two durable records, those with one `step` three. The processor time of each process is
reported next to the rates, because it depends less on the load of the machine.

    python -m bench.postgres_workers insert|runs URL QUEUE      (a worker: started by `workers`)
"""

from __future__ import annotations

import subprocess
import sys
import time

import psycopg

from workpacket.runtime import Run, Runtime
from workpacket.runtime.queue import Offer, Queue, Worker
from workpacket.runtime.stores.postgres.store import PostgresStore

ROUNDS = 5
EACH = 100  # inserts, or runs, per process and round
TEXT = "x" * 1000
INSERT = "INSERT INTO floor(data) VALUES (%s)"


def empty(run: Run) -> None:
    pass


def step(run: Run) -> None:
    run.step("work", lambda: {"text": TEXT})


TASKS = {"empty": empty, "step": step}


def workers(url: str, count: int) -> dict[str, float]:
    """Insert rows; the table `floor` must exist."""
    seconds = dict.fromkeys(("inserts", *TASKS), 0.0)
    processor = dict.fromkeys(seconds, 0.0)
    store = PostgresStore(url)
    began = time.time_ns()  # earlier samples used other queue names
    for turn in range(ROUNDS):
        for kind in seconds:
            name = f"{kind} {count} {turn} {began}"
            if kind in TASKS:
                for number in range(EACH * count):
                    Queue(store, name).offer(Offer(kind, key=f"{name} {number}"))
            took, cost = _crew("runs" if kind in TASKS else "insert", url, name, count)
            seconds[kind] += took
            processor[kind] += cost
    store.close()
    done = ROUNDS * EACH * count
    figures: dict[str, float] = {f"{kind}_per_s": round(done / took) for kind, took in seconds.items()}
    figures |= {f"{kind}_times_inserts": round(seconds["inserts"] / seconds[kind], 2) for kind in TASKS}
    figures |= {f"{kind}_client_us": round(cost / done * 1e6) for kind, cost in processor.items()}
    return {"wall_ms": seconds["step"] / done * 1e3, "cpu_ms": processor["step"] / done * 1e3, **figures}


def _crew(what: str, url: str, name: str, count: int) -> tuple[float, float]:
    """Return how long `count` processes took, and their total processor time."""
    words = [sys.executable, "-m", "bench.postgres_workers", what, url, name]
    crew = [subprocess.Popen(words, stdin=-1, stdout=-1, text=True) for _ in range(count)]
    spans: list[tuple[float, float, float]] = []
    for process in crew:
        assert process.stdout is not None
        process.stdout.readline()  # it is ready
    for process in crew:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in crew:
        told = process.communicate()[0].split()
        spans.append((float(told[0]), float(told[1]), float(told[2])))
    return max(end for _, end, _ in spans) - min(began for began, _, _ in spans), sum(cost for _, _, cost in spans)


def _insert(url: str) -> None:
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as plain:
        _wait()
        began, cost = time.monotonic(), time.process_time()
        for _ in range(EACH):
            plain.execute(INSERT, (TEXT,))
        print(began, time.monotonic(), time.process_time() - cost)


def _runs(url: str, name: str) -> None:
    store = PostgresStore(url)
    worker = Worker(Runtime(store), Queue(store, name), TASKS)
    _wait()
    began, cost = time.monotonic(), time.process_time()
    worker.work(until_empty=True)
    print(began, time.monotonic(), time.process_time() - cost)
    store.close()


def _wait() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    if sys.argv[1] == "insert":
        _insert(sys.argv[2])
    else:
        _runs(sys.argv[2], sys.argv[3])
