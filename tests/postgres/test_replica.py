"""A standby: readers read there, writers find the server that takes writes, also after the standby took its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from postgres.server import Server, programs
from workpacket.runtime.errors import LeaseLost, StoreUnavailable
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import Writer, refused


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A server and its standby."""
    found = programs()
    if found is None or not (found / "pg_basebackup").exists():
        pytest.skip("there is no PostgreSQL with pg_basebackup on this machine")
    primary = Server()
    standby = None
    try:
        primary.start()
        standby = Server(copied_from=primary)
        standby.start()
        yield primary, standby
    finally:
        if standby is not None:
            standby.remove()
        primary.remove()


def of_both(pair: tuple[Server, Server], wanted: str) -> str:
    """The standby is named first."""
    hosts = f"{pair[1].folder},{pair[0].folder}"
    return f"postgresql://owner@/postgres?host={hosts}&target_session_attrs={wanted}&application_name=test"


def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.02)


def caught_up(primary: Server, standby: Server) -> bool:
    with psycopg.connect(primary.url()) as one, psycopg.connect(standby.url()) as two:
        written = one.execute("SELECT pg_current_wal_flush_lsn()").fetchone() or ("",)
        seen = two.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", written).fetchone()
    return seen == (True,)


def test_readers_read_at_the_standby_and_writers_go_on_where_it_took_over(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    store = PostgresStore(of_both(pair, "read-write"), patience=20.0, connections=2)
    lease = store.acquire("run@1", "me", 600)
    events = store.append(Writer("w", "run@1").request("run.started", fence=lease.token)).events

    until(lambda: caught_up(primary, standby))
    reader = PostgresStore(of_both(pair, "standby"), patience=5.0, connections=1)
    until(lambda: reader.head("run@1") is not None)
    assert tuple(reader.read("run@1")) == events
    assert [held.token for held in reader.leases()] == [lease.token]
    with refused(StoreUnavailable):
        reader.append(Writer("v", "run@1").request("a"))
    reader.follower("run@1").wait(0.01)  # nothing is announced there; one looks again
    reader.close()

    primary.stop()
    with psycopg.connect(standby.url(), autocommit=True) as connection:
        connection.execute("SELECT pg_promote()")
    more = store.append(Writer("v", "run@1").request("cancel.requested")).events
    assert [event.hash for event in store.read("run@1")] == [events[0].hash, more[0].hash]
    heir = store.acquire("run@1", "heir", 600, over=lease.token)
    assert heir.token > lease.token + 1000
    with refused(LeaseLost):
        store.append(Writer("u", "run@1").request("a", fence=lease.token))
    store.close()
