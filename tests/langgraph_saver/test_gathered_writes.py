"""Writes of tasks are stored in one append with the checkpoint after them, and no call returns before it is stored."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from langgraph_saver.worlds import graph, on, put, require_sound, thread, values
from workpacket.runtime.errors import RuntimeFault, StoreUnavailable, VersionConflict
from workpacket.runtime.langgraph import WorkpacketSaver, saver
from workpacket.runtime.langgraph.parcels import _closed, _flat, patch_of, unpacked
from workpacket.runtime.stores.contract import Append, Appended
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore

LONG = 30.0  # seconds: longer than any of these tests waits


class Counting(MemoryStore):
    """Notes what each append stored; refuses while it is `full`."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[list[str]] = []
        self.full = False

    def append(self, request: Append) -> Appended:
        if self.full:
            raise StoreUnavailable("the disk is full", code="disk_full")
        self.appends.append([event.type for event in request.events])
        return super().append(request)


def pending(at: WorkpacketSaver, config: Any) -> list[tuple[str, str, Any]]:
    found = at.get_tuple(config)
    assert found is not None
    assert found.pending_writes is not None
    return list(found.pending_writes)


def waits(at: WorkpacketSaver, count: int) -> None:
    """Return when so many writes wait."""
    line = at.thread("t")
    while True:
        with line.lock:
            if len(line.waiting) == count:
                return


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saver, "GATHERING", LONG)


@pytest.mark.usefixtures("patience")
def test_writes_are_stored_in_one_append_with_the_checkpoint_after_them() -> None:
    store = Counting()
    at = on(store)
    first = put(at, thread("t"), {"text": ["a"]})
    with ThreadPoolExecutor() as pool:
        told = [pool.submit(at.put_writes, first, [("text", f"said by {task}")], task) for task in ("one", "two")]
        waits(at, 2)
        assert not any(one.done() for one in told)
        second = put(at, first, {"text": ["a", "said by one", "said by two"]})
        for one in told:
            one.result(LONG)
    assert [sorted(types) for types in store.appends] == [
        ["langgraph.checkpoint"],
        ["langgraph.checkpoint", "langgraph.writes", "langgraph.writes"],
    ]
    assert sorted(pending(at, first)) == [("one", "text", "said by one"), ("two", "text", "said by two")]
    fresh = on(store)
    assert values(fresh, second) == values(at, second) == {"text": ["a", "said by one", "said by two"]}
    assert pending(fresh, first) == pending(at, first)
    require_sound(store)


def test_writes_without_a_checkpoint_are_durable_when_the_call_returns(tmp_path: Path) -> None:
    path = tmp_path / "store" / "runs.db"
    with WorkpacketSaver.open(path) as at:
        first = put(at, thread("t"), {"text": ["a"]})
        at.put_writes(first, [("text", "b")], "task")
        other = SQLiteStore(path)
        assert pending(on(other), first) == [("task", "text", "b")]
        other.close()


@pytest.mark.usefixtures("patience")
def test_a_refused_checkpoint_takes_no_writes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    at = on(Counting())
    first = put(at, thread("t"), {"text": ["a"]})
    put(at, first, {"text": ["a", "b"]})
    monkeypatch.setattr(saver, "GATHERING", 0.2)
    with ThreadPoolExecutor() as pool:
        told = pool.submit(at.put_writes, first, [("text", "c")], "task")
        waits(at, 1)
        with pytest.raises(VersionConflict):
            put(at, first, {"text": ["a", "other"]})
        told.result(LONG)
    assert pending(at, first) == [("task", "text", "c")]


@pytest.mark.usefixtures("patience")
def test_writes_after_a_checkpoint_that_is_deleted_meanwhile_are_refused() -> None:
    store = MemoryStore()
    at, other = on(store), on(store)
    first = put(at, thread("t"), {"text": ["a"]})
    with ThreadPoolExecutor() as pool:
        told = pool.submit(at.put_writes, first, [("text", "c")], "task")
        waits(at, 1)
        other.delete_thread("t")
        put(at, thread("t"), {"text": ["begun again"]})
        with pytest.raises(VersionConflict, match="was deleted"):
            told.result(LONG)
    assert not at.thread("t").waiting


def test_who_cannot_store_its_writes_is_told_and_they_wait_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counting()
    at = on(store)
    first = put(at, thread("t"), {"text": ["a"]})
    store.full = True
    with ThreadPoolExecutor() as pool:
        told = [pool.submit(at.put_writes, first, [("text", task)], task) for task in ("one", "two", "three")]
        for one in told:
            with pytest.raises(RuntimeFault, match="the disk is full"):
                one.result(LONG)
    assert not at.thread("t").waiting
    store.full = False
    put(at, first, {"text": ["a", "b"]})
    assert pending(at, first) == []


def test_the_same_writes_twice_in_one_append_are_stored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saver, "GATHERING", 0.2)
    at = on(Counting())
    first = put(at, thread("t"), {"text": ["a"]})
    with ThreadPoolExecutor() as pool:
        told = [pool.submit(at.put_writes, first, [("text", "b")], "task") for _ in range(4)]
        for one in told:
            one.result(LONG)
    assert pending(at, first) == [("task", "text", "b")]


def test_a_super_step_is_one_append() -> None:
    """The order of two threads is not certain, so not each of them has to be."""
    store = Counting()
    talk = graph(on(store))
    for number in range(20):
        talk.invoke({"number": number, "text": ["question"]}, thread("t"), durability="sync")
    together = [types for types in store.appends if "langgraph.writes" in types and "langgraph.checkpoint" in types]
    assert len(together) >= 10
    require_sound(store)


def test_a_payload_of_before_is_read() -> None:
    old, new = b"message one; " * 40, b"message one; " * 40 + b"message two"
    assert unpacked(_closed(["nonce", new]), ()) == new
    assert unpacked(_closed(["nonce", _flat(patch_of([old], new))]), [old]) == new
