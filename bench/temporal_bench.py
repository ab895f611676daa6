"""Measures an effect on Temporal and the same activity without the plug-in, and one run on each engine:
`python -m bench.temporal_bench effect ADDRESS`, `sqlite`, `postgres URL` or `temporal ADDRESS`.

The effect and the activity are called one after the other by a workflow, in turns, by workers in this process. The
server is the one that the tests use. The figures are for one activity; `times_floor` compares processor time of the
worker, because wall-clock time is mostly that of the server. A run has one step and one effect, and one is executed
after the other.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from bench import postgres_rows
from bench.rows import Row, Sampler
from bench.sides import ROOT, Figures, Side
from workpacket.runtime import Runtime
from workpacket.runtime.queue import Offer, Queue
from workpacket.runtime.queue import Worker as QueueWorker
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.temporal import WorkpacketPlugin, effect, start

if TYPE_CHECKING:
    from temporal.server import TemporalServer

ACTIVITIES = 200
ROUNDS = 7
RUNS = 100
_NUMBERS = count(1)


@activity.defn(name="work")
async def plain(number: int) -> int:
    return number


@effect(recovery="manual")
@activity.defn(name="work")
async def marked(number: int) -> int:
    return number


@workflow.defn
class Many:
    @workflow.run
    async def run(self, calls: int) -> int:
        limit = timedelta(seconds=60)
        for number in range(calls):
            await workflow.execute_activity("work", number, start_to_close_timeout=limit, heartbeat_timeout=limit)
        return calls


async def measured(client: Client, queue: str) -> tuple[float, float]:
    """Return milliseconds of processor time and wall-clock time for each activity."""
    began, spent = time.perf_counter(), time.process_time()
    await client.execute_workflow(Many.run, ACTIVITIES, id=f"many-{next(_NUMBERS)}", task_queue=queue)
    return tuple(1e3 * each / ACTIVITIES for each in (time.process_time() - spent, time.perf_counter() - began))  # type: ignore[return-value]


async def compare(address: str) -> Figures:
    without = await Client.connect(address)
    with_us = await Client.connect(address, plugins=[WorkpacketPlugin()])
    both: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    async with (
        Worker(without, task_queue="without", workflows=[Many], activities=[plain]),
        Worker(with_us, task_queue="with", workflows=[Many], activities=[marked]),
    ):
        for number in range(ROUNDS + 1):
            turns = (("without", without), ("with", with_us))
            for queue, client in turns if number % 2 else reversed(turns):
                figures = await measured(client, queue)
                if number:  # the first round warms up
                    both[queue].append(figures)
    cpu, wall = ({name: statistics.median(one[at] for one in both[name]) for name in both} for at in (0, 1))
    return {
        "wall_ms": wall["with"], "cpu_ms": cpu["with"], "times_floor": cpu["with"] / cpu["without"],
        "times_floor_wall": wall["with"] / wall["without"],
    }  # fmt: skip


async def price_of(order: int) -> int:
    return order * 3


async def charge(amount: int, key: str) -> str:
    return f"charged {amount} for {key}"


async def sell(run: Any, order: int) -> str:
    """A run function, which every engine executes."""
    amount = await run.step("price", price_of, order)
    charged: str = await run.effect("charge", charge, amount, key=f"order-{order}")
    return charged


def figures(began: float, spent: float) -> Figures:
    """Return the figures of one of the runs."""
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    return {"wall_ms": 1e3 * wall / RUNS, "cpu_ms": 1e3 * cpu / RUNS}


async def on_sqlite() -> Figures:
    with tempfile.TemporaryDirectory() as folder, Runtime.open(Path(folder) / "runs.db") as runtime:
        began, spent = time.perf_counter(), time.process_time()
        for order in range(RUNS):
            async with runtime.async_run("sell", key=str(order), inputs={"order": order}) as run:
                await sell(run, order=order)
        return figures(began, spent)


def on_postgres(url: str) -> Figures:
    store = PostgresStore(url)
    queue = Queue(store, f"engines {time.time_ns()}")
    for order in range(RUNS):
        queue.offer(Offer("sell", key=f"{time.time_ns()}", inputs={"order": order}))
    began, spent = time.perf_counter(), time.process_time()
    done = QueueWorker(Runtime(store), queue, {"sell": sell}).work(until_empty=True)
    if done != RUNS:
        raise RuntimeError(f"only {done} runs were done")
    found = figures(began, spent)
    store.close()
    return found


async def on_temporal(address: str) -> Figures:
    client = await Client.connect(address, plugins=[WorkpacketPlugin(jobs={"sell": sell})])
    async with Worker(client, task_queue="sell"):
        began, spent = time.perf_counter(), time.process_time()
        for order in range(RUNS):
            run = await start(client, "sell", key=f"{time.time_ns()}", task_queue="sell", inputs={"order": order})
            await run.result()
        return figures(began, spent)


def rows() -> Iterator[Row]:
    yield Row("temporal-effect", _on_server("effect"), "1.15x", repeats=3)
    yield Row("engine-sqlite", lambda side: lambda: side.figures("bench.temporal_bench", "sqlite"), repeats=3)
    yield Row("engine-postgres", _on_postgres, repeats=3)
    yield Row("engine-temporal", _on_server("temporal"), repeats=3)


def _on_postgres(side: Side) -> Sampler:
    server = postgres_rows.server_of(side)
    return lambda: side.figures("bench.temporal_bench", "postgres", server.url())


def _on_server(name: str) -> Callable[[Side], Sampler]:
    def prepare(side: Side) -> Sampler:
        server = _server(side)
        return lambda: side.figures("bench.temporal_bench", name, server.address)

    return prepare


def _server(side: Side) -> TemporalServer:
    sys.path.append(str(ROOT / "tests"))
    from temporal.server import TemporalServer

    def make(_path: Path) -> TemporalServer:
        server = TemporalServer()
        side.when_done(server.remove)
        server.start()
        return server

    return side.made("temporal", make)


def main(name: str, *place: str) -> Figures:
    if name == "postgres":
        return on_postgres(*place)
    if name == "sqlite":
        return asyncio.run(on_sqlite())
    return asyncio.run(compare(*place) if name == "effect" else on_temporal(*place))


if __name__ == "__main__":
    # Imported again by its name: a run function in the script that was started is not fit for Temporal.
    from bench.temporal_bench import main as imported

    print(json.dumps(imported(*sys.argv[1:])))
