"""Four workers on one queue, killed, stopped, told to end, cut off, and the server killed under them: histories hold.

Leases of 50 ms and pauses of 80 ms: a worker that was stopped has lost its lease before it goes on. What is asked of
every history: no gap, no event of a zombie, no effect that succeeded twice, nothing lost that was acknowledged, and
every run has ended or stands in the queue with its reason.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres.proxy import Proxy
from postgres.server import Server, free_port, programs
from proof.postgres.worker_program import NEXT
from proof.share import bounded
from workpacket.runtime.queue import Offer, Queue
from workpacket.runtime.records.events import Event, NewEvent
from workpacket.runtime.stores.contract import Append
from workpacket.runtime.stores.postgres.migrations import MIGRATIONS, migrate
from workpacket.runtime.stores.postgres.store import PostgresStore

SECONDS = 8 if bounded() else 600
EVENTS = 20_000 if bounded() else 1_000_000
WORKERS = 4
BACKLOG = 60
PROGRAM = Path(__file__).with_name("worker_program.py")


class Crew:
    """The worker processes; one that was killed is replaced."""

    def __init__(self, url: str, folder: Path) -> None:
        self.command = [sys.executable, str(PROGRAM), url]
        self.version: list[str] = []  # "next" once the schema was upgraded
        self.folder = folder
        self.started = 0
        self.workers = [self.begin() for _ in range(WORKERS)]

    def begin(self, lease: float = 0.05) -> subprocess.Popen[bytes]:
        self.started += 1
        notes = self.folder / f"acknowledged-{self.started}"
        with open(self.folder / "errors", "ab") as errors:  # noqa: PTH123  # a plain file for another process
            words = [*self.command, str(notes), str(lease), "0.08", str(self.started), *self.version]
            return subprocess.Popen(words, stderr=errors)

    def kill(self, number: int) -> None:
        self.workers[number].send_signal(signal.SIGKILL)
        self.workers[number].wait()
        self.workers[number] = self.begin()

    def suspend(self, number: int, seconds: float) -> None:
        self.workers[number].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.workers[number].send_signal(signal.SIGCONT)

    def tell_to_end(self, number: int) -> None:
        """As whoever deploys a new version does; the worker hands its run over and is replaced."""
        self.workers[number].send_signal(signal.SIGTERM)

    def replace_the_dead(self) -> None:
        for number, worker in enumerate(self.workers):
            if worker.poll() is not None:
                self.workers[number] = self.begin()

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()

    def acknowledged(self) -> set[tuple[str, str]]:
        lines = [line for path in self.folder.glob("acknowledged-*") for line in path.read_text("utf-8").splitlines()]
        return {(line.split()[0], line.split()[1]) for line in lines}


def require_sound(events: list[Event]) -> None:
    """Reading them has verified the chain. Fences never go back: a lower one would be a zombie's."""
    fences = [event.fence for event in events if event.fence]
    assert fences == sorted(fences), events[0].stream
    succeeded = Counter(event.values()["effect"] for event in events if event.type == "effect.succeeded")
    assert all(times == 1 for times in succeeded.values()), events[0].stream


@pytest.fixture
def server() -> Iterator[Server]:
    if programs() is None:
        pytest.skip("there is no PostgreSQL on this machine and no wheel that brings it")
    server = Server({"fsync": "on"}, port=free_port())
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.mark.parametrize("seed", [1])
def test_no_history_is_wrong_whatever_dies(server: Server, tmp_path: Path, seed: int) -> None:
    require_sound_histories(server, tmp_path, seed, half_way=lambda _: None)


def test_no_history_is_wrong_while_the_schema_is_upgraded(server: Server, tmp_path: Path) -> None:
    """Old workers go on until they are refused; those that replace them are of the next version."""
    old = PostgresStore(server.url())
    fill(old)
    taken: list[float] = []

    def upgrade(crew: Crew) -> None:
        crew.version = ["next"]
        began = time.monotonic()
        assert migrate(old.access, (*MIGRATIONS, NEXT)) == 1
        taken.append(time.monotonic() - began)

    require_sound_histories(server, tmp_path, seed=2, half_way=upgrade)
    (count,) = old.access.one("SELECT count(*) FROM {s}.events WHERE origin IS NOT NULL")
    print(f"migrated with {EVENTS} other events in {taken[0]:.1f} s; {count} events afterwards")
    assert count > EVENTS
    refused = (tmp_path / "errors").read_text("utf-8", "replace")
    assert "NewerSchema" in refused, "no old worker was still there, so nothing was shown"
    old.close()


def fill(store: PostgresStore) -> None:
    """Events of other runs, which a migration has to read and change."""
    batch = 1000
    for first in range(0, EVENTS, batch):
        news = tuple(NewEvent("step.completed", "{}") for _ in range(batch))
        store.append(Append("many@1", news, "many", first + 1, "proof", 1, 1))


def disturb(server: Server, proxy: Proxy, crew: Crew, chance: random.Random) -> None:
    what = chance.random()
    if what < 0.2:
        crew.kill(chance.randrange(WORKERS))
    elif what < 0.6:
        crew.suspend(chance.randrange(WORKERS), 0.08)
    elif what < 0.65:
        server.stop()
        server.start()
    elif what < 0.8:
        proxy.cut()
    elif what < 0.9:
        proxy.lose_answer("SELECT 1")
    else:
        crew.tell_to_end(chance.randrange(WORKERS))
    crew.replace_the_dead()


def require_sound_histories(server: Server, tmp_path: Path, seed: int, half_way: Callable[[Crew], None]) -> None:
    chance = random.Random(seed)
    store = PostgresStore(server.url(), patience=20.0)
    queue = Queue(store)
    proxy = Proxy(server.port)
    crew = Crew(server.url(port=proxy.port), tmp_path)
    offered: list[str] = []
    try:
        until, half = time.monotonic() + SECONDS, time.monotonic() + SECONDS / 2
        while time.monotonic() < until:
            if time.monotonic() > half:
                half_way(crew)
                half = until
            if len(queue.jobs()) < BACKLOG:  # a busy machine is not buried in what nobody can do in time
                offered += [queue.offer(Offer("job", key=f"{len(offered) + n:06}", max_tries=1000)) for n in range(3)]
            time.sleep(chance.uniform(0.05, 0.3))
            disturb(server, proxy, crew, chance)
        crew.end()
        acts = proxy.lost, crew.started
        crew.workers = [crew.begin(lease=5.0) for _ in range(WORKERS)]
        deadline = time.monotonic() + 60 + SECONDS
        while any(job.state != "dead" for job in queue.jobs()) and time.monotonic() < deadline:
            crew.replace_the_dead()
            time.sleep(0.2)
    finally:
        crew.end()
        proxy.close()
    assert acts[0] > 0, "no answer was lost, so nothing was shown"
    assert acts[1] > WORKERS, "nobody died, so nothing was shown"
    stored: set[tuple[str, str]] = set()
    blocked = {job.stream for job in queue.jobs() if job.state == "dead" and job.reason}
    for stream in offered:
        events = list(store.read(stream))
        require_sound(events)
        stored |= {(stream, event.hash) for event in events}
        assert stream in blocked or events[-1].type == "run.completed", (stream, os.fspath(tmp_path / "errors"))
    assert crew.acknowledged() <= stored
    print(f"{len(offered)} runs, {len(stored)} events, {acts[0]} answers lost, {acts[1]} workers")
    # Keyed effects and steps may be done again: nothing here needs a person.
    assert queue.jobs() == ()
    store.close()
