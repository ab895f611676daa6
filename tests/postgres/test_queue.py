"""The queue: who gets which job when, and what becomes of jobs and of workers that do not end well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from workpacket.runtime import Run, Runtime
from workpacket.runtime.catalog import following
from workpacket.runtime.errors import NewerSchema, RunBlocked
from workpacket.runtime.queue import Offer, Queue, Worker
from workpacket.runtime.stores.postgres.access import PostgresAccess, address_of_url
from workpacket.runtime.stores.postgres.migrations import MIGRATIONS, migrate
from workpacket.runtime.stores.postgres.reader import News
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import Writer


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url, patience=5.0)
    yield store
    store.close()


@pytest.fixture
def queue(store: PostgresStore) -> Queue:
    return Queue(store)


def claimed(queue: Queue) -> list[str]:
    """The names of all jobs that can be claimed, in their order."""
    names = []
    while (job := queue.claim("me", 30)) is not None:
        names.append(job.key)
    return names


def test_the_highest_priority_comes_first_and_then_the_oldest(queue: Queue) -> None:
    for key, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        queue.offer(Offer("job", key=key, priority=priority))

    assert claimed(queue) == ["b", "d", "a", "c"]


def test_a_run_is_offered_once(queue: Queue) -> None:
    assert queue.offer(Offer("job", key="a")) == queue.offer(Offer("job", key="a")) == "job@a"

    assert claimed(queue) == ["a"]


def test_a_lane_is_as_wide_as_it_was_said_to_be(queue: Queue) -> None:
    for key in "abc":
        queue.offer(Offer("job", key=key, lane="bank", limit=2))
    queue.offer(Offer("job", key="z", priority=-1))

    first = queue.claim("me", 30)
    assert claimed(queue) == ["b", "z"]
    assert first is not None
    assert queue.finish(first)
    assert claimed(queue) == ["c"]


def test_a_run_that_waits_leaves_the_worker_free_and_is_continued_in_time(store: PostgresStore, queue: Queue) -> None:
    queue.offer(Offer("waits", key="a", priority=1))
    queue.offer(Offer("works", key="b"))
    order: list[str] = []

    def waits(run: Run) -> None:
        run.step("begin", lambda: order.append("begun"))
        run.sleep(3)
        order.append(f"over, attempt {run.attempt}")

    def works(_: Run) -> None:
        order.append("worked")

    worker = Worker(Runtime(store), queue, {"waits": waits, "works": works}, idle=0.2)
    done = threading.Thread(target=worker.work, daemon=True)
    done.start()
    deadline = time.monotonic() + 60
    while len(order) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    worker.stop()
    done.join(30)
    assert order == ["begun", "worked", "over, attempt 2"]
    assert queue.jobs() == ()


def test_what_is_due_does_not_wait_for_the_end_of_the_queue(store: PostgresStore, queue: Queue) -> None:
    queue.offer(Offer("job", key="due", delay=0.05, priority=1))
    for number in range(20):
        queue.offer(Offer("job", key=f"{number:02}"))
    done: list[str] = []

    def task(run: Run) -> None:
        done.append(run.id)
        time.sleep(0.02)

    Worker(Runtime(store), queue, {"job": task}, idle=0.05).work(until_empty=True)
    assert "job@due" in done[:-5]


def test_a_delayed_job_waits_for_its_time(queue: Queue) -> None:
    queue.offer(Offer("job", key="later", delay=0.2))
    queue.refresh()
    assert claimed(queue) == []

    time.sleep(0.25)
    queue.refresh()
    assert claimed(queue) == ["later"]


def test_a_job_whose_run_is_held_without_the_queue_is_passed_over(store: PostgresStore, queue: Queue) -> None:
    store.acquire("job@a", "somebody", 30)
    queue.offer(Offer("job", key="a"))
    queue.offer(Offer("job", key="b"))

    assert claimed(queue) == ["b"]


def test_a_worker_does_the_runs_and_the_queue_is_empty_after(store: PostgresStore, queue: Queue) -> None:
    done: list[object] = []
    runtime = Runtime(store)
    for number in range(3):
        queue.offer(Offer("add", key=str(number), inputs={"n": number}))

    assert Worker(runtime, queue, {"add": lambda run: done.append(run.id)}).work(until_empty=True) == 3
    assert done == ["add@0", "add@1", "add@2"]
    assert queue.jobs() == ()
    assert [line.liveness for line in runtime.runs()] == ["completed"] * 3
    assert store.leases() == ()


def test_what_may_pass_is_tried_again_and_then_dead_with_its_reason(store: PostgresStore, queue: Queue) -> None:
    queue.offer(Offer("bad", key="a", max_tries=2))
    tried: list[int] = []

    def bad(run: Run) -> None:
        tried.append(1)
        raise ValueError("the bank is closed")

    worker = Worker(Runtime(store), queue, {"bad": bad}, first_wait=0.05)
    worker.work(until_empty=True)
    (waiting,) = queue.jobs()
    assert (waiting.state, waiting.reason) == ("delayed", "worker_failed")

    time.sleep(0.1)
    worker.work(until_empty=True)
    (dead,) = queue.jobs()
    assert (dead.state, dead.reason, len(tried)) == ("dead", "worker_failed", 2)
    assert "the bank is closed" in dead.detail
    assert queue.revive(dead.id)
    assert claimed(queue) == ["a"]


def test_what_only_a_person_can_help_is_dead_at_once(store: PostgresStore, queue: Queue) -> None:
    queue.offer(Offer("ask", key="a"))

    def ask(run: Run) -> None:
        raise RunBlocked("who pays?", code="needs_confirmation")

    Worker(Runtime(store), queue, {"ask": ask}).work(until_empty=True)

    assert [(job.state, job.reason) for job in queue.jobs()] == [("dead", "needs_confirmation")]


def test_a_worker_that_is_too_old_for_the_tables_ends_and_buries_no_job(schema_url: str) -> None:
    store = PostgresStore(schema_url)
    queue = Queue(store)
    for number in range(3):
        queue.offer(Offer("job", key=str(number), max_tries=1))
    migrate(store.access, (*MIGRATIONS, ("ALTER FUNCTION {s}.append_1 RENAME TO append_2",)))
    with pytest.raises(NewerSchema):
        Worker(Runtime(store), queue, {"job": lambda run: run.step("work", dict)}).work(until_empty=True)
    assert [(job.state, job.tries) for job in queue.jobs()] == [("waiting", 0)] * 3
    store.close()


def test_a_worker_that_is_interrupted_hands_the_job_over(store: PostgresStore, queue: Queue) -> None:
    queue.offer(Offer("long", key="a"))

    def interrupted(run: Run) -> None:
        run.step("first", lambda: 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Worker(Runtime(store), queue, {"long": interrupted}).work(until_empty=True)
    assert [(job.state, job.tries) for job in queue.jobs()] == [("waiting", 0)]

    assert Worker(Runtime(store), queue, {"long": lambda run: run.step("first", lambda: 1)}).work(until_empty=True) == 1


def test_a_worker_that_is_told_to_end_hands_its_run_over_at_the_next_boundary(
    store: PostgresStore, queue: Queue
) -> None:
    queue.offer(Offer("long", key="a"))
    done: list[str] = []

    def long(run: Run) -> None:
        def act(name: str) -> None:
            done.append(name)
            worker.stop()

        for name in ("first", "second", "third"):
            run.step(name, act, name)

    worker = Worker(Runtime(store), queue, {"long": long})
    assert worker.work() == 0
    assert done == ["first"]
    (job,) = queue.jobs()
    assert (job.state, job.tries, job.reason) == ("waiting", 0, "handed_over")
    assert store.leases() == ()

    worker = Worker(Runtime(store), queue, {"long": long})
    worker.work()
    worker = Worker(Runtime(store), queue, {"long": long})
    assert worker.work(until_empty=True) == 1
    assert done == ["first", "second", "third"]


def test_a_worker_that_waits_is_woken_by_the_next_offer(url: str, store: PostgresStore, queue: Queue) -> None:
    began: list[float] = []

    def task(run: Run) -> None:
        began.append(time.monotonic())
        worker.stop()

    worker = Worker(Runtime(store), queue, {"job": task}, idle=20.0)
    thread = threading.Thread(target=worker.work)
    thread.start()
    time.sleep(0.5)
    offered = time.monotonic()
    queue.offer(Offer("job", key="a"))
    thread.join(10)
    assert began
    assert began[0] - offered < 5


def test_a_follower_is_woken_by_an_append(store: PostgresStore) -> None:
    writer = Writer("w", "run@1")
    store.append(writer.request("a"))
    woken: list[float] = []
    with following(store, "run@1") as wait:
        wait()  # what came before it listened is not announced
        threading.Timer(0.2, lambda: store.append(writer.request("b"))).start()
        before = time.monotonic()
        wait()
        woken.append(time.monotonic() - before)
    assert 0.1 < woken[0] < 3


def test_who_cannot_be_announced_to_looks_again_after_a_while(store: PostgresStore) -> None:
    news = News(PostgresAccess(address_of_url("postgresql://nobody@/?host=/nowhere")), "workpacket_jobs")
    began = time.monotonic()
    news.wait(0.2)
    assert not news.listening
    assert 0.15 < time.monotonic() - began < 5
    news.close()


WORKER = """
import os, sys, signal
from workpacket.runtime import Runtime, Settings
from workpacket.runtime.catalog import following
from workpacket.runtime.stores.postgres.access import PostgresAccess
from workpacket.runtime.stores.postgres.reader import News
from workpacket.runtime.queue import Queue
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.queue import Worker
def task(run):
    run.step("first", lambda: print("first", flush=True))
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    run.step("second", lambda: print("second", flush=True))
store = PostgresStore(sys.argv[1])
Worker(Runtime(store, Settings(lease_seconds=0.3)), Queue(store), {"job": task}).work(until_empty=True)
"""


def test_another_worker_resumes_the_run_of_one_that_was_killed(url: str, queue: Queue) -> None:
    queue.offer(Offer("job", key="a"))

    def worker(what: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WORKER, url, what]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ, timeout=60)

    died = worker("die")
    assert (died.returncode, died.stdout) == (-signal.SIGKILL, "first\n"), died.stderr
    time.sleep(0.4)
    lived = worker("live")
    assert (lived.returncode, lived.stdout) == (0, "second\n"), lived.stderr
    assert queue.jobs() == ()


def test_two_workers_never_do_one_job_twice(url: str, queue: Queue) -> None:
    for number in range(40):
        queue.offer(Offer("job", key=f"{number:02}"))
    command = [sys.executable, "-c", WORKER, url, "live"]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = "".join(child.communicate(timeout=60)[0] for child in children)

    assert told.count("first") == told.count("second") == 40
    assert queue.jobs() == ()
