"""Turns of a conversation are cancelled at any moment; the next turn is never refused and forgets nothing."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from langgraph.graph import END, START, StateGraph

from langgraph_saver.worlds import State, on, thread
from proof.share import bounded
from workpacket.runtime.stores.contract import Store, stream_problems

TURNS = 1000
BOUNDED_TURNS = 40
LONG = 20  # turns of one thread


def conversation(store: Store) -> Any:
    """Two nodes, so that there is something to cancel between them too."""

    async def think(state: State) -> dict[str, Any]:
        await asyncio.sleep(0.002)
        return {"number": state["number"] + 1}

    async def answer(state: State) -> dict[str, Any]:
        await asyncio.sleep(0.002)
        return {"text": [f"answer to {state['text'][-1]}"]}

    builder = StateGraph(State)
    builder.add_node("think", think)
    builder.add_node("answer", answer)
    builder.add_edge(START, "think")
    builder.add_edge("think", "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=on(store))


async def cancelled(graph: Any, name: str, asked: str, seconds: float, *, patient: bool) -> None:
    """Cancel a turn after a while: once, so that it may store what it has, or until it is gone."""
    durability = "sync" if patient else "async"
    turn = asyncio.create_task(graph.ainvoke({"text": [asked]}, thread(name), durability=durability))
    await asyncio.sleep(seconds)
    turn.cancel()
    while not turn.done():
        await asyncio.sleep(0)
        if not patient:
            turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)


async def talk(store: Store, turns: int) -> None:
    graph, chance = conversation(store), random.Random(20261119)
    began = time.monotonic()
    await graph.ainvoke({"number": 0, "text": ["begin"]}, thread("undisturbed"))
    longest = 1.2 * (time.monotonic() - began)
    for number in range(turns):
        name = f"thread-{number // LONG}"
        if number % LONG == 0:
            await graph.ainvoke({"number": 0, "text": ["begin"]}, thread(name))
        before = (await graph.aget_state(thread(name))).values["text"]
        await cancelled(graph, name, f"cut {number}", chance.uniform(0, longest), patient=chance.random() < 0.5)
        said = await graph.ainvoke({"text": [f"turn {number}"]}, thread(name))
        assert said["text"][: len(before)] == before, "the next turn forgot what was said before"
        assert said["text"][-2:] == [f"turn {number}", f"answer to turn {number}"]


def test_no_turn_after_a_cancelled_one_is_refused(each_store: Store) -> None:
    turns = BOUNDED_TURNS if bounded() else TURNS
    asyncio.run(talk(each_store, turns))
    streams = [head.stream for head in each_store.heads("langgraph/")]
    assert len(streams) == 1 + turns // LONG
    assert [problem for stream in streams for problem in stream_problems(each_store, stream)] == []
