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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from postgres.proxy import Proxy
from postgres.server import Server, free_port, programs
from proof.postgres.worker_program import NEXT
from proof.share import bounded
from workpacket.runtime.queue import Offer, Queue
from workpacket.runtime.records.events import Event, NewEvent
from workpacket.runtime.stores.contract import Append
from workpacket.runtime.stores.postgres import migrations
from workpacket.runtime.stores.postgres.access import PostgresAccess, address_of_url
from workpacket.runtime.stores.postgres.migrations import MIGRATIONS, migrate, partition, partitions
from workpacket.runtime.stores.postgres.store import PostgresStore

SECONDS = 8 if bounded() else 600
EVENTS = 20_000 if bounded() else 1_000_000
WORKERS = 4
BACKLOG = 60
EACH = 40  # streams of a partition: many are made while the workers go on
# A package of the version before, if there is one; otherwise this one behaves like it, as the calls are the same.
PREVIOUS = {"previous": {"PYTHONPATH": os.environ.get("WORKPACKET_PREVIOUS", os.environ.get("PYTHONPATH", ""))}}
PROGRAM = Path(__file__).with_name("worker_program.py")


class Crew:
    """The worker processes; one that was killed is replaced."""

    def __init__(self, url: str, folder: Path, version: str) -> None:
        self.command = [sys.executable, str(PROGRAM), url]
        self.version = version  # "previous" until the schema was upgraded, "next" once it was upgraded again
        self.folder = folder
        self.started = 0
        self.workers = [self.begin() for _ in range(WORKERS)]

    def begin(self, lease: float = 0.05) -> subprocess.Popen[bytes]:
        self.started += 1
        notes = self.folder / f"acknowledged-{self.started}"
        with open(self.folder / "errors", "ab") as errors:  # noqa: PTH123  # a plain file for another process
            words = [*self.command, str(notes), str(lease), "0.08", str(self.started), self.version]
            return subprocess.Popen(words, stderr=errors, env=os.environ | PREVIOUS.get(self.version, {}))

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
    require_sound_histories(server, tmp_path, seed, ())


def test_no_history_is_wrong_while_the_schema_is_upgraded(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From version 2 to 3, to partitions, and to a version whose calls have other names. Workers of version 2 go on
    until they end, those that begin later are refused; the renamed calls refuse everyone else at once. No job is lost.
    """
    with monkeypatch.context() as before:
        before.setattr(migrations, "SCHEMA_VERSION", 2)
        access = PostgresAccess(address_of_url(server.url()))
        access.open()
        migrate(access, MIGRATIONS[:2])
        fill(PostgresStore(server.url()))
        store = PostgresStore(server.url(), patience=20.0)
    taken: dict[str, float] = {}
    latecomers: list[subprocess.Popen[bytes]] = []

    def timed(what: str, act: Callable[[], object]) -> None:
        began = time.monotonic()
        assert act(), what
        taken[what] = time.monotonic() - began

    def upgrade(crew: Crew) -> None:
        timed("upgraded", lambda: migrate(access))
        latecomers.append(crew.begin())
        crew.version = ""

    def divide(_: Crew) -> None:
        timed("divided", lambda: partition(access, EACH))

    def rename(crew: Crew) -> None:
        crew.version = "next"
        timed("changed", lambda: migrate(access, (*MIGRATIONS, NEXT)))

    require_sound_histories(server, tmp_path, 2, (upgrade, divide, rename), store, "previous")
    (count,) = access.one("SELECT count(*) FROM {s}.events WHERE origin IS NOT NULL")
    (unknown,) = access.one(
        "SELECT count(*) FROM {s}.events e FULL JOIN {s}.writers w USING (project, writer, stream, version) "
        "WHERE (e.writer_seq = 1) IS DISTINCT FROM (w.writer IS NOT NULL) OR e.data IS NULL"
    )
    said = ", ".join(f"{what} in {seconds:.1f} s" for what, seconds in taken.items())
    print(f"{EVENTS} other events, {said}; {count} events, {partitions(access)} partitions afterwards")
    access.close()
    assert count > EVENTS
    assert unknown == 0, "a writer is not known, or one that does not exist is"
    assert latecomers[0].wait() != 0
    refused = (tmp_path / "errors").read_text("utf-8", "replace")
    assert "has schema 3; this version supports 2" in refused, "the latecomer was not told why"
    assert "the tables and this program have different versions" in refused, "no old worker was there at the end"


def fill(store: PostgresStore) -> None:
    """Events of other runs, which a migration has to read and change."""
    batch = 1000
    for number in range(EVENTS // batch):
        news = tuple(NewEvent("step.completed", "{}") for _ in range(batch))
        store.append(Append(f"many@{number}", news, f"many {number}", 1, "proof", 1, 1))
    store.close()


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


def require_sound_histories(
    server: Server,
    tmp_path: Path,
    seed: int,
    changes: Sequence[Callable[[Crew], None]],
    opened: PostgresStore | None = None,
    version: str = "",
) -> None:
    """`changes` are made one after the other, at equal intervals."""
    chance = random.Random(seed)
    store = opened or PostgresStore(server.url(), patience=20.0)
    queue = Queue(store)
    proxy = Proxy(server.port)
    crew = Crew(server.url(port=proxy.port), tmp_path, version)
    offered: list[str] = []
    try:
        began, left = time.monotonic(), list(changes)
        while (passed := time.monotonic() - began) < SECONDS or left:
            if left and passed > SECONDS * (len(changes) - len(left) + 1) / (len(changes) + 1):
                left.pop(0)(crew)
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
