"""A backup of the database, restored: what is lost is named run by run, and nobody goes on from what is not there."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from lifecycle.governed import Governed, govern
from postgres.conftest import running_server
from postgres.server import Server, identity
from workpacket.bridges.run_links import governed_runtime
from workpacket.runtime import Runtime
from workpacket.runtime.errors import LeaseLost, RunBlocked, StoreUnavailable, WriterConflict
from workpacket.runtime.stores.postgres.access import PostgresAccess, address_of_url
from workpacket.runtime.stores.postgres.migrations import MIGRATIONS, migrate
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import Writer

NAME = "WP-1-Greeting-v1"


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server of one's own, of which the whole database is backed up."""
    with running_server() as server:
        yield server


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    governed = govern(tmp_path, monkeypatch, capsys)
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    return governed


def program(server: Server, name: str, *words: str, database: str = "postgres") -> None:
    where = ["--host", str(server.folder), "--username", "owner", "--dbname", database]
    done = subprocess.run([server.bin / name, *where, *words], capture_output=True, check=False, cwd="/", **identity())
    assert done.returncode == 0, done.stderr.decode()


def back_up(server: Server) -> str:
    """What an operator types: one file, consistent although programs go on."""
    path = str(server.folder / "backup")
    program(server, "pg_dump", "--format=custom", f"--file={path}")
    return path


def restored(server: Server, path: str) -> str:
    """The URL of the restored database."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored")
    program(server, "pg_restore", path, database="restored")
    return server.url(database="restored")


def run(name: str, url: str, *, stop: bool = False) -> str:
    """Two effects; a run that stops does so between them."""
    with governed_runtime(url) as runtime, runtime.run(name, packet=NAME, key="k") as run:
        run.effect("first", lambda: done(f"{name} first"), key=f"{name}-1", recovery="keyed")
        if stop:
            raise_blocked()
        run.effect("second", lambda: done(f"{name} second"), key=f"{name}-2", recovery="keyed")
        return run.id


DONE: list[str] = []


def done(what: str) -> str:
    DONE.append(what)
    return what


def raise_blocked() -> None:
    raise RunBlocked("until later", code="worker_blocked")


def test_what_a_restored_backup_has_lost_is_named_run_by_run(
    own_server: Server, governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    DONE.clear()
    url = own_server.url()
    monkeypatch.setenv("WORKPACKET_STORE", url)
    whole = run("whole", url)
    with pytest.raises(RunBlocked):
        run("half", url, stop=True)
    backup = back_up(own_server)
    half = run("half", url)  # resumed, and ended after the backup
    lost = run("lost", url)
    assert DONE == ["whole first", "whole second", "half first", "half second", "lost first", "lost second"]

    url = restored(own_server, backup)
    monkeypatch.setenv("WORKPACKET_STORE", url)
    doctor = governed("runtime", "doctor", "--json")
    told = [line for line in doctor.out.splitlines() if "according to the log" in line]
    text = "\n".join(told)
    assert half in text
    assert f"{lost}: according to the log of {NAME}, it ended with " in text
    assert "the store has 0" in text
    assert whole not in text

    # The lost part is done again: what has a key is repeated with it, as after any crash in between.
    run("half", url)
    assert DONE[6:] == ["half second"]
    with Runtime.open(url) as runtime:
        assert runtime.state(half).status == "completed"
        assert runtime.state(whole).status == "completed"


def test_who_wrote_after_the_backup_is_refused_by_the_restored_database(own_server: Server) -> None:
    """A process that was not ended: its events are not there, so it may not go on from them; nor may its lease."""
    before = PostgresStore(own_server.url())
    writer = Writer("zombie", "run@1")
    before.append(writer.request("a"))
    backup = back_up(own_server)
    lease = before.acquire("run@1", "zombie", 3600)
    before.append(writer.request("b", fence=lease.token))
    before.close()
    time.sleep(1.1)  # a life has a number of its own if it begins in another second

    after = PostgresStore(restored(own_server, backup))
    assert [event.version for event in after.read("run@1")] == [1]
    with pytest.raises(WriterConflict):
        after.append(writer.request("c"))
    token = after.acquire("run@1", "successor", 60).token
    assert token > lease.token, "a token that was given after the backup is given again"
    with pytest.raises(LeaseLost):
        after.append(Writer("other", "run@1").request("d", fence=lease.token))
    after.close()


@pytest.mark.parametrize("restart", [False, True])
def test_a_token_is_never_issued_again_after_a_restore(own_server: Server, restart: bool) -> None:
    """Nor if the tables are restored in place, where neither the database nor, perhaps, the server is a new one."""
    store = PostgresStore(own_server.url())
    store.acquire("run@1", "early", 60)
    backup = back_up(own_server)
    issued = store.acquire("run@2", "late", 60).token
    store.close()
    program(own_server, "pg_restore", "--clean", backup)
    if restart:
        own_server.stop()
        own_server.start()
    after = PostgresStore(own_server.url())
    assert after.acquire("run@2", "successor", 60).token > issued
    after.close()


def test_the_upgrade_of_the_first_version_keeps_the_leases_that_are_held(own_server: Server) -> None:
    access = PostgresAccess(address_of_url(own_server.url()), patience=5.0)
    access.open()
    migrate(access, MIGRATIONS[:1])
    access.one("SELECT {s}.open_project_1('default')")
    asked = (1, "run@1", "holder", 60.0, None, "")
    (_, held, _, _) = access.one("SELECT * FROM {s}.acquire_1(%s, %s, %s, %s, %s, %s)", asked)
    with pytest.raises(StoreUnavailable, match="older than"):
        PostgresStore(own_server.url())
    assert migrate(access) == len(MIGRATIONS) - 1
    store = PostgresStore(own_server.url())
    (lease,) = store.leases()
    assert lease.token == held
    store.append(Writer("w", "run@1").request("a", fence=held))
    store.release(lease)
    assert store.acquire("run@1", "next", 60).token > held
    store.close()
    access.close()


def test_a_backup_has_the_tables_the_guards_and_every_hash(own_server: Server) -> None:
    store = PostgresStore(own_server.url())
    writer = Writer("w", "run@1")
    hashes = [event.hash for text in "abc" for event in store.append(writer.request(text)).events]
    store.close()
    after = PostgresStore(restored(own_server, back_up(own_server)))
    assert [event.hash for event in after.read("run@1")] == hashes
    with pytest.raises(StoreUnavailable, match="events are never deleted"):
        after.access.one("DELETE FROM {s}.events RETURNING 1")
    after.close()
