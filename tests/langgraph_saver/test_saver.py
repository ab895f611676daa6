"""The saver as LangGraph uses it: growth, reading after a restart, async graphs, failing storage, moving elsewhere."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, DeltaChannelHistory, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_saver.worlds import conversation, graph, on, put, require_sound, texts, thread, values
from workpacket.runtime.errors import RuntimeFault, StoreUnavailable
from workpacket.runtime.langgraph import WorkpacketSaver, require_langgraph
from workpacket.runtime.records.events import Event, NewEvent
from workpacket.runtime.stores.contract import Append, Appended, Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.stores.transfer import export_lines, import_lines

TURNS = 100


def test_a_conversation_grows_the_store_by_no_more_than_six_times_what_was_said(tmp_path: Path) -> None:
    """Text that no compression makes smaller, as a graph of one node keeps it: five records a turn."""
    path, noise = tmp_path / "store" / "runs.db", random.Random(7)
    with WorkpacketSaver.open(path) as saver:
        compiled = graph(saver)
        for number in range(TURNS):
            said = "".join(chr(noise.randrange(33, 127)) for _ in range(1000))
            compiled.invoke({"number": number, "text": [said]}, thread("t"))
    assert sum(file.stat().st_size for file in path.parent.iterdir()) <= 6 * TURNS * 1000


def test_a_state_is_read_in_few_steps(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    made = conversation(on(store), "t", 150)
    asked: list[int] = []
    payload = store.payload

    def counted(event: Event) -> bytes | None:
        asked.append(event.version)
        return payload(event)

    monkeypatch.setattr(store, "payload", counted)
    for number in (0, 31, 32, 100, 149):
        asked.clear()
        assert values(on(store), made[number])["text"] == texts(number)
        assert len(asked) <= 32 + number // 32 + 1


def test_after_very_many_patches_a_checkpoint_is_kept_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workpacket.runtime.langgraph.saver.DEEPEST", 40)
    saver = on(store)
    made = [put(saver, thread("t"), {"text": "lorem " * 50})]
    for number in range(120):
        made.append(put(saver, made[-1], {"text": "lorem " * 50 + f"{number}" * 60}))
    whole = [event.version for event in store.read("langgraph/t") if "base" not in event.values()]
    assert len(whole) > 1
    assert values(on(store), made[-1])["text"] == "lorem " * 50 + "119" * 60


def test_an_async_graph_keeps_its_thread(each_store: Store) -> None:
    async def talk() -> None:
        compiled = graph(on(each_store))
        await asyncio.gather(*(compiled.ainvoke({"number": 1, "text": ["q"]}, thread(f"t{n}")) for n in range(4)))
        assert (await compiled.aget_state(thread("t3"))).values == {"number": 2, "text": ["q", "answer 1"]}
        history = [state async for state in compiled.aget_state_history(thread("t3"))]
        assert [state.next for state in history] == [(), ("work",), ("__start__",)]

    asyncio.run(talk())
    require_sound(each_store)


def test_the_history_of_a_channel_is_what_its_ancestors_wrote(store: Store) -> None:
    saver = on(store)
    made = [put(saver, thread("t"), {"text": "seed"})]
    for number in range(3):
        saver.put_writes(made[-1], [("other", number), ("text", "not asked")], f"task {number}", "path")
        made.append(put(saver, made[-1], {}))
    wanted: DeltaChannelHistory = {"writes": [(f"task {n}", "other", n) for n in range(3)]}
    found = saver.get_delta_channel_history(config=made[-1], channels=["other", "text"])
    assert found["other"] == wanted
    assert found["text"]["seed"] == "seed"
    assert (
        len(asyncio.run(saver.aget_delta_channel_history(config=thread("t"), channels=["text"]))["text"]["writes"]) == 3
    )
    assert saver.get_delta_channel_history(config=thread("t"), channels=[]) == {}


def test_writes_come_back_in_the_order_of_the_super_step_and_errors_are_replaced(store: Store) -> None:
    saver = on(store)
    head = put(saver, thread("t"), {})
    saver.put_writes(head, [("a", 1), ("b", 2)], "late", "path 2")
    saver.put_writes(head, [("a", 3)], "early", "path 1")
    saver.put_writes(head, [("__error__", "first")], "early", "path 1")
    saver.put_writes(head, [("__error__", "second")], "early", "path 1")
    saver.put_writes(head, [("a", "again")], "early", "path 1")
    for reader in (saver, on(store)):
        found = reader.get_tuple(head)
        assert found is not None
        assert found.pending_writes == [
            ("early", "__error__", "second"),
            ("early", "a", 3),
            ("late", "a", 1),
            ("late", "b", 2),
        ]


def test_the_order_is_that_of_the_store_whatever_the_clocks_said(store: Store) -> None:
    saver = on(store)
    late, early = empty_checkpoint(), empty_checkpoint()
    late["id"], early["id"] = "ffff", "0000"
    first = saver.put(thread("t"), late, {"source": "loop"}, {})
    second = saver.put(first, early, {"source": "loop"}, {})
    found = on(store).get_tuple(thread("t"))
    assert found is not None
    assert found.config == second
    assert [one.config for one in saver.list(thread("t"), before=second)] == [first]
    assert [one.config for one in saver.list(thread("t"), limit=1)] == [second]


def in_the_step_of(checkpoint: str, name: str = "t") -> Any:
    """How LangGraph asks what a subgraph was before a step of its parent: it names no namespace for the step."""
    return {"configurable": {"thread_id": name, "checkpoint_id": checkpoint}}


@pytest.mark.parametrize("stored", ["as made", "subgraph first", "subgraph last"])
def test_what_was_before_a_step_is_decided_by_the_steps_and_not_by_what_was_stored_first(
    store: Store, stored: str
) -> None:
    outer: list[Checkpoint] = []
    inner: list[Checkpoint] = []
    for _ in range(3):
        outer.append(empty_checkpoint())
        inner.append(empty_checkpoint())
    saver = on(store)
    space: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": "sub"}}

    def put_outer(number: int) -> None:
        at = thread("t") if number == 0 else thread("t", outer[number - 1]["id"])
        saver.put(at, outer[number], {"source": "loop", "step": number, "parents": {}}, {})

    def put_inner(number: int) -> None:
        parent = {} if number == 0 else {"checkpoint_id": inner[number - 1]["id"]}
        made_in: CheckpointMetadata = {"source": "loop", "step": number, "parents": {"": outer[number]["id"]}}
        saver.put({"configurable": {**space["configurable"], **parent}}, inner[number], made_in, {})

    steps = {
        "as made": [one for number in range(3) for one in ((put_outer, number), (put_inner, number))],
        "subgraph first": [one for number in range(3) for one in ((put_inner, number), (put_outer, number))],
        "subgraph last": [(put, number) for put in (put_outer, put_inner) for number in range(3)],
    }[stored]
    for call, number in steps:
        call(number)
    for reader in (saver, on(store)):
        for number in range(3):
            found = [one.checkpoint["id"] for one in reader.list(space, before=in_the_step_of(outer[number]["id"]))]
            assert found == [one["id"] for one in reversed(inner[:number])]


@pytest.mark.parametrize("current", [f"{3:032}.{0.5:016}", "3.0"])
def test_versions_that_another_saver_made_go_on_as_strings(store: Store, current: str) -> None:
    following = on(store).get_next_version(current, None)
    assert int(following.partition(".")[0]) == 4
    assert following != on(store).get_next_version(current, None)
    assert InMemorySaver().get_next_version(following, None)[:32] == f"{5:032}"
    assert (on(store).get_next_version(None, None), on(store).get_next_version(3, None)) == (1, 4)


def test_a_version_without_a_number_is_refused_with_what_to_do(store: Store) -> None:
    with pytest.raises(RuntimeFault, match="'latest'") as caught:
        on(store).get_next_version("latest", None)
    assert caught.value.code == "thread_version_invalid"
    assert "copy the thread's state into a new thread" in str(caught.value.hint)
    theirs, named = InMemorySaver(), itertools.count()
    theirs.get_next_version = lambda current, channel: f"v{next(named):03}"  # type: ignore[method-assign]
    values = graph(theirs).invoke({"number": 1, "text": ["question"]}, thread("t"))
    assert graph(on(store)).invoke(values, thread("new"))["number"] == 3
    assert graph(theirs).invoke({"number": 5}, thread("t"))["number"] == 6


def test_a_thread_that_another_saver_began_goes_on(store: Store) -> None:
    theirs = InMemorySaver()
    graph(theirs).invoke({"number": 1, "text": ["question"]}, thread("t"))
    saver = on(store)
    for one in reversed(list(theirs.list(thread("t")))):
        at = one.parent_config or thread("t")
        saver.put(at, one.checkpoint, one.metadata, one.checkpoint["channel_versions"])
    assert graph(saver).get_state(thread("t")).values == graph(theirs).get_state(thread("t")).values
    said = graph(saver).invoke({"number": 5, "text": ["more"]}, thread("t"))
    assert said == {"number": 6, "text": ["question", "answer 1", "more", "answer 3"]}


def test_the_value_of_a_version_is_kept_where_langgraph_leaves_it_out(store: Store) -> None:
    saver, first, second = on(store), empty_checkpoint(), empty_checkpoint()
    first["channel_values"], first["channel_versions"] = {"snapshot": ["a"], "text": "b"}, {"snapshot": 1, "text": 1}
    second["channel_versions"] = {"snapshot": 1, "text": 2}
    head = saver.put(thread("t"), first, {"source": "loop"}, first["channel_versions"])
    saver.put(head, second, {"source": "loop"}, {"text": 2})
    assert values(on(store), thread("t")) == {"snapshot": ["a"]}


class Forgetful(MemoryStore):
    """Stores what it is given and loses the answer, once."""

    lost = False

    def append(self, request: Append) -> Appended:
        appended = super().append(request)
        if not self.lost and request.events[0].type == "langgraph.checkpoint":
            self.lost = True
            raise StoreUnavailable("the answer was lost", code="store_busy")
        return appended


def test_after_a_lost_answer_the_same_checkpoint_can_be_put_again() -> None:
    saver, checkpoint = on(Forgetful()), empty_checkpoint()
    with pytest.raises(StoreUnavailable):
        saver.put(thread("t"), checkpoint, {"source": "loop"}, {})
    again = saver.put(thread("t"), checkpoint, {"source": "loop"}, {})
    assert [one.config for one in saver.list(thread("t"))] == [again]
    head = saver.store.head("langgraph/t")
    assert head is not None
    assert head.version == 1


def test_a_thread_that_is_always_written_by_others_first_is_left_with_a_reason() -> None:
    class Busy(MemoryStore):
        said = 0

        def append(self, request: Append) -> Appended:
            self.said += 1
            other = NewEvent("langgraph.erased", '{"deleted":9}')
            super().append(Append(request.stream, (other,), "other", self.said, "other", 0, 0))
            return super().append(request)

    with pytest.raises(StoreUnavailable, match="another writer wrote first"):
        put(on(Busy()), thread("t"), {})


def test_a_thread_moves_to_another_store(store: Store, tmp_path: Path) -> None:
    made = conversation(on(store), "t", 40)
    other = SQLiteStore(tmp_path / "other.db")
    assert import_lines(other, export_lines(store, "langgraph/t")) == "langgraph/t"
    assert values(on(other), made[-1])["text"] == texts(39)
    require_sound(other)
    other.close()


def test_a_damaged_payload_is_not_believed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation(on(store), "t", 3)
    payload = store.payload

    def gone(event: Event) -> bytes | None:
        return None if event.version == 1 else payload(event)

    monkeypatch.setattr(store, "payload", gone)
    with pytest.raises(RuntimeFault, match="should have a payload"):
        on(store).get_tuple(thread("t"))


def test_the_error_names_the_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workpacket.runtime.langgraph.find_spec", lambda name: None)
    with pytest.raises(RuntimeFault, match="langgraph-checkpoint") as caught:
        require_langgraph()
    assert caught.value.hint == "pip install 'workpacket[langgraph]'"
    with pytest.raises(AttributeError):
        _ = importlib.import_module("workpacket.runtime.langgraph").nothing


def test_the_runtime_alone_imports_nothing_of_langgraph() -> None:
    program = (
        "import sys, workpacket.runtime.langgraph, workpacket.runtime.runtime; print('langchain_core' in sys.modules)"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"
