"""What the SQLite store does when its surroundings are not as they should be: each case a named outcome."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from workpacket.runtime import Runtime
from workpacket.runtime.errors import (
    LogDamaged,
    NewerSchema,
    RuntimeFault,
    StorageFailed,
    StoreRolledBack,
    StoreUnavailable,
)
from workpacket.runtime.records.events import Chain, NewEvent
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import Append, Lease
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.files import SideFile, Whereabouts, file_system_of
from workpacket.runtime.stores.sqlite.rows import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION, place_of, row_crc
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine, suitability
from workpacket.runtime.stores.transfer import export_lines
from workpacket.runtime.testing import STREAM, ManualClock, Writer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # os.fork beside threads, on purpose


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "er" / "runs.db"


def filled(path: Path, events: int = 3) -> SQLiteStore:
    store = SQLiteStore(path)
    writer = Writer("w")
    for _ in range(events):
        store.append(writer.request("checkpoint"))
    return store


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file without its store around it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def change(path: Path, *statements: str) -> None:
    """Alter the file behind the store's back, with its triggers out of the way."""
    with raw(path) as connection:
        connection.execute("DROP TRIGGER IF EXISTS events_stay_as_they_are")
        connection.execute("DROP TRIGGER IF EXISTS events_stay")
        for statement in statements:
            connection.execute(statement)


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(RuntimeFault) as caught:
        action()
    return caught.value.code


def test_the_durability_that_was_asked_for_is_in_force(path: Path) -> None:
    store = SQLiteStore(path)
    with store.access.reading as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_setting_that_does_not_hold_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pragmas = (("synchronous", "NORMAL", 2),)
    monkeypatch.setattr("workpacket.runtime.stores.sqlite.access._PRAGMAS", pragmas)
    assert code_of(lambda: SQLiteStore(path)) == "storage_unsuitable"


def test_a_network_file_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workpacket.runtime.stores.sqlite.files.file_system_of", lambda _: "nfs4")
    assert code_of(lambda: SQLiteStore(path)) == "storage_unsuitable"


def test_the_file_system_is_known_where_the_system_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    device = tmp_path.stat().st_dev
    mounts.write_text(f"36 35 {os.major(device)}:{os.minor(device)} / / rw master:1 - ext9 /dev/x rw\n")
    monkeypatch.setattr("workpacket.runtime.stores.sqlite.files._MOUNTS", mounts)
    assert file_system_of(tmp_path) == "ext9"
    mounts.write_text("36 35 0:0 / / rw - other x rw\n")
    assert file_system_of(tmp_path) == ""
    mounts.unlink()
    assert file_system_of(tmp_path) == ""


def test_a_memory_file_system_works_and_is_mentioned(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workpacket.runtime.stores.sqlite.store.file_system_of", lambda _: "tmpfs")
    (problem,) = suitability(path)
    assert problem.code == "storage_unsuitable"
    monkeypatch.setattr("workpacket.runtime.stores.sqlite.store.file_system_of", lambda _: "ext4")
    assert suitability(path) == ()


def test_events_cannot_be_changed_or_deleted(path: Path) -> None:
    filled(path).close()
    for statement in ("UPDATE events SET actor = 'x'", "DELETE FROM events"):
        with raw(path) as connection, pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(statement)


def test_a_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with raw(path) as connection:
        connection.execute("PRAGMA application_id = 7")
    assert code_of(lambda: SQLiteStore(path)) == "store_corrupt"


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database at all, but long enough to look at" * 9)
    assert code_of(lambda: SQLiteStore(path)) == "store_corrupt"


def test_a_store_without_a_write_ahead_log_is_refused(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: sqlite3.Connection(":memory:", isolation_level=None))
    assert code_of(lambda: SQLiteStore(path)) == "storage_unsuitable"


def test_a_lock_that_fails_is_an_error_of_the_storage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(path)

    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("workpacket.runtime.stores.sqlite.files.fcntl.flock", fails)
    with pytest.raises(StorageFailed):
        store.append(Writer("v").request("a"))


def test_a_database_behind_its_anchor_is_found_by_the_examination(path: Path) -> None:
    store = filled(path)
    store.access.side.set_anchor(place_of(1, 4))
    assert [problem.code for problem in examine(store)] == ["store_rolled_back"]


def test_a_first_stream_that_is_added_while_one_is_looked_for_is_no_damage(path: Path) -> None:
    with closing(SQLiteStore(path)) as store:

        def meanwhile(statement: str) -> None:
            if statement.startswith("SELECT name, value, crc"):  # how many streams there should be
                store._db.set_trace_callback(None)
                filled(path).close()

        store._db.set_trace_callback(meanwhile)
        assert store.head("another") is None
        assert store.head(STREAM) is not None


def test_an_event_of_another_stream_is_not_let_through(path: Path) -> None:
    event = next(filled(path).read(STREAM))
    with pytest.raises(LogDamaged, match="belongs to"):
        Chain("another").check(event)


def test_a_stream_whose_last_event_is_not_its_head_is_noticed(path: Path) -> None:
    filled(path).close()
    with raw(path) as connection:
        name, number, version, _, *rest = connection.execute("SELECT * FROM streams").fetchone()
        row = (name, number, version, "0" * 64, *rest[:-1])
        connection.execute("UPDATE streams SET hash = ?, crc = ?", ("0" * 64, row_crc(*row)))
    with pytest.raises(LogDamaged, match="does not end at its head"):
        list(SQLiteStore(path).read(STREAM))


def test_the_index_is_made_anew_without_removed_streams(path: Path) -> None:
    store = filled(path)
    head = store.head(STREAM)
    assert head is not None
    store.remove(STREAM, head.hash)
    store.append(Writer("v", "kept@1").request("checkpoint"))
    store.rebuild_index()
    assert [entry.stream for entry in store.entries("checkpoints")] == ["kept@1"]


def test_a_store_that_cannot_be_opened_leaves_no_file_open(path: Path) -> None:
    filled(path).close()
    path.write_bytes(b"not a database at all, but long enough to look at" * 9)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        assert code_of(lambda: SQLiteStore(path)) == "store_corrupt"
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_newer_store_can_be_read_and_dumped_but_not_written(path: Path) -> None:
    filled(path).close()
    change(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    store = SQLiteStore(path)
    assert len(list(store.read(STREAM))) == 3
    assert len(list(export_lines(store, STREAM))) == 6
    with pytest.raises(NewerSchema):
        store.append(Writer("v").request("a"))
    with pytest.raises(NewerSchema):
        store.acquire(STREAM, "x", 1)


def test_a_failed_migration_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (("CREATE TABLE meta(x)", "CREATE NONSENSE"),)
    monkeypatch.setattr("workpacket.runtime.stores.sqlite.rows.MIGRATIONS", broken)
    with pytest.raises(RuntimeFault):
        SQLiteStore(path)
    monkeypatch.undo()
    SQLiteStore(path).append(Writer("w").request("a"))


def test_an_older_file_is_brought_to_the_present_schema(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path).close()
    grown = (*MIGRATIONS, ("CREATE TABLE added(x)",))
    monkeypatch.setattr("workpacket.runtime.stores.sqlite.rows.MIGRATIONS", grown)
    monkeypatch.setattr("workpacket.runtime.stores.sqlite.access.SCHEMA_VERSION", len(grown))
    store = SQLiteStore(path)
    assert len(list(store.read(STREAM))) == 3
    with store.access.reading as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(grown),)
        assert [row[0] for row in db.execute("SELECT version FROM schema_migrations")] == list(range(1, len(grown) + 1))
        assert db.execute("SELECT count(*) FROM added").fetchone() == (0,)


def test_a_file_of_the_first_schema_is_read_and_written_on(path: Path) -> None:
    request = Writer("w").request("checkpoint", "cancel.requested", key="once")
    events = MemoryStore().append(request).events
    path.parent.mkdir(parents=True)
    last = events[-1]
    row = (STREAM, 1, last.version, last.hash, last.fence, 0, last.writer, last.writer_seq)
    with raw(path) as connection:
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("INSERT INTO meta VALUES('streams', 1, ?)", (row_crc("streams", 1),))
        connection.execute("INSERT INTO streams VALUES(?,?,?,?,?,?,?,?,?)", (*row, row_crc(*row)))
        for event in events:
            places = ", ".join("?" * 16)
            connection.execute(f"INSERT INTO events VALUES({places})", (event.version, 1, *event[1:]))
        for kept in {new.payload for new in request.events if new.payload is not None}:
            columns = (bytes.fromhex(address_of(kept)), kept)
            connection.execute("INSERT INTO payloads(digest, bytes) VALUES(?, ?)", columns)
    path.with_name("runs.db.lock").write_bytes(b"%020d %08x\n" % (2, zlib.crc32(b"%020d" % 2)))
    store = SQLiteStore(path)
    store.rebuild_index()
    assert tuple(store.read(STREAM)) == events
    assert store.append(request) == (events, True)
    assert store.append(Writer("v").request("checkpoint")).events[0].version == 3
    assert examine(store) == ()
    store.close()
    assert len(list(SQLiteStore(path).read(STREAM))) == 3


def test_a_file_of_the_second_schema_forgets_the_entries_that_are_read_from_the_log_now(path: Path) -> None:
    store = SQLiteStore(path)
    store.append(Writer("w").request("run.started", "effect.started", "effect.succeeded"))
    known = store.entries("effects")
    store.close()
    stale = ("effects", 1, "", 2, "started")
    change(
        path,
        "PRAGMA user_version = 2",
        f"INSERT INTO entries VALUES('effects', 1, '', 2, 'started', {row_crc(*stale)})",
        "DELETE FROM schema_migrations WHERE version > 2",
    )
    with closing(SQLiteStore(path)) as store:
        assert examine(store) == ()
        assert store.entries("effects") == known
        with store.access.reading as db:
            assert db.execute("SELECT DISTINCT kind FROM entries").fetchall() == [("runs",)]


def test_effects_are_found_by_stream_and_status_in_the_order_of_the_log(path: Path) -> None:
    with closing(SQLiteStore(path)) as store:
        for stream in ("b@00000001", "a@00000001"):
            news = [("started", "2"), ("started", "1"), ("succeeded", "2"), ("started", "3")]
            events = tuple(NewEvent(f"effect.{what}", f'{{"effect":"{name}"}}') for what, name in news)
            store.append(Append(stream, events, f"writer of {stream}", 1, "tester", 1, 2))
        found = [(entry.stream[0], entry.version, entry.status) for entry in store.entries("effects")]
        of_each = [(2, "started"), (3, "succeeded"), (4, "started")]
        assert found == [(stream, *entry) for stream in "ab" for entry in of_each]
        (one,) = store.entries("effects", stream="b@00000001", status="succeeded")
        assert (one.stream, one.key, one.version) == ("b@00000001", "2", 3)
        assert store.entries("effects", stream="c@00000001") == ()
        latest = store.latest("effects", "a@00000001")
        assert latest is not None
        assert latest.version == 4
        assert store.latest("effects", "c@00000001") is None


@pytest.mark.parametrize(
    ("statement", "attention"),
    [("SELECT 1", "effect_outcome_unknown"), ("UPDATE events SET data = '{}' WHERE version = 2", "log_damaged")],
    ids=["whole", "damaged"],
)
def test_a_list_of_runs_shows_an_effect_in_doubt_and_one_that_cannot_be_read(
    path: Path, statement: str, attention: str
) -> None:
    def fails() -> None:
        raise TimeoutError

    with Runtime.open(path) as runtime:
        with pytest.raises(TimeoutError), runtime.run("mail") as run:
            run.effect("send", fails)
        with runtime.run("well") as run:
            run.effect("send", lambda: None)
    change(path, statement.replace("version = 2", f"position = {place_of(1, 2)}"))
    with Runtime.open(path) as runtime:
        lines = {line.name: (line.liveness, line.attention) for line in runtime.runs()}
    assert lines["well"] == ("completed", "")
    assert lines["mail"][1] == attention


@pytest.mark.parametrize("at_once", [False, True], ids=["one", "many at once"])
@pytest.mark.parametrize("length", [20, 300], ids=["small", "several pages"])
def test_an_erased_payload_is_in_no_file_of_the_store(path: Path, length: int, *, at_once: bool) -> None:
    with closing(SQLiteStore(path)) as store:
        payload = b"what nobody shall read " * length
        news = (NewEvent("a", "{}", payload=payload), NewEvent("b", "{}", payload=b"what stays"))
        first, second = store.append(Append(STREAM, news, "w", 1, "tester", 1, 2)).events
        digest = first.payload or ""
        if at_once:
            store.erase_all([digest])
        else:
            assert store.erase(digest)
        found = {
            word for file in path.parent.iterdir() for word in (b"nobody", b"what stays") if word in file.read_bytes()
        }
        assert found == {b"what stays"}
        assert list(store.read(STREAM)) == [first, second]


def test_what_another_handle_wrote_is_seen_before_the_next_record(path: Path) -> None:
    one, two = SQLiteStore(path), SQLiteStore(path)
    writer, other = Writer("w"), Writer("v")
    lease = one.acquire(STREAM, "somebody", 60)
    one.append(writer.request("step.completed", fence=lease.token))
    two.append(other.request("cancel.requested"))
    assert one.append(writer.request("step.completed", fence=lease.token)).events[0].version == 3
    taken = two.acquire(STREAM, "another", 60, over=lease.token)
    assert code_of(lambda: one.append(writer.request("step.completed", fence=lease.token))) == "lease_lost"
    assert two.append(other.request("step.completed", fence=taken.token)).events[0].version == 4
    two.release(taken)
    assert code_of(lambda: two.append(other.request("step.completed", fence=taken.token))) == "lease_lost"
    assert examine(one) == ()


def test_what_was_not_committed_is_not_remembered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(path)
    writer = Writer("v")
    store.append(writer.request("a"))
    request = writer.request("b")
    with monkeypatch.context() as patch:
        patch.setattr(store.access, "cursor", Failing(store.access.cursor, "COMMIT", sqlite3.SQLITE_FULL))
        assert code_of(lambda: store.append(request)) == "disk_full"
    again = store.append(request)
    assert (again.events[0].version, again.duplicate) == (5, False)
    assert examine(store) == ()


def test_a_file_that_cannot_be_opened_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr(sqlite3, "connect", refuses)
    assert code_of(lambda: SQLiteStore(path)) == "store_read_only"


def test_a_store_that_lost_the_number_of_its_streams_is_not_believed(path: Path) -> None:
    SQLiteStore(path).close()
    change(path, "DELETE FROM meta")
    assert code_of(lambda: SQLiteStore(path).head("anything")) == "store_corrupt"


def test_a_handle_of_another_process_is_refused_and_not_closed_for_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        assert code_of(lambda: store.head(STREAM)) == "store_busy"
        store.close()
    with store.access.reading as db:
        assert db.execute("SELECT count(*) FROM events").fetchone() == (3,)


def test_an_older_copy_of_the_store_is_noticed(path: Path) -> None:
    filled(path).close()
    older = path.read_bytes()
    store = SQLiteStore(path)
    store.append(Writer("v").request("b"))
    store.close()
    path.write_bytes(older)
    with pytest.raises(StoreRolledBack):
        SQLiteStore(path)
    assert len(list(SQLiteStore(path, accept_rollback=True).read(STREAM))) == 3
    SQLiteStore(path)


def test_a_read_only_folder_is_named(path: Path) -> None:
    if os.geteuid() == 0:
        path = Path("/proc/workpacket/runs.db")
    else:
        path.parent.mkdir(parents=True)
        path.parent.chmod(0o500)
    assert code_of(lambda: SQLiteStore(path)) == "store_read_only"


def test_a_side_file_that_is_a_link_is_refused(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.with_name("runs.db.lock").symlink_to(tmp_path / "elsewhere")
    assert code_of(lambda: SQLiteStore(path)) == "store_read_only"


def test_a_full_disk_is_named_and_nothing_was_written(path: Path) -> None:
    store = filled(path)
    with store.access.reading as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
    writer = Writer("v")
    request = writer.request("a")
    big = request._replace(events=(request.events[0]._replace(payload=b'"' + b"x" * 100_000 + b'"'),))
    assert code_of(lambda: store.append(big)) == "disk_full"
    with store.access.reading as db:
        db.execute("PRAGMA max_page_count = 100000")
    assert store.append(big).events[0].version == 4
    assert examine(store) == ()


class Failing:
    """A cursor whose next statement of a kind fails as the storage would make it fail."""

    def __init__(self, cursor: sqlite3.Cursor, statement: str, code: int) -> None:
        self._cursor = cursor
        self._statement = statement
        self._code = code

    def execute(self, statement: str, *arguments: object) -> object:
        if statement.startswith(self._statement):
            error = sqlite3.OperationalError("made to fail")
            error.sqlite_errorcode = self._code
            raise error
        run: Callable[..., object] = self._cursor.execute
        return run(statement, *arguments)

    def __getattr__(self, name: str) -> object:
        return getattr(self._cursor, name)


def test_after_a_failed_sync_the_handle_is_never_used_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(path)
    failing = Failing(store.access.cursor, "COMMIT", sqlite3.SQLITE_IOERR | (4 << 8))
    monkeypatch.setattr(store.access, "cursor", failing)
    with pytest.raises(StorageFailed):
        store.append(Writer("v").request("a"))
    monkeypatch.undo()
    for action in (lambda: store.append(Writer("v").request("a")), lambda: store.head(STREAM)):
        with pytest.raises(StorageFailed, match="was closed after"):
            action()
    store.close()
    assert len(list(SQLiteStore(path).read(STREAM))) == 3


@pytest.mark.parametrize(
    ("code", "named"),
    [
        (sqlite3.SQLITE_BUSY, "store_busy"),
        (sqlite3.SQLITE_READONLY, "store_read_only"),
        (sqlite3.SQLITE_CANTOPEN, "store_read_only"),
        (sqlite3.SQLITE_CORRUPT, "store_corrupt"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, "disk_full"),
    ],
)
def test_failures_of_sqlite_have_names(path: Path, monkeypatch: pytest.MonkeyPatch, code: int, named: str) -> None:
    store = filled(path)
    monkeypatch.setattr(store.access, "cursor", Failing(store.access.cursor, "BEGIN", code))
    assert code_of(lambda: store.append(Writer("v").request("a"))) == named
    monkeypatch.undo()
    assert store.append(Writer("v").request("a")).events[0].version == 4


def test_a_locked_store_is_busy_after_the_waiting_time(path: Path) -> None:
    store = SQLiteStore(path, timeout=0.05)
    other = SideFile(path.with_name("runs.db.lock"))
    other.lock(1)
    assert code_of(lambda: store.append(Writer("w").request("a"))) == "store_busy"
    other.unlock()
    store.append(Writer("w").request("a"))


def test_a_waiting_writer_gets_its_turn(path: Path) -> None:
    store = SQLiteStore(path)
    other = SideFile(path.with_name("runs.db.lock"))
    other.lock(1)
    unlocked: list[float] = []

    def unlock() -> None:
        unlocked.append(time.monotonic())
        other.unlock()

    threading.Timer(0.05, unlock).start()
    store.append(Writer("w").request("a"))
    assert time.monotonic() >= unlocked[0]


def test_an_anchor_that_cannot_be_written_stays_behind_and_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(path)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert store.append(Writer("v").request("a")).events[0].version == 4
    monkeypatch.undo()
    store.close()
    assert len(list(SQLiteStore(path).read(STREAM))) == 4


def test_a_list_of_the_newest_does_not_show_a_damaged_event(path: Path) -> None:
    store = filled(path)
    store.append(Writer("v").request("run.started"))
    store.close()
    change(path, "UPDATE events SET data = '{\"a\":1}' WHERE type = 'run.started'")
    assert SQLiteStore(path).newest("runs") == ((STREAM, None),)


def test_a_forked_process_does_not_use_its_parents_handle(path: Path) -> None:
    store = filled(path)
    child = os.fork()
    if child == 0:
        try:
            store.append(Writer("v").request("a"))
        except StoreUnavailable:
            store.close()
            os._exit(17)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WEXITSTATUS(status) == 17
    assert store.append(Writer("v").request("a")).events[0].version == 4


DAMAGE = [
    ("UPDATE events SET data = '{}' WHERE position & 4294967295 = 2", "log_damaged"),
    ("UPDATE events SET recorded_at = 5 WHERE position & 4294967295 = 2", "log_damaged"),
    ("UPDATE events SET actor = x'ff' WHERE position & 4294967295 = 2", "log_damaged"),
    ("UPDATE events SET position = position + 6 WHERE position & 4294967295 = 2", "log_damaged"),
    ("DELETE FROM events WHERE position & 4294967295 = 2", "log_damaged"),
    ("DELETE FROM events WHERE position & 4294967295 = 3", "log_damaged"),
    ("DELETE FROM payloads", "log_damaged"),
    ("UPDATE payloads SET bytes = x'00'", "log_damaged"),
    ("UPDATE streams SET version = 2", "store_corrupt"),
    ("DELETE FROM streams", "store_corrupt"),
    ("DELETE FROM meta", "store_corrupt"),
    ("DELETE FROM entries", "store_corrupt"),
    ("UPDATE entries SET version = 1", "store_corrupt"),
]


@pytest.mark.parametrize(("statement", "code"), DAMAGE)
def test_the_examination_finds(path: Path, statement: str, code: str) -> None:
    filled(path).close()
    change(path, statement)
    store = SQLiteStore(path, accept_rollback=True)
    found = {problem.code for problem in examine(store)}
    if statement in {"DELETE FROM streams", "DELETE FROM meta"}:
        assert code_of(lambda: store.head("never heard of")) == code
    else:
        assert code in found


def test_a_stream_that_ends_before_its_head_is_noticed_when_read(path: Path) -> None:
    filled(path).close()
    change(path, "DELETE FROM events WHERE position & 4294967295 = 3")
    with pytest.raises(LogDamaged, match="missing"):
        list(SQLiteStore(path, accept_rollback=True).read(STREAM))


def test_a_rehashed_event_does_not_fit_the_head(path: Path) -> None:
    store = filled(path)
    events = list(store.read(STREAM))
    store.close()
    other = SQLiteStore(path.with_name("other.db"))
    forged = [*events[:2], other.append(Writer("w").request("a", "b", "checkpoint", expected=0)).events[2]]
    chain = f"hash = '{forged[2].hash}', previous = '{forged[2].previous}'"
    change(path, f"UPDATE events SET {chain} WHERE position = {place_of(1, 3)}")
    with pytest.raises(LogDamaged):
        list(SQLiteStore(path).read(STREAM))


def test_an_index_entry_that_points_elsewhere_is_not_followed(path: Path) -> None:
    filled(path).close()
    with raw(path) as connection:
        (kind, stream, key, _, status, _) = connection.execute("SELECT * FROM entries").fetchone()
    for version in (9, 4):
        crc = row_crc(kind, stream, key, version, status)
        with raw(path) as connection:
            connection.execute("UPDATE entries SET version = ?, crc = ?", (version, crc))
        with pytest.raises(LogDamaged, match="points to a different event"):
            SQLiteStore(path).latest("checkpoints", STREAM)


def test_a_lease_of_another_boot_has_ended(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SQLiteStore(path).acquire(STREAM, "one", 3600)
    monkeypatch.setattr("workpacket.runtime.holders.boot_id", lambda: "another boot")
    store = SQLiteStore(path)
    assert store.lease(STREAM) is None
    assert store.acquire(STREAM, "two", 30).token == 2


def test_a_wall_clock_that_goes_back_changes_neither_order_nor_leases(path: Path) -> None:
    clock = ManualClock()
    store = SQLiteStore(path, clock=clock)
    lease = store.acquire(STREAM, "one", 30)
    clock.wall -= 10**12
    store.append(Writer("w").request("a", fence=lease.token))
    with pytest.raises(RuntimeFault):
        store.acquire(STREAM, "two", 30)


APPENDER = """
import sys, time
from pathlib import Path
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.testing import Writer
name = sys.argv[2]
store = SQLiteStore(Path(sys.argv[1]))
writer = Writer(name, f"run@{name}")
slowest = 0.0
for _ in range(60):
    began = time.perf_counter()
    store.append(writer.request("step.completed"))
    slowest = max(slowest, time.perf_counter() - began)
print(slowest)
"""


def test_eight_processes_write_one_file_without_an_error(path: Path) -> None:
    SQLiteStore(path).close()
    names = [f"w{number}" for number in range(8)]
    children = [
        subprocess.Popen([sys.executable, "-c", APPENDER, str(path), name], stdout=subprocess.PIPE) for name in names
    ]
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0] * 8
    store = SQLiteStore(path)
    assert [head.version for head in store.heads()] == [60] * 8
    assert examine(store) == ()


def test_two_files_that_were_made_at_different_times_have_different_identities(tmp_path: Path) -> None:
    clock = ManualClock()
    found = []
    for name in ("one", "two"):
        store = SQLiteStore(tmp_path / name / "runs.db", clock=clock)
        found.append(store.identity)
        store.close()
        clock.advance(0.001)
    assert len(set(found)) == 2


def gone(path: Path) -> None:
    shutil.rmtree(path.parent)


def moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def parent_moved(path: Path) -> None:
    path.parents[1].rename(path.parents[1].with_name("moved"))


def replaced_folder(path: Path) -> None:
    moved(path)
    shutil.copytree(path.parent.with_name("moved"), path.parent)


def removed(suffix: str) -> Callable[[Path], None]:
    return lambda path: path.with_name(path.name + suffix).unlink()


def replaced(suffix: str) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        file = path.with_name(path.name + suffix)
        copy = file.with_name("copy")
        copy.write_bytes(file.read_bytes())
        copy.rename(file)

    return replace


FILES = ("", "-wal", "-shm", ".lock")
REMOVALS: dict[str, Callable[[Path], None]] = {
    "folder removed": gone,
    "folder moved": moved,
    "folder above moved": parent_moved,
    "folder replaced": replaced_folder,
    **{f"runs.db{suffix} removed": removed(suffix) for suffix in FILES},
    **{f"runs.db{suffix} replaced": replaced(suffix) for suffix in FILES},
}
WRITES: dict[str, Callable[[SQLiteStore, Lease], object]] = {
    "append": lambda store, _: store.append(Writer("late").request("a")),
    "renew": lambda store, lease: store.renew(lease, 30),
    "acquire": lambda store, _: store.acquire("other@1", "me", 30),
}


@pytest.mark.share(7)
@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
@pytest.mark.parametrize("remove", REMOVALS.values(), ids=list(REMOVALS))
@pytest.mark.parametrize("calm", [True, False])
def test_nothing_is_acknowledged_into_files_that_are_not_at_their_paths(
    path: Path, remove: Callable[[Path], None], write: Callable[[SQLiteStore, Lease], object], calm: bool
) -> None:
    store = filled(path)
    lease = store.acquire(STREAM, "me", 30)
    time.sleep(0.15 if calm else 0)
    store.append(Writer("early").request("a"))
    remove(path)
    with pytest.raises(StorageFailed, match="removed or replaced"):
        write(store, lease)
    with pytest.raises(StorageFailed):
        store.head(STREAM)


def test_a_file_is_missed_however_short_after_another_change_of_its_folder(tmp_path: Path) -> None:
    files = [tmp_path / f"runs.db{suffix}" for suffix in FILES]
    for age in range(60):
        for file in files:
            file.touch()
        whereabouts = Whereabouts(files[0], files[-1])
        began = time.perf_counter()
        while time.perf_counter() - began < age / 2000:
            assert whereabouts.missing() == ""
        files[age % len(files)].unlink()
        assert "No such file" in whereabouts.missing(), f"{age / 2} ms"


def test_a_store_by_a_relative_path_or_a_link_stays_where_it_is(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(path).close()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    monkeypatch.chdir(path.parent)
    stores = [SQLiteStore(Path(path.name)), SQLiteStore(link)]
    monkeypatch.chdir(tmp_path)
    for number, store in enumerate(stores):
        store.append(Writer(f"x{number}", f"x@{number}").request("a"))
    (path.parent / "another file").touch()
    stores[0].append(Writer("y", "y@1").request("a"))
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed):
        stores[1].append(Writer("z", "z@1").request("a"))


LOSING = """
import os, shutil, sys
from pathlib import Path
from workpacket.runtime import Runtime
place = Path(sys.argv[1])
with Runtime.open(place / "store" / "runs.db") as runtime, runtime.run("pay") as run:
    for number in range(10):
        if number == 4:
            shutil.rmtree(place / "store")
        run.effect(f"pay-{number}", lambda: print(f"told {number}", flush=True))
        print(f"acknowledged {number}", flush=True)
"""


def test_a_program_whose_store_is_removed_ends_at_the_next_record(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOSING, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[-2] == "acknowledged 3"
    assert done.returncode == 1
    assert "StorageFailed" in done.stderr
