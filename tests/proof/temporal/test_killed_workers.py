"""Workers and the server are killed while runs with effects go on: every run ends, every effect happens once.

A scripted person decides effects whose outcome is unknown: by looking at the world outside. At the end, Temporal's
history and the packet's log are compared. With WORKPACKET_PROOF=bounded, a share of the runs and kills.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from lifecycle.governed import Governed
from proof.share import bounded
from temporal.conftest import governed, world
from temporal.jobs import JOBS, happened
from temporal.server import TemporalServer
from workpacket.git.repository import find_repository
from workpacket.runtime.errors import RunBlocked
from workpacket.temporal import WorkpacketPlugin, answer, differences, questions, start
from workpacket.temporal.client import effects_of, twice
from workpacket.temporal.decisions import Choice

__all__ = ["governed", "world"]

NAME = "WP-1-Greeting-v1"
WORKERS = 4
RUNS, KILLS, SERVER_KILLS = (60, 12, 1) if bounded() else (2000, 300, 5)
AT_ONCE = 150
LINKED = 10  # one run in this many belongs to the packet
QUEUE = "proof"
PROGRAM = Path(__file__).with_name("worker_program.py")
LONGEST = 400 if bounded() else 3000


class Fleet:
    """The workers and the server, with a count of how often they were killed."""

    def __init__(self, server: TemporalServer, repository: Path, log: Path) -> None:
        self.server = server
        self.kills: Counter[str] = Counter()
        self._repository = repository
        self._log = log
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._workers = [self._worker() for _ in range(WORKERS)]

    def _worker(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, str(PROGRAM), self.server.address, QUEUE, str(self._repository)]
        path = os.pathsep.join(sys.path)
        with self._log.open("ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": path})

    def kill_one(self, chance: random.Random) -> None:
        number = chance.randrange(WORKERS)
        worker = self._workers[number]
        if worker.poll() is None:
            self.kills["workers"] += 1
        worker.kill()
        worker.wait()
        self._workers[number] = self._worker()

    def kill_server(self) -> None:
        self.server.kill()
        self.kills["server"] += 1
        self.server.start()

    def renew(self) -> None:
        """Start again what ended by itself, such as a worker that lost its server."""
        self._workers = [one if one.poll() is None else self._worker() for one in self._workers]

    def end(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()


async def kill_now_and_then(fleet: Fleet, chance: random.Random) -> None:
    """Workers at random moments, and the server evenly among them."""
    every = KILLS // (SERVER_KILLS + 1)
    while fleet.kills["workers"] < KILLS or fleet.kills["server"] < SERVER_KILLS:
        await asyncio.sleep(chance.uniform(0.2, 2.2))
        fleet.renew()
        if fleet.kills["workers"] < KILLS:
            fleet.kill_one(chance)
        if fleet.kills["server"] < SERVER_KILLS and fleet.kills["workers"] >= every * (fleet.kills["server"] + 1):
            await asyncio.to_thread(fleet.kill_server)


async def start_all(client: Client, ended: set[str], chance: random.Random) -> list[str]:
    """Start the runs, some of them at a time."""
    started: list[str] = []
    for number in range(RUNS):
        while len(started) - len(ended) >= AT_ONCE:
            await asyncio.sleep(0.1)
        packet = NAME if number % LINKED == 0 else ""
        inputs: dict[str, Any] = {"number": number, "seconds": round(chance.uniform(0.0, 0.6), 2)}
        started.append(await begun(client, str(number), inputs, packet))
    return started


async def begun(client: Client, key: str, inputs: dict[str, Any], packet: str) -> str:
    while True:
        try:
            return (await start(client, "paying", key=key, task_queue=QUEUE, inputs=inputs, packet=packet)).id
        except RPCError:  # the server is away; asked again, the key names the same run
            await asyncio.sleep(0.2)


async def follow(client: Client, ended: set[str], decided: Counter[str], fleet: Fleet) -> None:
    """Count the runs that have ended, and answer what waits for a person."""
    while len(ended) < RUNS:
        await asyncio.sleep(0.5)
        fleet.renew()
        try:
            ended |= {one.id async for one in client.list_workflows("ExecutionStatus = 'Completed'")}
            running = [one.id async for one in client.list_workflows("ExecutionStatus = 'Running'")]
            for run in running:
                await decide(client, run, decided)
        except (TimeoutError, RPCError, RunBlocked):
            continue  # the server or a worker is away, or the question was answered in the meantime


async def decide(client: Client, run: str, decided: Counter[str]) -> None:
    try:
        open_questions = await asyncio.wait_for(questions(client, run), 2)
    except (TimeoutError, RPCError):
        return
    for question in open_questions:
        paid = [row for row in happened() if row.endswith(f" {run}")]
        choice: Choice = "mark_done" if paid else "retry"
        await answer(client, run, question["subject"], choice, value=f"receipt {run}", by="person:ann")
        decided[choice] += 1


async def story(server: TemporalServer, repository: Path, log: Path, seed: int) -> dict[str, Any]:
    chance, ended, decided = random.Random(seed), set[str](), Counter[str]()
    client = await Client.connect(server.address, plugins=[WorkpacketPlugin(jobs=JOBS)])
    fleet = Fleet(server, repository, log)
    fleet.start()
    began = time.monotonic()
    try:
        killing = asyncio.create_task(kill_now_and_then(fleet, chance))
        following = asyncio.create_task(follow(client, ended, decided, fleet))
        runs = await start_all(client, ended, random.Random(seed + 1))
        await asyncio.wait_for(asyncio.gather(following, killing), LONGEST)
        found = [one async for one in differences(client, find_repository(repository))]
        outcomes = {run: await effects_of(client, run) for run in runs}
        results = [await client.get_workflow_handle(run).result() for run in runs]
    finally:
        killing.cancel()
        following.cancel()
        fleet.end()
    seconds = round(time.monotonic() - began)
    return {
        "runs": runs, "outcomes": outcomes, "results": results, "differences": found, "kills": fleet.kills,
        "decided": decided, "seconds": seconds, "seed": seed,
    }  # fmt: skip


def test_every_run_ends_and_every_effect_happens_once(
    governed: Governed, world: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    server, seed = TemporalServer(), int(os.environ.get("WORKPACKET_PROOF_SEED") or time.time_ns() % 2**32)
    try:
        server.start()
        played = asyncio.run(story(server, governed.root, tmp_path / "workers.log", seed))
    finally:
        server.remove()
    lost = sum(row[2] == "lost" for rows in played["outcomes"].values() for row in rows)
    with capsys.disabled():
        print(
            f"\n{RUNS} runs, {dict(played['kills'])} killed, {lost} effects lost with their worker, decided "
            f"{dict(played['decided'])}, {played['seconds']} s, seed {seed}"
        )
    assert played["kills"] == {"workers": KILLS, "server": SERVER_KILLS}
    assert [row for row, times in Counter(happened()).items() if times != 1] == []
    assert sorted(row.rpartition(" ")[2] for row in happened()) == sorted(played["runs"])
    assert [run for run, rows in played["outcomes"].items() if twice(rows)] == []
    assert all(
        result.startswith(f"receipt {run} ") for run, result in zip(played["runs"], played["results"], strict=True)
    )
    assert played["differences"] == []
    assert len(governed.state(NAME).runs) == RUNS // LINKED
