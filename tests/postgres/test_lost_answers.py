"""The connection is cut between what the server did and what we are told: asked again, it answers right."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest

from postgres.proxy import Proxy
from postgres.server import Server, free_port, programs
from workpacket.runtime.errors import PayloadErased, StoreCorrupt, StoreUnavailable, VersionConflict
from workpacket.runtime.queue import Offer, Queue
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.postgres.access import PostgresAccess, address_of_url
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import Writer, refused

HBA = """local all asked scram-sha-256
host all asked 127.0.0.1/32 scram-sha-256
local all all trust
host all all 127.0.0.1/32 trust
"""


@pytest.fixture(scope="module")
def by_network() -> Iterator[Server]:
    if programs() is None:
        pytest.skip("there is no PostgreSQL on this machine and no wheel that brings it")
    server = Server(port=free_port())
    try:
        (server.data / "pg_hba.conf").write_text(HBA, "utf-8")
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def proxy(by_network: Server) -> Iterator[Proxy]:
    proxy = Proxy(by_network.port)
    yield proxy
    proxy.close()


@pytest.fixture
def store(by_network: Server, proxy: Proxy, request: pytest.FixtureRequest) -> Iterator[PostgresStore]:
    url = by_network.url(port=proxy.port, workpacket_project=request.node.name)
    store = PostgresStore(url, patience=10.0, connections=1)
    yield store
    assert proxy.lost == 1, "no answer was lost, so nothing was shown"
    store.close()


def test_an_append_whose_answer_was_lost_is_stored_once(store: PostgresStore, proxy: Proxy) -> None:
    writer = Writer("w")
    store.append(writer.request("a"))
    proxy.lose_answer("SELECT 1")
    again = store.append(writer.request("b"))
    assert again.duplicate
    assert [event.type for event in store.read(writer.stream)] == ["a", "b"]


def test_a_lease_whose_answer_was_lost_is_held(store: PostgresStore, proxy: Proxy) -> None:
    proxy.lose_answer("SELECT 1")
    lease = store.acquire("run@1", "me", 30)
    held = store.lease("run@1")
    assert held is not None
    assert held.token == lease.token
    store.append(Writer("w", "run@1").request("a", fence=lease.token))


def test_a_removal_whose_answer_was_lost_is_done(store: PostgresStore, proxy: Proxy) -> None:
    (event,) = store.append(Writer("w", "run@1").request("a")).events
    proxy.lose_answer("SELECT 1")
    store.remove("run@1", event.hash)
    assert store.head("run@1") is None
    with refused(VersionConflict):
        store.remove("run@1", event.hash)


def test_an_erasure_whose_answer_was_lost_says_that_there_was_something_to_erase(
    store: PostgresStore, proxy: Proxy
) -> None:
    (event,) = store.append(Writer("w", "run@1").request("a")).events
    proxy.lose_answer("SELECT 1")
    assert store.erase(event.payload or "")
    with refused(PayloadErased):
        store.payload(event)
    assert not store.erase(event.payload or "")


def test_the_end_of_a_run_whose_answer_was_lost_is_stored_once_and_its_job_is_finished(
    store: PostgresStore, proxy: Proxy
) -> None:
    queue = Queue(store)
    for key in "ab":
        queue.offer(Offer("job", key=key))
    job = queue.claim("me", 0.3)
    assert job is not None
    last = Writer("w", job.lease.stream).request("run.completed", fence=job.lease.token)
    proxy.lose_answer("SELECT 1")
    appended, following = queue.complete(job, last, seconds=0.3)
    assert appended.duplicate
    assert following is None
    assert [event.type for event in store.read("job@a")] == ["run.completed"]
    assert [(waiting.stream, waiting.state) for waiting in queue.jobs()] == [("job@b", "claimed")]
    time.sleep(0.35)
    queue.refresh()
    assert queue.claim("me", 30) is not None


@pytest.mark.parametrize("tag", ["COMMIT", "SELECT 1"])
def test_a_restore_whose_answer_was_lost_is_done(store: PostgresStore, proxy: Proxy, tag: str) -> None:
    source = MemoryStore()
    events = source.append(Writer("w", "run@1").request("a", "b")).events
    proxy.lose_answer(tag)
    store.restore(events, [])
    assert tuple(store.read("run@1")) == events
    with refused(VersionConflict):
        store.restore(events, [])


def test_an_offer_whose_answer_was_lost_is_made_once(store: PostgresStore, proxy: Proxy) -> None:
    queue = Queue(store)
    proxy.lose_answer("SELECT 1")
    queue.offer(Offer("job", key="a"))
    assert [job.stream for job in queue.jobs()] == ["job@a"]


def test_a_claim_whose_answer_was_lost_waits_for_its_lease_and_nothing_else(store: PostgresStore, proxy: Proxy) -> None:
    queue = Queue(store)
    queue.offer(Offer("job", key="a"))
    proxy.lose_answer("SELECT 1")
    assert queue.claim("me", 0.1) is None
    time.sleep(0.15)
    queue.refresh()
    job = queue.claim("me", 0.1)
    assert job is not None
    assert (job.key, job.attempt) == ("a", 2)


# ---- what does not pass by waiting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("password", ["", "wrong"])
def test_who_is_not_let_in_is_told_so_at_once(by_network: Server, password: str) -> None:
    with psycopg.connect(by_network.url(), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS asked")
        connection.execute("CREATE ROLE asked LOGIN PASSWORD 'right'")
    word = f"password={password}" if password else "passfile=/dev/null"
    url = f"{by_network.url(user='asked')}{word}"
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as fault:
        PostgresStore(url, patience=30.0)
    assert time.monotonic() - began < 5
    assert fault.value.code == "store_read_only"
    assert "wrong" not in fault.value.message
    assert "wrong" not in address_of_url(url).shown


def test_a_collision_that_lasts_is_not_waited_for(by_network: Server) -> None:
    access = PostgresAccess(address_of_url(by_network.url()), patience=30.0, connections=1)
    access.open()
    began = time.monotonic()
    with refused(StoreCorrupt):
        access.doing(lambda c: c.execute("DO $$ BEGIN RAISE unique_violation; END $$"))
    assert time.monotonic() - began < 5
    access.close()
