"""Two who go on from one checkpoint: the second is told so, and nothing of the second is kept."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.graph import START, StateGraph

from langgraph_saver.worlds import State, conversation, graph, on, put, require_sound, thread, values
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.stores.contract import Append, Appended, Store
from workpacket.runtime.stores.memory import MemoryStore


def test_a_second_process_that_goes_on_from_the_same_checkpoint_is_refused(each_store: Store) -> None:
    first, second = on(each_store), on(each_store)
    head = conversation(first, "t", 3)[-1]
    assert values(second, thread("t")) == values(first, head)
    followed = put(first, head, {"text": ["one answer"]})
    with pytest.raises(RuntimeFault, match="meanwhile") as caught:
        put(second, head, {"text": ["another answer"]})
    assert caught.value.code == "thread_moved"
    assert values(second, thread("t")) == {"text": ["one answer"]}
    assert len(list(second.list(thread("t")))) == 4
    assert put(second, followed, {"text": ["then this"]})
    require_sound(each_store)


def test_two_who_begin_one_thread_at_once_are_told_apart(store: Store) -> None:
    first, second = on(store), on(store)
    assert first.get_tuple(thread("t")) is None
    assert second.get_tuple(thread("t")) is None
    put(first, thread("t"), {"text": ["one"]})
    with pytest.raises(RuntimeFault, match="continues from an empty thread"):
        put(second, thread("t"), {"text": ["two"]})


def test_two_who_share_a_saver_and_begin_one_thread_at_once_are_told_apart(store: Store) -> None:
    saver = on(store)
    assert [saver.get_tuple(thread("t")), saver.get_tuple(thread("t"))] == [None, None]
    put(saver, thread("t"), {"text": ["one"]})
    with pytest.raises(RuntimeFault, match="continues from an empty thread"):
        put(saver, thread("t"), {"text": ["two"]})


def test_an_older_checkpoint_that_was_asked_for_by_its_id_may_be_branched_from(store: Store) -> None:
    saver = on(store)
    made = conversation(saver, "t", 3)
    with pytest.raises(RuntimeFault, match="meanwhile"):
        put(saver, made[0], {"text": ["not asked for"]})
    assert saver.get_tuple(made[0]) is not None
    branch = put(saver, made[0], {"text": ["a branch"]})
    newest = saver.get_tuple(thread("t"))
    assert newest is not None
    assert newest.config == branch
    assert newest.parent_config == made[0]


def test_what_list_hands_out_and_the_parent_of_what_was_read_may_be_branched_from(store: Store) -> None:
    saver = on(store)
    conversation(saver, "t", 3)
    newest, middle, oldest = saver.list(thread("t"))
    assert put(saver, oldest.config, {"text": ["a branch of what was listed"]})
    assert newest.parent_config == middle.config
    assert newest.parent_config is not None
    branch = put(saver, newest.parent_config, {"text": ["a branch of the parent"]})
    assert values(saver, thread("t")) == {"text": ["a branch of the parent"]}
    assert put(saver, branch, {"text": ["and on"]})
    require_sound(store)


def test_listing_a_history_does_not_let_a_run_go_on_that_was_overtaken(store: Store) -> None:
    saver = on(store)
    conversation(saver, "t", 2)
    slow, quick = saver.get_tuple(thread("t")), saver.get_tuple(thread("t"))
    assert slow is not None
    assert quick is not None
    put(saver, quick.config, {"text": ["one answer"]})
    assert len(list(saver.list(thread("t")))) == 3
    with pytest.raises(RuntimeFault, match="meanwhile") as caught:
        put(saver, slow.config, {"text": ["another answer"]})
    assert caught.value.code == "thread_moved"


def test_a_second_beginning_is_refused_unless_the_first_checkpoint_is_copied(store: Store) -> None:
    saver = on(store)
    conversation(on(store), "t", 2)
    assert values(saver, thread("t"))
    with pytest.raises(RuntimeFault, match="continues from an empty thread"):
        put(saver, thread("t"), {"text": ["two"]})
    assert put(saver, thread("t"), {"text": ["copied"]}, {"source": "fork"})


class Slow(MemoryStore):
    """Nothing is stored before `gate` is open, and then slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def append(self, request: Append) -> Appended:
        self.gate.wait(2)
        time.sleep(0.01)
        return super().append(request)


async def cancelled(store: Slow) -> Any:
    """A graph whose run was cancelled before its checkpoints were stored. They are still on their way."""
    worked = asyncio.Event()

    async def work(state: State) -> dict[str, list[str]]:
        worked.set()
        return {"text": [f"answer {len(state['text'])}"]}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    compiled: Any = builder.compile(checkpointer=on(store))
    given = {"number": 0, "text": ["q"]}
    running = asyncio.create_task(compiled.ainvoke(given, thread("t"), durability="async"))
    await worked.wait()
    for _ in range(50):  # turns of the loop, in which the run comes to its end but for the storing
        await asyncio.sleep(0)
    while not running.done():  # a run that is cancelled once waits for its checkpoints; twice, and it leaves them
        running.cancel()
        await asyncio.sleep(0)
    threading.Timer(0.02, store.gate.set).start()
    return compiled


def test_after_a_cancelled_run_the_next_turn_follows_all_that_it_left_behind() -> None:
    store = Slow()

    async def talk() -> None:
        compiled = await cancelled(store)
        said = await compiled.ainvoke({"number": 1, "text": ["next"]}, thread("t"))
        assert said["text"] == ["q", "answer 1", "next", "answer 3"]

    asyncio.run(talk())
    history = list(on(store).list(thread("t")))
    parents = [one.parent_config["configurable"]["checkpoint_id"] for one in history if one.parent_config]
    assert len(parents) == len(set(parents)) == len(history) - 1


def ids(checkpoints: Iterable[CheckpointTuple]) -> list[str]:
    return [one.checkpoint["id"] for one in checkpoints]


EVERY_NAMESPACE: RunnableConfig = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize("asked", [thread("t"), EVERY_NAMESPACE, None], ids=["namespace", "thread", "all"])
def test_after_a_cancelled_run_its_checkpoints_are_all_listed(asked: RunnableConfig | None) -> None:
    store = Slow()

    async def listed() -> list[str]:
        saver = (await cancelled(store)).checkpointer
        return ids([one async for one in saver.alist(asked)])

    assert asyncio.run(listed()) == ids(on(store).list(thread("t")))


def test_a_copy_holds_what_a_cancelled_run_left_behind() -> None:
    store = Slow()

    async def copied() -> None:
        saver = (await cancelled(store)).checkpointer
        await saver.acopy_thread("t", "copy")

    asyncio.run(copied())
    assert ids(on(store).list(thread("copy"))) == ids(on(store).list(thread("t")))


def test_who_goes_on_from_a_deleted_thread_does_not_bring_half_of_it_back(store: Store) -> None:
    first, second = on(store), on(store)
    head = conversation(first, "t", 2)[-1]
    assert values(second, thread("t"))
    first.delete_thread("t")
    with pytest.raises(RuntimeFault, match="it was deleted"):
        put(second, head, {"text": ["late"]})
    with pytest.raises(RuntimeFault, match="was deleted"):
        second.put_writes(head, [("text", "late")], "task")
    assert list(second.list(thread("t"))) == []


def test_of_graphs_that_run_side_by_side_on_one_thread_one_goes_on(each_store: Store) -> None:
    """Real runs of LangGraph, each with a saver of its own; a gate lets them all have read before the first writes."""
    graph(on(each_store)).invoke({"number": 0, "text": []}, thread("t"))
    gate = threading.Barrier(3)
    outcomes: list[str] = []

    def one(number: int) -> None:
        saver = on(each_store)
        read = saver.get_tuple

        def gated(config: RunnableConfig) -> object:
            found = read(config)
            gate.wait(20)
            saver.get_tuple = read  # type: ignore[method-assign]
            return found

        saver.get_tuple = gated  # type: ignore[method-assign,assignment]
        try:
            graph(saver).invoke({"number": number, "text": [f"question {number}"]}, thread("t"))
            outcomes.append("done")
        except RuntimeFault as fault:
            outcomes.append(fault.code)

    runs = [threading.Thread(target=one, args=(number,)) for number in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert sorted(outcomes) == ["done", "thread_moved", "thread_moved"]
    history = list(on(each_store).list(thread("t")))
    parents = [one.parent_config["configurable"]["checkpoint_id"] for one in history if one.parent_config]
    assert len(parents) == len(set(parents))  # no checkpoint was followed twice
    require_sound(each_store)


def test_a_graph_goes_back_and_branches(store: Store) -> None:
    compiled = graph(on(store))
    for number in range(2):
        compiled.invoke({"number": number, "text": [f"question {number}"]}, thread("t"))
    history = list(compiled.get_state_history(thread("t")))
    older = next(state for state in history if state.next == ("work",))
    again = compiled.invoke(None, older.config)
    assert again["text"][:-1] == older.values["text"]
    compiled.update_state(history[-1].config, {"number": 7}, as_node="work")
    assert compiled.get_state(thread("t")).values["number"] == 7
    compiled.invoke({"number": 1, "text": ["exit"]}, thread("t"), durability="exit")
    require_sound(store)
