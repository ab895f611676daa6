"""Threads from the tables of LangGraph's own savers: whole, as they were, or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from cli.places import Place
from git.scratch import begin_repository
from langgraph_saver.other_savers import THREADS, answers, contents, converse, fill
from langgraph_saver.worlds import SETTINGS, on
from workpacket.runtime import Runtime
from workpacket.runtime.langgraph import WorkpacketSaver
from workpacket.runtime.langgraph.taken_over import TakenOver, taken_over, threads_at
from workpacket.runtime.stores.contract import Store, contents_of


@pytest.fixture(scope="module")
def told() -> InMemorySaver:
    saver = InMemorySaver()
    converse(saver)
    return saver


@pytest.fixture
def tables(told: InMemorySaver, tmp_path: Path) -> Path:
    fill(tmp_path / "checkpoints.sqlite", told)
    return tmp_path / "checkpoints.sqlite"


def take_over(path: Path, store: Store, *only: str) -> list[TakenOver]:
    with threads_at(str(path)) as source:
        return [*taken_over(source, store, SETTINGS, only)]


def test_every_thread_is_taken_over_as_it_was(told: InMemorySaver, tables: Path, each_store: Store) -> None:
    before = tables.read_bytes()
    found = take_over(tables, each_store)
    assert sorted(one.thread for one in found if one.fault is None) == sorted(THREADS)
    ours = on(each_store)
    for one in found:
        expected = contents(told, one.thread)
        assert len(expected) == one.checkpoints
        assert contents(ours, one.thread) == expected
    assert contents_of(each_store) == []
    assert tables.read_bytes() == before


@pytest.mark.parametrize("thread", THREADS)
def test_a_thread_goes_on_with_the_same_answers(thread: str, tables: Path, store: Store) -> None:
    saver = InMemorySaver()
    converse(saver)
    take_over(tables, store, thread)
    assert answers(on(store), thread)[1:3] == answers(saver, thread)[1:3]
    spoken = [repr(one).partition(" id=")[0] for one in answers(on(store), thread)[3]["said"]]
    assert spoken == [repr(one).partition(" id=")[0] for one in answers(saver, thread)[3]["said"]]


def test_what_is_here_already_is_left_and_the_rest_is_taken_over(tables: Path, store: Store) -> None:
    assert [one.fault for one in take_over(tables, store, "asked")] == [None]
    kept = contents(on(store), "asked")
    codes = {one.thread: one.fault and one.fault.code for one in take_over(tables, store, "asked", "ü", "none")}
    assert codes == {"asked": "view_conflict", "ü": None, "none": "checkpoint_missing"}
    assert contents(on(store), "asked") == kept


def test_a_thread_whose_beginning_was_pruned_is_taken_over(told: InMemorySaver, tables: Path, store: Store) -> None:
    with closing(sqlite3.connect(tables)) as db, db:
        old = db.execute(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = 'forked' ORDER BY 1 LIMIT 6"
        ).fetchall()
        for table in ("checkpoints", "writes"):
            db.executemany(f"DELETE FROM {table} WHERE thread_id = 'forked' AND checkpoint_id = ?", old)
    assert [one.fault for one in take_over(tables, store, "forked")] == [None]
    gone = {row[0] for row in old}
    expected = {place: said for place, said in contents(told, "forked").items() if place[1] not in gone}
    assert contents(on(store), "forked") == expected


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("type", "pickle", "newer_schema"),
        ("type", "json", "newer_schema"),
        ("checkpoint", b"\xc1", "log_damaged"),
        ("checkpoint", b"\x80", "log_damaged"),
        ("metadata", b"{", "log_damaged"),
    ],
)
def test_a_thread_that_cannot_be_copied_is_left_as_a_whole(
    column: str, value: Any, code: str, told: InMemorySaver, tables: Path, store: Store
) -> None:
    with closing(sqlite3.connect(tables)) as db, db:
        last = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'ü')"
        db.execute(f"UPDATE checkpoints SET {column} = ? WHERE checkpoint_id = {last}", (value,))
    codes = {one.thread: one.fault and one.fault.code for one in take_over(tables, store)}
    assert codes == {**dict.fromkeys(THREADS), "ü": code}
    assert contents(on(store), "ü") == {}
    assert contents(on(store), "asked") == contents(told, "asked")


def test_a_checkpoint_of_an_older_format_is_not_guessed_at(tables: Path, told: InMemorySaver, store: Store) -> None:
    old = dict(next(told.list({"configurable": {"thread_id": "ü"}})).checkpoint) | {"v": 3}
    with closing(sqlite3.connect(tables)) as db, db:
        change = "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?"
        db.execute(change, (told.serde.dumps_typed(old)[1], old["id"]))
    (left,) = (one for one in take_over(tables, store, "ü"))
    assert left.fault is not None
    assert left.fault.code == "newer_schema"


def test_a_secret_in_a_thread_keeps_it_out(store: Store, tmp_path: Path) -> None:
    saver = InMemorySaver()
    converse(saver)
    config: Any = {"configurable": {"thread_id": "ü", "checkpoint_ns": ""}}
    found = saver.get_tuple(config)
    assert found is not None
    found.checkpoint["channel_values"]["number"] = "very-secret-value"
    found.checkpoint["channel_versions"]["number"] = found.checkpoint["id"] = "2" + found.checkpoint["id"][1:]
    saver.put(found.config, found.checkpoint, found.metadata, {"number": found.checkpoint["id"]})
    fill(tmp_path / "secret.sqlite", saver)
    codes = {one.thread: one.fault and one.fault.code for one in take_over(tmp_path / "secret.sqlite", store)}
    assert codes == {**dict.fromkeys(THREADS), "ü": "would_be_altered"}
    assert b"very-secret-value" not in (tmp_path / "runs.db").read_bytes()


def test_the_command_takes_over_a_database(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKPACKET_STORE", raising=False)
    begin_repository(tmp_path / "one")
    place = Place(tmp_path / "one", capsys)
    command = ("runtime", "runs", "import", str(tables))
    assert place.json(*command, "--thread", "asked")["data"]["threads"] == [
        {"run": "langgraph/asked", "checkpoints": 7}
    ]
    again = place.json(*command)
    assert (again["exit_code"], [one["thread"] for one in again["data"]["left"]]) == (69, ["asked"])
    assert len(again["data"]["threads"]) == len(THREADS) - 1
    assert place("runtime", "runs", "verify").stdout == f"{len(THREADS)} runs verified\n"
    store = place.root / ".git/workpacket/runs.db"
    wrong = place("runtime", "runs", "import", str(store))
    assert (wrong.returncode, "cannot be read as the checkpoints" in wrong.stderr) == (68, True)
    (tmp_path / "export.jsonl").write_text("{}\n")
    assert place("runtime", "runs", "import", str(tmp_path / "export.jsonl"), "--thread", "x").returncode == 2
    with Runtime.open(store) as runtime, WorkpacketSaver(runtime.store) as saver:
        assert len(contents(saver, "asked")) == 7
