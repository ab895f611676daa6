"""Behind PgBouncer in transaction mode, whatever its version: connections are shared, so nothing is left on them."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from postgres.pooler import Pooler, program
from postgres.server import Server
from workpacket.runtime import Run, Runtime
from workpacket.runtime.catalog import following
from workpacket.runtime.queue import Offer, Queue, Worker
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import Writer


@pytest.fixture(scope="module")
def pooler(server: Server) -> Iterator[Pooler]:
    """Two connections to the server for all clients, so that each client meets what others left there."""
    if program() is None:
        pytest.skip("there is no PgBouncer on this machine")
    with tempfile.TemporaryDirectory() as folder:
        pooler = Pooler(server, Path(folder), connections=2)
        try:
            yield pooler
        finally:
            pooler.close()


def test_many_clients_on_two_connections_never_meet_a_statement_of_another(pooler: Pooler) -> None:
    failures: list[BaseException] = []

    def client(number: int) -> None:
        try:
            store = PostgresStore(pooler.url(workpacket_project="pooled"), patience=5.0, connections=2)
            writer = Writer(f"w{number}", f"run@{number}")
            for count in range(20):
                (event,) = store.append(writer.request("checkpoint")).events
                assert (event.version, store.latest("checkpoints", event.stream)) == (count + 1, event)
                store.release(store.acquire(f"lease@{number}", "me", 5))
            store.close()
        except BaseException as error:
            failures.append(error)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert failures == []


def test_nothing_is_left_on_a_connection_that_other_programs_use_too(pooler: Pooler) -> None:
    store = PostgresStore(pooler.url(workpacket_project="tidy"), connections=2)
    store.append(Writer("w").request("a"))
    with following(store, "stream") as wait:
        wait()
    news = store.job_news("default")
    news.wait(0.1)
    assert not news.listening
    with psycopg.connect(pooler.url(), autocommit=True, prepare_threshold=None) as other:
        for _ in range(4):
            row = other.execute(
                "SELECT current_setting('enable_seqscan'), (SELECT count(*) FROM pg_prepared_statements)"
            ).fetchone()
            assert row == ("on", 0)
            assert other.execute("SELECT pg_listening_channels()").fetchall() == []
    store.close()


def test_appends_go_by_indexes_also_where_the_plan_was_made_for_one_row(server: Server, pooler: Pooler) -> None:
    store = PostgresStore(pooler.url(workpacket_schema="pooled_plans"), connections=1)
    writer = Writer("w")
    store.append(writer.request("checkpoint"))
    with psycopg.connect(server.url(), autocommit=True) as owner:
        owner.execute("ANALYZE pooled_plans.streams, pooled_plans.events, pooled_plans.entries, pooled_plans.payloads")
        for number in range(40):
            store.append(writer.request("checkpoint"))
            store.append(Writer(f"other {number}", f"other@{number}").request("a"))
        time.sleep(1.1)  # a connection tells of what it did once a second
        store.append(writer.request("checkpoint"))
        rows = owner.execute(
            "SELECT relname, seq_scan, idx_scan FROM pg_stat_user_tables WHERE schemaname = 'pooled_plans' "
            "AND relname IN ('streams', 'events', 'members')"
        ).fetchall()
    store.close()
    assert {name: scans for name, scans, _ in rows if scans > 5} == {}  # those were to make the indexes
    assert {name for name, _, by_index in rows if by_index > 40} == {"streams", "events", "members"}


def test_a_stream_arrives_as_a_whole(pooler: Pooler) -> None:
    source = MemoryStore()
    events = source.append(Writer("w", "run@1").request("a", "b")).events
    store = PostgresStore(pooler.url(workpacket_project="arriving"))
    store.restore(events, [])
    assert tuple(store.read("run@1")) == events
    store.close()


def test_a_worker_that_is_not_woken_looks_for_itself(pooler: Pooler) -> None:
    store = PostgresStore(pooler.url(workpacket_project="waiting"))
    done: list[float] = []

    def task(run: Run) -> None:
        run.step("work", lambda: done.append(time.monotonic()))
        worker.stop()

    worker = Worker(Runtime(store), Queue(store), {"job": task}, idle=0.3)
    thread = threading.Thread(target=worker.work)
    thread.start()
    time.sleep(0.5)
    offered = time.monotonic()
    Queue(store).offer(Offer("job", key="a"))
    thread.join(10)
    assert done
    assert done[0] - offered < 5
    store.close()
