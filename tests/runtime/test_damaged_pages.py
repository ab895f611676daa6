"""One damaged page is not the whole store: the other runs are read, listed and continued, and what is derived is made
again. The damages are in `damaged_pages.jsonl`.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runtime.damage import quick_folder
from workpacket.runtime import Runtime
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.stores.sqlite.repair import rebuild
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine

pytestmark = pytest.mark.share(6)

CASES = [json.loads(line) for line in (Path(__file__).parent / "damaged_pages.jsonl").read_text().splitlines()]
RUNS = [f"job{number:02d}@00000001" for number in range(20)]
ON_ONE_PAGE = 3  # the most runs whose events are on one page


class Made(NamedTuple):
    folder: Path
    pages: dict[str, list[int]]  # the pages of each table and index
    size: int
    truth: dict[str, list[str]]  # the hashes of the events of each run


@pytest.fixture(scope="module")
def made() -> Iterator[Made]:
    with quick_folder() as folder:
        path = folder / "made" / "runs.db"
        with Runtime(SQLiteStore(path)) as runtime:
            for number in range(20):
                with runtime.run(f"job{number:02d}") as run:
                    for step in range(6):
                        run.step(f"s{step}", "{:x>150}".format, step)
                    run.effect("mail", int, number, key="k")
                    run.checkpoint({"n": number})
            truth = {name: [event.hash for event in runtime.store.read(name)] for name in RUNS}
        with sqlite3.connect(path) as db:
            pages: dict[str, list[int]] = {}
            for table, page in db.execute("SELECT name, pageno FROM dbstat ORDER BY name, pageno"):
                pages.setdefault(table, []).append(page)
            (size,) = db.execute("PRAGMA page_size").fetchone()
        db.close()
        yield Made(folder, pages, size, truth)


def damaged(made: Made, case: dict[str, Any]) -> Path:
    """A copy of the store in which one page is zero, has flipped bits, or is text."""
    folder = made.folder / str(case["id"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in ("runs.db", "runs.db.lock"):
        shutil.copy(made.folder / "made" / file, folder / file)
    content = bytearray((folder / "runs.db").read_bytes())
    pages, chosen = made.pages[case["table"]], random.Random(case["seed"])
    start = (pages[case["page"]] - 1) * made.size
    if case["how"] == "flip":
        for _ in range(8):
            content[start + chosen.randrange(made.size)] ^= 1 << chosen.randrange(8)
    else:
        content[start : start + made.size] = (
            bytes(made.size) if case["how"] == "zero" else b"damaged " * (made.size // 8)
        )
    (folder / "runs.db").write_bytes(content)
    return folder / "runs.db"


def whole(runtime: Runtime, truth: dict[str, list[str]], *, payloads: bool = True) -> set[str]:
    """The runs that can be read to the end. What is read is what was stored, or an AssertionError is raised."""
    found = set()
    for name in RUNS:
        try:
            events = list(runtime.store.read(name))
            assert [event.hash for event in events] == truth[name], name
            if payloads:
                for event in events:
                    runtime.store.payload(event)
        except RuntimeFault:
            continue
        found.add(name)
    return found


def goes_on(runtime: Runtime) -> int:
    """How many programs can begin a run and finish it."""
    count = 0
    for number in range(20):
        try:
            with runtime.run(f"job{number:02d}", fresh=True) as run:
                run.step("again", int)
        except RuntimeFault:
            continue
        count += 1
    return count


def rebuilt_and_listed(path: Path) -> int:
    rebuild(path, 1, 2.0)
    with Runtime(SQLiteStore(path)) as runtime:
        return len(runtime.runs())


@pytest.mark.share(5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_one_damaged_page_is_not_the_whole_store(made: Made, case: dict[str, Any]) -> None:
    path, expected = damaged(made, case), case["expected"]
    if expected == "refused":
        with pytest.raises(RuntimeFault) as fault:
            rebuilt_and_listed(path)
        assert fault.value.way_out
        return
    # Without the page that leads to all others, no event is found; each run is then named as damaged.
    least = {"rebuilt": 20, "named": 0}.get(expected, 20 - ON_ONE_PAGE)
    with Runtime(SQLiteStore(path)) as runtime:
        assert {line.id for line in runtime.runs()} == set(RUNS), "every run is listed"
        if case["table"] == "events":
            assert len(whole(runtime, made.truth)) >= least
    done = rebuild(path, 1, 2.0)
    assert done.kept.exists()
    with Runtime(SQLiteStore(path)) as runtime:
        left = whole(runtime, made.truth, payloads=expected != "events")
        assert len(left) >= least
        assert set(RUNS) - left == set(done.damaged)
        assert goes_on(runtime) == 20
        assert expected != "rebuilt" or examine(runtime.store) == ()  # type: ignore[arg-type]


def test_a_rebuilt_store_is_the_same_store(made: Made) -> None:
    """Same identity, same numbers of runs, and the lease of who is at work."""
    folder = made.folder / "same"
    shutil.copytree(made.folder / "made", folder)
    with Runtime(SQLiteStore(folder / "runs.db")) as runtime:
        before = runtime.store.identity, runtime.runs()
        lease = runtime.store.acquire(RUNS[0], "someone", 100)
    rebuild(folder / "runs.db", 1, 2.0)
    with Runtime(SQLiteStore(folder / "runs.db")) as runtime:
        kept = runtime.store.lease(RUNS[0])
        assert kept is not None
        assert (kept.holder, kept.token) == ("someone", lease.token)
        assert runtime.store.identity == before[0]
        assert [line.id for line in runtime.runs()] == [line.id for line in before[1]]


def test_a_program_with_the_old_file_open_is_refused(made: Made) -> None:
    folder = made.folder / "open"
    shutil.copytree(made.folder / "made", folder)
    with Runtime(SQLiteStore(folder / "runs.db")) as runtime:
        rebuild(folder / "runs.db", 1, 2.0)
        with pytest.raises(RuntimeFault), runtime.run("late") as run:
            run.step("lost", int)


def test_a_lease_that_cannot_be_read_is_followed_by_a_higher_token(made: Made) -> None:
    folder = made.folder / "leases"
    shutil.copytree(made.folder / "made", folder)
    with Runtime(SQLiteStore(folder / "runs.db")) as runtime:
        token = runtime.store.acquire(RUNS[0], "someone", 100).token
        runtime.store._db.execute("UPDATE leases SET crc = 0")  # type: ignore[attr-defined]
    rebuild(folder / "runs.db", 1, 2.0)
    with Runtime(SQLiteStore(folder / "runs.db")) as runtime:
        assert runtime.store.acquire(RUNS[0], "another", 100).token > token


def test_a_damaged_page_of_the_log_is_told_from_an_older_file(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "runs.db")
    with Runtime(store) as runtime:
        with runtime.run("job") as run:
            for step in range(8):
                run.step(f"s{step}", int)
        files = {name: (tmp_path / name).read_bytes() for name in ("runs.db", "runs.db-wal", "runs.db.lock")}
    log = bytearray(files["runs.db-wal"])
    log[len(log) // 2] ^= 1
    for name, expected in (("damaged", "is damaged, so the pages after it"), ("older", "older copy")):
        folder = tmp_path / name
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_bytes(content)
        if name == "damaged":
            (folder / "runs.db-wal").write_bytes(log)
        else:
            (folder / "runs.db-wal").unlink()
        with pytest.raises(RuntimeFault, match=expected) as fault:
            SQLiteStore(folder / "runs.db")
        assert fault.value.code == "store_rolled_back"
