"""A backup of the store's file is made while programs write, and its restore says what each run lost."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from workpacket.problem import WorkpacketError
from workpacket.runtime import Runtime
from workpacket.runtime.errors import LeaseHeld, LogDamaged, NewerSchema, StorageFailed, StoreCorrupt, StoreUnavailable
from workpacket.runtime.stores.sqlite.repair import back_up, restore
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine

# Writes one step after the other, and says which is acknowledged.
WRITER = """
import sys
from pathlib import Path
from workpacket.runtime import Runtime
place, key = Path(sys.argv[1]), sys.argv[2]
with Runtime.open(place) as runtime, runtime.run("write", key=key) as run:
    for number in range(100_000):
        run.step(f"s{number}", lambda: "x" * 500)
        print(number, flush=True)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store" / "runs.db"


class Died(BaseException):
    pass


def write(place: Path, key: str, steps: int, *, unfinished: bool = False) -> None:
    with suppress(Died), Runtime.open(place) as runtime, runtime.run("write", key=key) as run:
        for number in range(steps):
            run.step(f"{key} {number}", lambda: "done")
        if unfinished:
            raise Died


def backed_up(place: Path, target: Path) -> None:
    with closing(SQLiteStore(place)) as store:
        assert back_up(store, target) == ()


def steps_of(place: Path, key: str) -> int:
    with closing(SQLiteStore(place)) as store:
        return sum(event.type == "step.completed" for event in store.read(f"write@{key}"))


@contextmanager
def writers(place: Path, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-c", WRITER, str(place)]
    started = [subprocess.Popen([*command, f"k{n}"], stdout=subprocess.PIPE, text=True) for n in range(count)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def acknowledged(process: subprocess.Popen[str], steps: int) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) + 1 >= steps:
            return int(line) + 1
    raise AssertionError("the writer ended")


def test_what_was_acknowledged_before_a_backup_is_in_it_while_others_write(place: Path, tmp_path: Path) -> None:
    with writers(place, 2) as working:
        for number in range(4):
            before = [acknowledged(process, 20 * (number + 1)) for process in working]
            backed_up(place, tmp_path / f"{number}.db")
            other = tmp_path / str(number) / "runs.db"
            restored = restore(other, tmp_path / f"{number}.db", 10.0)
            assert (restored.kept, restored.problems) == (None, ())
            assert [steps_of(other, f"k{n}") >= before[n] for n in range(2)] == [True, True]
        assert [process.poll() for process in working] == [None, None]


def test_a_restored_store_goes_on_and_each_run_says_what_it_lost(place: Path, tmp_path: Path) -> None:
    write(place, "whole", 2)
    write(place, "later", 1, unfinished=True)
    backed_up(place, tmp_path / "b.db")
    write(place, "later", 4, unfinished=True)
    write(place, "new", 3)
    restored = restore(place, tmp_path / "b.db", 10.0)
    assert [loss.row.name for loss in restored.losses] == ["write@later"]
    assert restored.kept is not None
    with closing(sqlite3.connect(restored.kept)) as kept:
        assert kept.execute("SELECT count(*) FROM streams").fetchone() == (3,)
    with closing(SQLiteStore(place)) as store:
        assert examine(store) == ()
        assert [event.type for event in store.read("write@later")][-1] == "rolled_back"
    write(place, "later", 4)
    write(place, "new", 3)
    assert [steps_of(place, key) for key in ("whole", "later", "new")] == [2, 4, 3]


def test_a_token_is_not_handed_out_again_after_a_restore(place: Path, tmp_path: Path) -> None:
    write(place, "k", 1, unfinished=True)
    backed_up(place, tmp_path / "b.db")
    with closing(SQLiteStore(place)) as store:
        lease = store.acquire("write@k", "x", 30)
        store.release(lease)
    restore(place, tmp_path / "b.db", 10.0)
    with closing(SQLiteStore(place)) as store:
        assert store.leases() == ()
        assert store.acquire("write@k", "y", 30).token > lease.token


def test_a_run_at_work_prevents_a_restore(place: Path, tmp_path: Path) -> None:
    write(place, "k", 1, unfinished=True)
    backed_up(place, tmp_path / "b.db")
    with closing(SQLiteStore(place)) as store:
        lease = store.acquire("write@k", "x", 30)
        before = place.read_bytes()
        with pytest.raises(LeaseHeld):
            restore(place, tmp_path / "b.db", 10.0)
        assert place.read_bytes() == before
        store.release(lease)


def test_a_program_that_has_the_replaced_store_open_is_refused(place: Path, tmp_path: Path) -> None:
    write(place, "k", 1, unfinished=True)
    backed_up(place, tmp_path / "b.db")
    with closing(SQLiteStore(place)) as store:
        restore(place, tmp_path / "b.db", 10.0)
        with pytest.raises(StorageFailed):
            store.acquire("write@k", "x", 30)
    assert steps_of(place, "k") == 1


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_another_file_is_not_restored(place: Path, tmp_path: Path, content: bytes) -> None:
    write(place, "k", 1)
    (tmp_path / "b.db").write_bytes(content)
    before = sorted(path.name for path in place.parent.iterdir())
    with pytest.raises(StoreCorrupt):
        restore(place, tmp_path / "b.db", 10.0)
    assert sorted(path.name for path in place.parent.iterdir()) == before
    assert steps_of(place, "k") == 1


def test_a_damaged_backup_is_restored_on_request_only(place: Path, tmp_path: Path) -> None:
    for key in ("one", "two"):
        write(place, key, 3)
    backed_up(place, tmp_path / "b.db")
    whole = (tmp_path / "b.db").read_bytes()
    assert b'"one 1"' in whole
    (tmp_path / "b.db").write_bytes(whole.replace(b'"one 1"', b'"one 7"', 1))
    with pytest.raises(StoreCorrupt, match="damaged"):
        restore(place, tmp_path / "b.db", 10.0)
    restored = restore(place, tmp_path / "b.db", 10.0, damaged=True)
    assert {problem.code for problem in restored.problems} >= {"log_damaged"}
    with pytest.raises(LogDamaged):
        steps_of(place, "one")
    assert steps_of(place, "two") == 3


def test_a_store_in_use_is_not_a_backup(place: Path, tmp_path: Path) -> None:
    """Its write-ahead log would be missing from the copy."""
    write(place, "k", 1)
    other = tmp_path / "other" / "runs.db"
    with closing(SQLiteStore(place)):
        for target in (place, other):
            with pytest.raises(StoreUnavailable, match="a store in use"):
                restore(target, place, 10.0)
    assert not other.exists()
    assert steps_of(place, "k") == 1


def test_a_backup_from_a_newer_version_is_not_restored(place: Path, tmp_path: Path) -> None:
    write(place, "k", 1)
    backed_up(place, tmp_path / "b.db")
    with closing(sqlite3.connect(tmp_path / "b.db", isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerSchema):
        restore(place, tmp_path / "b.db", 10.0)
    assert steps_of(place, "k") == 1


def test_a_backup_does_not_replace_a_file(place: Path, tmp_path: Path) -> None:
    write(place, "k", 1)
    (tmp_path / "b.db").write_text("mine")
    with closing(SQLiteStore(place)) as store, pytest.raises(WorkpacketError, match="exists already"):
        back_up(store, tmp_path / "b.db")
    assert (tmp_path / "b.db").read_text() == "mine"


KILLED = """
import sys
from contextlib import closing
from pathlib import Path
from workpacket.runtime.stores.sqlite.repair import back_up, restore
from workpacket.runtime.stores.sqlite.store import SQLiteStore
what, place, other = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
print("ready", flush=True)
while True:
    if what == "restore":
        restore(place, other, 10.0)
    else:
        with closing(SQLiteStore(place)) as store:
            back_up(store, other)
        other.unlink()
"""


@pytest.mark.parametrize("what", ["restore", "back-up"])
def test_whenever_it_is_killed_the_store_goes_on(place: Path, tmp_path: Path, what: str) -> None:
    """Killed at any moment, either the old store is in its place or the restored one; a part of a backup never has its
    name.
    """
    write(place, "old", 3)
    backed_up(place, tmp_path / "b.db")
    write(place, "new", 3)
    chance = random.Random(11)
    for _ in range(8):
        other = tmp_path / ("b.db" if what == "restore" else "c.db")
        command = [sys.executable, "-c", KILLED, what, str(place), str(other)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.0, 0.1))
            process.send_signal(signal.SIGKILL)
        if what == "back-up" and other.exists():
            restore(tmp_path / "elsewhere" / "runs.db", other, 10.0)
            other.unlink()
        with closing(SQLiteStore(place, accept_rollback=True)) as store:
            assert examine(store) == ()
        assert steps_of(place, "old") == 3
