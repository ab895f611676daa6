"""Version 3 of the tables, and tables divided by ranges of streams: the contract holds, rights stay, room is made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count

import psycopg
import pytest

from postgres.clocked import ClockedPostgres
from postgres.conftest import running_server
from postgres.server import Server
from postgres.test_backup import back_up, restored
from workpacket.cli.main import main
from workpacket.runtime.errors import NewerSchema, RuntimeFault, StoreUnavailable
from workpacket.runtime.queue import Offer, Queue
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.postgres import migrations
from workpacket.runtime.stores.postgres.access import PostgresAccess, address_of_url
from workpacket.runtime.stores.postgres.migrations import MIGRATIONS, migrate, partition, partitions
from workpacket.runtime.stores.postgres.reader import let_in
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import ManualClock, ServerStoreConformance, Writer

_NUMBERS = count(1)
EACH = 6


def opened(url: str) -> PostgresStore:
    return PostgresStore(url, patience=10.0, connections=2)


def divided(url: str, each: int = EACH) -> PostgresStore:
    store = opened(url)
    partition(store.access, each)
    return store


class TestPartitions(ServerStoreConformance):
    """So few streams in each that most tests need several."""

    @pytest.fixture(autouse=True)
    def _place(self, server: Server) -> None:
        self.url = server.url(workpacket_schema="divided", workpacket_project=f"p{next(_NUMBERS)}")
        self.opener = (
            f"from workpacket.runtime.stores.postgres.store import PostgresStore\nstore = PostgresStore({self.url!r})"
        )
        divided(self.url).close()

    def open_store(self, clock: ManualClock) -> Store:
        return ClockedPostgres(self.url, clock)

    # Folders, files and threads are asked the same in `just test`.
    @pytest.mark.long
    def test_processes_hold_a_lease_one_at_a_time(self) -> None:
        super().test_processes_hold_a_lease_one_at_a_time()

    @pytest.mark.long
    def test_processes_lose_and_repeat_nothing(self) -> None:
        super().test_processes_lose_and_repeat_nothing()


# ---- room ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_writers_at_once_make_room_for_each_other(schema_url: str, level: str) -> None:
    options = f"&options=-c%20default_transaction_isolation%3D{level.replace(' ', '%5C%20')}"
    divided(schema_url, 4).close()
    stores = [opened(schema_url + options) for _ in range(4)]
    assert stores[0].access.one("SHOW default_transaction_isolation") == (level,)
    faults: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for run in range(25):
                writer = Writer(f"{number} {run}", f"run@{number}-{run}")
                stores[number].append(writer.request("a", "b"))
                stores[number].append(writer.request("c"))
        except BaseException as fault:  # shown below, by the test that fails
            faults.append(fault)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    heads = stores[0].heads()
    assert [head.version for head in heads] == [3] * 100
    assert all(len(list(stores[0].read(head.stream))) == 3 for head in heads)
    assert partitions(stores[0].access) >= 25
    for store in stores:
        store.close()


def test_streams_that_are_far_ahead_have_room(schema_url: str) -> None:
    """Numbers of streams are lost when transactions are undone."""
    store = divided(schema_url, 10)
    store.access.one("SELECT setval(pg_get_serial_sequence('{s}.streams', 'id'), 1000)")
    store.append(Writer("w", "run@1").request("a"))
    assert store.access.one("SELECT min(stream) FROM {s}.events") == (1001,)
    store.close()


# ---- rights ----------------------------------------------------------------------------------------------------------


def test_rights_stay_and_no_partition_shows_other_projects(server: Server, schema_url: str) -> None:
    role = f"dividing{next(_NUMBERS)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
    other, owner = opened(f"{schema_url}&workpacket_project=other"), opened(schema_url)
    other.append(Writer("other", "secret@1").request("a"))
    let_in(owner.access, role, "writer")
    assert partition(owner.access, EACH)
    assert not partition(owner.access, EACH)

    theirs = opened(schema_url.replace("//owner@", f"//{role}@"))
    for number in range(3 * EACH):
        theirs.append(Writer(f"w{number}", f"run@{number}").request("a"))
    assert len(theirs.heads()) == 3 * EACH
    assert theirs.access.one("SELECT count(*) FROM {s}.events") == (3 * EACH,)
    for table in ("events_0", "payloads_0", "events_6", "writers"):
        with pytest.raises(StoreUnavailable, match="permission denied"):
            theirs.access.one("SELECT count(*) FROM {s}." + table)
    for statement in ("UPDATE {s}.events_6 SET data = '' RETURNING 1", "DELETE FROM {s}.events_6 RETURNING 1"):
        with pytest.raises(StoreUnavailable, match="events are never"):
            owner.access.one(statement)
    with psycopg.connect(owner.access.address.conninfo, autocommit=True) as connection:
        for table in ("events", "events_0", "events_6"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="events are never"):
                connection.execute(owner.access.statement("TRUNCATE {s}." + table))
    for store in (theirs, owner, other):
        store.close()


# ---- from version 2 --------------------------------------------------------------------------------------------------


@pytest.fixture
def earlier(schema_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    """The store of a program of version 2, in whose tables there is a stream."""
    with monkeypatch.context() as before:
        before.setattr(migrations, "SCHEMA_VERSION", 2)
        access = PostgresAccess(address_of_url(schema_url), connections=1)
        access.open()
        migrate(access, MIGRATIONS[:2])
        access.close()
        store = opened(schema_url)
    store.append(Writer("first", "run@1").request("a"))
    yield store
    store.close()


def test_a_program_that_runs_goes_on_and_one_that_begins_is_told_what_to_do(
    earlier: PostgresStore, schema_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue(earlier)
    queue.offer(Offer("job", key="1", max_tries=1))
    with pytest.raises(StoreUnavailable, match="older than 3"):
        partition(earlier.access)
    assert migrate(earlier.access) == 1
    assert partition(earlier.access, EACH)
    for number in range(3 * EACH):
        earlier.append(Writer(f"w{number}", f"later@{number}").request("a"))
    with monkeypatch.context() as before:
        before.setattr(migrations, "SCHEMA_VERSION", 2)
        with pytest.raises(NewerSchema) as told:
            opened(schema_url)
    assert "has schema 3; this version supports 2" in str(told.value)
    assert [(job.state, job.tries) for job in queue.jobs()] == [("waiting", 0)]


@pytest.mark.parametrize("each", [0, EACH])
def test_the_identity_of_a_writer_is_kept(earlier: PostgresStore, schema_url: str, each: int) -> None:
    """A request is recognized after another writer wrote, and a writer that was removed may begin again."""
    repeated = Writer("w", "run@2").request("a")
    earlier.append(repeated)
    earlier.append(Writer("other", "run@2").request("b"))
    migrate(earlier.access)
    if each:
        partition(earlier.access, each)
    store = opened(schema_url)
    assert store.append(repeated).duplicate
    assert store.access.rows("SELECT writer FROM {s}.writers ORDER BY writer") == [("first",), ("other",), ("w",)]
    head = store.head("run@2")
    assert head is not None
    store.remove("run@2", head.hash)
    # The last event stays, so that the name is not used again, and with it its writer.
    assert store.access.rows("SELECT writer FROM {s}.writers ORDER BY writer") == [("first",), ("other",)]
    assert not store.append(Writer("w", "run@3").request("a")).duplicate
    store.close()


def test_an_upgrade_does_not_hold_programs_up_behind_a_long_query(
    earlier: PostgresStore, schema_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_WAIT", "100ms")
    with psycopg.connect(earlier.access.address.conninfo) as backup:
        backup.execute(earlier.access.statement("LOCK TABLE {s}.events IN ACCESS SHARE MODE"))
        with pytest.raises(StoreUnavailable, match="another transaction has used the tables") as told:
            migrate(earlier.access)
        assert "backups" in str(told.value.problem)
        earlier.append(Writer("w", "run@2").request("a"))
    assert migrate(earlier.access) == 1


# ---- keeping ---------------------------------------------------------------------------------------------------------


def test_a_backup_of_partitions_is_restored_and_has_room() -> None:
    with running_server() as own:
        store = divided(own.url())
        for number in range(2 * EACH):
            store.append(Writer(f"w{number}", f"run@{number}").request("a", "b"))
        before = partitions(store.access)
        store.close()
        after = opened(restored(own, back_up(own)))
        assert partitions(after.access) == before
        assert sum(len(list(after.read(head.stream))) for head in after.heads()) == 4 * EACH
        for number in range(2 * EACH):
            after.append(Writer(f"again {number}", f"again@{number}").request("a"))
        assert partitions(after.access) > before
        with pytest.raises(StoreUnavailable, match="events are never deleted"):
            after.access.one("DELETE FROM {s}.events RETURNING 1")
        after.close()


def test_a_partition_whose_runs_were_pruned_gives_its_space_back(schema_url: str) -> None:
    """What docs/scale.md says to do about old partitions."""
    store = divided(schema_url, 100)
    for number in range(60):
        store.append(Writer(f"w{number}", f"old@{number}").request(*"abcdefgh"))
    for number in range(60):
        store.append(Writer(f"v{number}", f"new@{number}").request("a"))
    size = "SELECT pg_total_relation_size('{s}.events_0'::regclass)"
    for head in store.heads("old@"):
        store.remove(head.stream, head.hash)
    (before,) = store.access.one(size)
    with psycopg.connect(store.access.address.conninfo, autocommit=True) as owner:
        owner.execute(store.access.statement("VACUUM FULL {s}.events_0"))
    assert store.access.one(size)[0] < before
    assert len(store.heads("new@")) == 60
    with pytest.raises(RuntimeFault):
        store.append(Writer("late", "old@1").request("a"))
    store.close()


def test_appends_to_other_runs_go_on_while_a_partition_is_rewritten(schema_url: str) -> None:
    store = divided(schema_url + "&options=-c%20lock_timeout%3D200", 10)
    for number in range(30):
        store.append(Writer(f"w{number}", f"run@{number}").request("a"))
    with psycopg.connect(store.access.address.conninfo) as owner:
        owner.execute(store.access.statement("LOCK TABLE {s}.events_0, {s}.payloads_0 IN ACCESS EXCLUSIVE MODE"))
        lease = store.acquire("new@1", "me", 30)
        store.append(Writer("new", "new@1").request("a", fence=lease.token, key="k"))
        store.append(Writer("other", "run@29").request("b"))
    store.close()


def test_the_command_divides_the_tables_once(
    schema_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKPACKET_STORE", schema_url)

    def said(*words: str) -> str:
        main(["runtime", "store", *words])
        return capsys.readouterr().out

    assert "version 0 of 3\n" in said("show")
    main(["runtime", "store", "partition"])
    assert "workpacket runtime store upgrade" in capsys.readouterr().err
    assert "version 3 of 3\n" in said("upgrade")
    assert said("partition").startswith("partitions made\n")
    assert said("partition").startswith("there are partitions already\n")
    assert "version 3 of 3, 1 partition\n" in said("show")
