"""What is deleted is gone from the file, what is kept can be read, and the chain verifies; also after a crash."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph

from langgraph_saver.worlds import conversation, on, put, require_sound, stored_bytes, texts, thread, values
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.stores.contract import Store


def test_a_deleted_thread_is_erased_and_its_name_can_be_used_again(each_store: Store) -> None:
    saver = on(each_store)
    head = conversation(saver, "t", 40)[-1]
    saver.put_writes(head, [("text", ["pending lorem"])], "task")
    conversation(saver, "other", 2)
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")
    assert saver.get_tuple(thread("t")) is None
    assert values(saver, thread("copy"))["text"] == texts(39)
    assert values(saver, thread("other"))["text"] == texts(1)
    require_sound(each_store)
    saver.delete_thread("copy")
    saver.delete_thread("other")
    assert b"lorem" not in stored_bytes(each_store)
    conversation(on(each_store), "t", 2)
    assert values(on(each_store), thread("t"))["text"] == texts(1)
    require_sound(each_store)


def test_pruning_keeps_the_latest_whole(each_store: Store) -> None:
    saver = on(each_store)
    head = conversation(saver, "t", 70)[-1]
    saver.put_writes(head, [("text", "pending")], "task")
    saver.prune(["t"])
    for reader in (saver, on(each_store)):
        found = list(reader.list(thread("t")))
        assert [one.config for one in found] == [head]
        assert found[0].checkpoint["channel_values"]["text"] == texts(69)
        assert found[0].pending_writes == [("task", "text", "pending")]
    assert put(on(each_store), head, {"text": texts(70)})
    require_sound(each_store)


def test_a_run_is_deleted_from_the_middle_and_what_rests_on_it_stays_readable(each_store: Store) -> None:
    saver = on(each_store)
    made = conversation(saver, "t", 30, run_id="a")
    for run, until in (("b", 45), ("c", 100)):
        while len(made) < until:
            made.append(put(saver, made[-1], {"text": texts(len(made))}, {"run_id": run}))
    saver.put_writes(made[50], [("text", "kept")], "task")
    saver.delete_for_runs(["b"])
    for reader in (saver, on(each_store)):
        assert [reader.get_tuple(config) is None for config in made] == [False] * 30 + [True] * 15 + [False] * 55
        for number in (0, 29, 45, 64, 99):
            assert values(reader, made[number])["text"] == texts(number)
        kept = reader.get_tuple(made[50])
        assert kept is not None
        assert kept.pending_writes == [("task", "text", "kept")]
    require_sound(each_store)


def test_a_deletion_cut_short_is_finished_by_who_comes_next(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    saver = on(store)
    conversation(saver, "t", 5)

    def killed(digests: Iterable[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "erase_all", killed)
    with pytest.raises(KeyboardInterrupt):
        saver.delete_thread("t")
    monkeypatch.undo()
    assert b"message 4" in stored_bytes(store)
    later = on(store)
    assert later.get_tuple(thread("t")) is None
    put(later, thread("t"), {"text": ["new"]})
    assert b"message 4" not in stored_bytes(store)
    require_sound(store)


class Deltas(TypedDict):
    text: Annotated[list[str], DeltaChannel(lambda old, writes: [*(old or []), *(x for one in writes for x in one)])]
    plain: Annotated[list[str], add]


def talking(saver: Any) -> Any:
    builder = StateGraph(Deltas)
    builder.add_node("work", lambda state: {"text": [f"answer {len(state['text'])}"], "plain": ["x"]})
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


def test_pruning_keeps_what_a_delta_channel_of_langgraph_is_put_together_from(store: Store) -> None:
    saver = on(store)
    for number in range(4):
        talking(saver).invoke({"text": [f"question {number}"], "plain": []}, thread("t"))
    before = talking(saver).get_state(thread("t")).values
    assert len(before["text"]) == 8
    saver.prune(["t"])
    assert talking(on(store)).get_state(thread("t")).values == before
    require_sound(store)


def test_the_run_that_a_delta_channel_needs_is_not_deleted_in_silence(store: Store) -> None:
    saver = on(store)
    for run in ("a", "b"):
        config = {**thread("t"), "metadata": {"run_id": run}}
        talking(saver).invoke({"text": [f"question of {run}"], "plain": []}, config)
    with pytest.raises(RuntimeFault, match="delta channel") as caught:
        saver.delete_for_runs(["a"])
    assert caught.value.code == "thread_needs_run"
    assert len(talking(on(store)).get_state(thread("t")).values["text"]) == 4
    saver.delete_for_runs(["a", "b"])
    assert saver.get_tuple(thread("t")) is None
    assert caught.value.way_out.startswith("Delete the whole thread: saver.delete_thread(")
    talking(saver).invoke({"text": ["again"], "plain": []}, thread("t"))
    saver.delete_thread("t")
    assert saver.get_tuple(thread("t")) is None
    assert len(talking(saver).invoke({"text": ["anew"], "plain": []}, thread("t"))["text"]) == 2


def test_a_thread_is_not_copied_onto_another(store: Store) -> None:
    saver = on(store)
    conversation(saver, "a", 2)
    conversation(saver, "b", 2)
    with pytest.raises(RuntimeFault, match="already has checkpoints"):
        saver.copy_thread("a", "b")


def test_an_unknown_strategy_of_pruning_is_named(store: Store) -> None:
    with pytest.raises(ValueError, match="newest"):
        on(store).prune(["t"], strategy="newest")
