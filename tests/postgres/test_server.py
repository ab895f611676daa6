"""What only a server has: rights, projects, upgrades, restarts, lost answers, replicas."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from postgres.conftest import running_server
from postgres.server import Server
from workpacket.runtime import Runtime
from workpacket.runtime.errors import LeaseHeld, LeaseLost, NewerSchema, StoreCorrupt, StoreUnavailable
from workpacket.runtime.records.events import NewEvent
from workpacket.runtime.stores.contract import Append
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.postgres.access import Connection
from workpacket.runtime.stores.postgres.migrations import MIGRATIONS, migrate
from workpacket.runtime.stores.postgres.reader import LATEST, let_in, shut_out
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.stores.transfer import export_lines, import_lines
from workpacket.runtime.testing import Writer, refused


def opened(url: str) -> PostgresStore:
    return PostgresStore(url, patience=5.0, connections=2)


@pytest.fixture
def own() -> Iterator[Server]:
    """A server that a test may stop."""
    with running_server() as running:
        yield running


def sql(server: Server, text: str, user: str = "owner") -> None:
    with psycopg.connect(server.url(user=user), autocommit=True) as connection:
        connection.execute(text.encode())


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_needs_nothing_but_the_url(url: str) -> None:
    calls: list[int] = []
    with Runtime.open(url) as runtime:
        with suppress(ZeroDivisionError), runtime.run("import", inputs={"month": 1}) as run:
            run.step("fetch", lambda: calls.append(1))
            run.checkpoint({"offset": 3})
            run.step("divide", lambda: 1 // 0)
        with runtime.run("import", inputs={"month": 1}) as run:
            run.step("fetch", lambda: calls.append(2))
            assert run.cursor() == {"offset": 3}
        assert [line.liveness for line in runtime.runs()] == ["completed"]
    assert calls == [1]


def test_a_violated_check_is_tried_again_on_a_new_connection_but_not_for_ever(url: str) -> None:
    """A process of the server may lack a partition that another one has just made."""
    store, processes = opened(url), list[int]()

    def act(connection: Connection) -> int:
        processes.append(connection.info.backend_pid)
        if len(processes) <= failing:
            raise errors.CheckViolation("no partition of relation found for row")
        return len(processes)

    failing = 1
    assert store.access.doing(act) == 2
    failing = 100
    with pytest.raises(StoreCorrupt, match="no partition"):
        store.access.doing(act)
    assert len(processes) == 6
    assert len(set(processes)) in {5, 6}  # the second one was returned to the pool after its success
    store.close()


def test_a_stream_moves_from_sqlite_to_the_server_and_back_with_its_hashes(url: str, tmp_path: Path) -> None:
    with Runtime.open(tmp_path / "runs.db") as runtime, runtime.run("move") as run:
        for number in range(3):
            run.step("work", dict, number=number)
    source, server, target = SQLiteStore(tmp_path / "runs.db"), opened(url), MemoryStore()
    lines = list(export_lines(source, "move@00000001"))

    assert import_lines(server, lines) == "move@00000001"
    assert list(export_lines(server, "move@00000001")) == lines
    import_lines(target, export_lines(server, "move@00000001"))
    assert list(target.read("move@00000001")) == list(source.read("move@00000001"))
    source.close()
    server.close()


# ---- rights and projects ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def governed(server: Server) -> Server:
    """A schema with two projects, and a role of each right in one of them; once a server, whatever worker the tests
    of this module come to."""
    for role in ("reading", "writing", "keeping", "stranger"):
        sql(server, f"CREATE ROLE {role} LOGIN")
    for project in ("alpha", "beta"):
        store = opened(server.url(workpacket_schema="governed", workpacket_project=project))
        if project == "alpha":
            let_in(store.access, "reading", "reader")
            let_in(store.access, "writing", "writer")
            let_in(store.access, "keeping", "keeper")
        store.append(Writer(f"owner of {project}", "secret@1").request("run.started", "checkpoint"))
        store.close()
    return server


def as_role(server: Server, role: str, project: str = "alpha") -> str:
    return server.url(user=role, workpacket_schema="governed", workpacket_project=project)


@pytest.mark.parametrize("role", ["reading", "writing", "keeping"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE governed.events SET data = ''",
        "DELETE FROM governed.events",
        "TRUNCATE governed.events",
        "INSERT INTO governed.events SELECT * FROM governed.events",
        "UPDATE governed.streams SET token = 1",
        "DELETE FROM governed.payloads",
        "INSERT INTO governed.members VALUES (2, session_user, 3)",
        "ALTER TABLE governed.events DISABLE TRIGGER ALL",
        "CREATE OR REPLACE FUNCTION governed.moment() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
    ],
)
def test_no_role_writes_to_a_table_directly(governed: Server, role: str, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        sql(governed, statement, user=role)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE governed.events SET data = ''", "DELETE FROM governed.events", "TRUNCATE governed.events"],
)
def test_even_the_owner_is_stopped_by_the_triggers(governed: Server, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="events are never"):
        sql(governed, statement)


def test_a_writer_appends_and_neither_erases_nor_removes(governed: Server) -> None:
    store = opened(as_role(governed, "writing"))
    lease = store.acquire("mine@1", "me", 30)
    (event,) = store.append(Writer("writer", "mine@1").request("a", fence=lease.token)).events
    with refused(StoreUnavailable):
        store.erase(event.payload or "")
    with refused(StoreUnavailable):
        store.remove("mine@1", event.hash)
    store.close()
    keeper = opened(as_role(governed, "keeping"))
    assert keeper.erase(event.payload or "")
    keeper.remove("mine@1", event.hash)
    keeper.close()


def test_a_reader_reads_and_does_not_append(governed: Server) -> None:
    store = opened(as_role(governed, "reading"))
    assert [event.type for event in store.read("secret@1")] == ["run.started", "checkpoint"]
    with refused(StoreUnavailable):
        store.append(Writer("reader", "other@1").request("a"))
    store.close()


@pytest.mark.parametrize("role", ["reading", "writing", "keeping", "stranger"])
def test_nobody_opens_a_project_that_is_not_theirs(governed: Server, role: str) -> None:
    with refused(StoreUnavailable):
        opened(as_role(governed, role, "beta"))


@pytest.mark.parametrize("table", ["projects", "streams", "events", "payloads", "entries"])
def test_rows_of_other_projects_are_not_seen(governed: Server, table: str) -> None:
    column = "id" if table == "projects" else "project"
    with psycopg.connect(governed.url(user="reading")) as connection:
        seen = connection.execute(f"SELECT DISTINCT {column} FROM governed.{table}".encode()).fetchall()
    assert len(seen) == 1


def test_a_writer_cannot_name_the_number_of_another_project(governed: Server) -> None:
    store = opened(as_role(governed, "writing"))
    store.project += 1
    with refused(StoreUnavailable):
        store.append(Writer("intruder", "secret@1").request("a"))
    assert store.head("secret@1") is None
    store.close()


def test_who_was_shut_out_is_refused_by_the_next_call(governed: Server) -> None:
    sql(governed, "CREATE ROLE guest LOGIN")
    owner = opened(as_role(governed, "owner"))
    let_in(owner.access, "guest", "writer")
    guest = opened(as_role(governed, "guest"))
    guest.append(Writer("guest", "guest@1").request("a"))
    shut_out(owner.access, "guest")
    with refused(StoreUnavailable):
        guest.append(Writer("guest again", "guest@1").request("a"))
    guest.close()
    owner.close()


# ---- versions --------------------------------------------------------------------------------------------------------


def test_many_may_make_the_schema_at_once(schema_url: str) -> None:
    program = (
        "import sys\nfrom workpacket.runtime.stores.postgres.store import PostgresStore\n"
        "PostgresStore(sys.argv[1]).close()"
    )
    children = [subprocess.Popen([sys.executable, "-c", program, schema_url], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(child.communicate(timeout=60)[1], child.returncode) for child in children] == [(b"", 0)] * 4


def test_an_old_client_is_refused_by_name_after_an_upgrade(schema_url: str) -> None:
    old = opened(schema_url)
    writer = Writer("old")
    old.append(writer.request("a"))
    upgrade = (*MIGRATIONS, ("ALTER FUNCTION {s}.append_1 RENAME TO append_2",))
    assert migrate(old.access, upgrade) == 1
    assert migrate(old.access, upgrade) == 0
    with refused(NewerSchema):
        old.append(writer.request("b"))
    with refused(NewerSchema):
        opened(schema_url)
    old.close()


# ---- clocks ----------------------------------------------------------------------------------------------------------

HOST = """
import sys, time
from workpacket.runtime.errors import LeaseHeld, LeaseLost
from workpacket.runtime import Runtime, Settings
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import Writer
from workpacket.runtime.holders import SystemClock
url, skew, who = sys.argv[1], float(sys.argv[2]), sys.argv[3]
class Skewed(SystemClock):
    def now(self): return super().now() + int(skew * 1e6)
    def ticks(self): return super().ticks() + skew
runtime = Runtime.open(url, Settings(clock=Skewed(), holder=who))
store = runtime.store
for number, line in enumerate(sys.stdin):
    try:
        if line == "take\\n":
            lease = store.acquire("run@1", who, 0.4)
        if line == "write\\n":
            store.append(Writer(f"{who} {number}", "run@1").request("a", fence=lease.token))
        print("done", flush=True)
    except (LeaseHeld, LeaseLost) as fault:
        print(fault.code, flush=True)
"""


def test_leases_are_right_although_the_clocks_of_two_hosts_differ_by_hours(url: str) -> None:
    hosts = [
        subprocess.Popen([sys.executable, "-c", HOST, url, skew, f"host{skew}"], stdin=-1, stdout=-1, text=True)
        for skew in ("3600", "-3600")
    ]
    try:
        require_right_leases(hosts)
    finally:
        for host in hosts:
            host.communicate()


def require_right_leases(hosts: list[subprocess.Popen[str]]) -> None:
    def ask(host: int, what: str) -> str:
        child = hosts[host]
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{what}\n")
        child.stdin.flush()
        return child.stdout.readline().strip()

    for first, second in ((0, 1), (1, 0)):
        ask(second, "look")  # it is up
        assert ask(first, "take") == "done"
        assert ask(first, "write") == "done"
        assert ask(second, "take") == "run_busy"
        time.sleep(0.45)
        assert ask(second, "take") == "done"
        assert ask(first, "write") == "lease_lost"
        assert ask(second, "write") == "done"
        time.sleep(0.45)


# ---- async -----------------------------------------------------------------------------------------------------------


def test_async_runs_do_their_steps_once_and_go_on_after_a_failure(url: str) -> None:
    calls: list[int] = []

    async def load(number: int) -> int:
        calls.append(number)
        await asyncio.sleep(0.01)
        return number

    async def life(runtime: Runtime, *, fail: bool) -> list[int]:
        async with runtime.async_run("flow") as run:
            done = await asyncio.gather(*(run.step("load", load, number) for number in range(5)))
            await run.checkpoint({"loaded": 5})
            if fail:
                raise ValueError("the power is gone")
            return done

    with Runtime.open(url) as runtime:
        with pytest.raises(ValueError, match="power"):
            asyncio.run(life(runtime, fail=True))
        assert asyncio.run(life(runtime, fail=False)) == [0, 1, 2, 3, 4]
    assert sorted(calls) == [0, 1, 2, 3, 4]


# ---- the server goes away --------------------------------------------------------------------------------------------


def test_an_append_waits_for_a_server_that_restarts(own: Server) -> None:
    store = PostgresStore(own.url(), patience=20.0)
    writer = Writer("w")
    first = store.append(writer.request("a")).events
    own.stop()
    back = threading.Timer(0.3, own.start)
    back.start()
    second = store.append(writer.request("b")).events
    back.join()
    assert [event.hash for event in store.read(writer.stream)] == [first[0].hash, second[0].hash]
    store.close()


def test_a_server_that_stays_away_is_named(own: Server) -> None:
    store = PostgresStore(own.url(), patience=0.5)
    own.stop()
    with refused(StoreUnavailable):
        store.append(Writer("w").request("a"))
    store.close()


def test_a_token_is_never_handed_out_again_after_a_crash_of_the_server(own: Server) -> None:
    store = opened(own.url())
    before = store.acquire("run@1", "zombie", 30)
    own.stop()
    own.start()
    # The crash lost the lease: as if it had never been taken.
    sql(own, "DELETE FROM workpacket.streams")
    after = store.acquire("run@1", "heir", 30)
    assert after.token > before.token + 1000
    with refused(LeaseLost):
        store.append(Writer("zombie", "run@1").request("a", fence=before.token))
    store.close()


def test_a_lost_answer_to_taking_a_lease_is_given_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(url)
    monkeypatch.setattr("workpacket.runtime.stores.postgres.store.random_id", lambda: "one request")
    first = store.acquire("run@1", "me", 30)
    assert store.acquire("run@1", "me", 30).token == first.token
    monkeypatch.setattr("workpacket.runtime.stores.postgres.store.random_id", lambda: "another request")
    with refused(LeaseHeld):
        store.acquire("run@1", "me", 30)
    store.close()


def test_a_store_opened_at_a_replica_only_reads(url: str) -> None:
    opened(url).close()
    store = opened(f"{url}&target_session_attrs=any")
    assert store.heads() == ()
    with refused(StoreUnavailable):
        store.append(Writer("w").request("a"))
    store.close()


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_the_latest_checkpoint_is_found_by_its_index_whatever_the_statistics_say(own: Server, mode: str) -> None:
    store = PostgresStore(own.url(), patience=5.0, connections=1)
    store.append(Writer("first").request("checkpoint"))
    sql(own, "ANALYZE")  # one row: by these, to read the whole table is the cheapest
    for first in range(0, 5000, 1000):
        news = (*(NewEvent("step.completed", "{}") for _ in range(999)), NewEvent("checkpoint", '{"name":""}'))
        store.append(Append("many@1", news, "w", first + 1, "tester", 1, 1))
    latest = store.latest("checkpoints", "many@1")
    assert latest is not None
    assert latest.version == 5000
    store.access.rows("SELECT set_config('plan_cache_mode', %s, false)", (mode,))
    plan = store.access.rows("EXPLAIN " + LATEST, ("checkpoints", store.project, "many@1"))
    assert plan
    assert not any("Seq Scan" in line for (line,) in plan)
    store.close()
