"""Threads in the tables of LangGraph's own savers: conversations with everything a thread can hold, and a comparison of
what two savers say about them.

`fill` writes the tables of `SqliteSaver` as its version 3.1 does, for the fast tests. In `nox -s langgraph`, the savers
write their own tables.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

TABLES = """
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
    idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
"""
THREADS = ("asked", "bill/7", "ü", "forked")


@dataclass
class Price:
    """A class of the author's: it is copied, whether or not it can be imported."""

    amount: int
    notes: tuple[Any, ...]


class State(TypedDict, total=False):
    number: int
    said: Annotated[list[Any], add]
    price: Any


def graph(saver: BaseCheckpointSaver[Any]) -> Any:
    """Parallel tasks of one node, a subgraph, and a person who is asked in it."""
    inner = StateGraph(State)
    inner.add_node("begin", lambda _: {"said": ["inside"]})
    inner.add_node("ask", lambda _: {"said": [interrupt("sure?")]})
    inner.add_edge(START, "begin")
    inner.add_edge("begin", "ask")
    inner.add_edge("ask", END)
    outer = StateGraph(State)
    price = Price(100, (2.5, b"\x00", None))
    outer.add_node("price", lambda s: {"number": s.get("number", 0) + 1, "said": [AIMessage("100")], "price": price})
    outer.add_node("item", lambda s: {"said": [f"item {s['number']}"]})
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "price")
    outer.add_conditional_edges("price", lambda _: [Send("item", {"number": each}) for each in range(3)], ["item"])
    outer.add_edge("item", "inner")
    outer.add_edge("inner", END)
    return outer.compile(checkpointer=saver)


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "user": "ann"}}


def converse(saver: BaseCheckpointSaver[Any], threads: Sequence[str] = THREADS) -> None:
    """One thread that waits for a person, two that were answered, and one that went back and branched."""
    talk = graph(saver)
    for thread in threads:
        talk.invoke({"said": [HumanMessage("how much?")]}, config(thread))
        if thread == "asked":
            continue
        talk.invoke(Command(resume="yes"), config(thread))
        talk.invoke({"said": ["and now?"]}, config(thread))
        if thread == "forked":
            older = [*talk.get_state_history(config(thread))][3].config
            talk.invoke(None, older)
            talk.update_state(older, {"number": 77})


def contents(saver: BaseCheckpointSaver[Any], thread: str) -> dict[tuple[str, str], Any]:
    """Everything that a saver says about a thread, by namespace and checkpoint."""
    found = {}
    for one in saver.list({"configurable": {"thread_id": thread}}):
        place = one.config["configurable"]
        parent = one.parent_config and one.parent_config["configurable"]
        said = one.checkpoint, one.metadata, parent and dict(parent), sorted(one.pending_writes or (), key=repr)
        found[place["checkpoint_ns"], str(place["checkpoint_id"])] = said
    return found


def answers(saver: BaseCheckpointSaver[Any], thread: str) -> tuple[Any, ...]:
    """The state of a thread, and what its graph answers next."""
    talk = graph(saver)
    state = talk.get_state(config(thread), subgraphs=True)
    answered = talk.invoke(Command(resume="go"), config(thread))
    return state.values, state.next, [one.value for one in state.interrupts], answered


def fill(path: Path, saver: BaseCheckpointSaver[Any], more: Mapping[str, Any] | None = None) -> None:
    """Write what a saver holds into the tables of SqliteSaver; `more` replaces columns of every checkpoint."""
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(TABLES)
        for one in saver.list(None):
            place = one.config["configurable"]
            key = (place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"])
            parent = one.parent_config and one.parent_config["configurable"]["checkpoint_id"]
            kind, content = saver.serde.dumps_typed(one.checkpoint)
            row = {"type": kind, "checkpoint": content, "metadata": json.dumps(one.metadata).encode(), **(more or {})}
            db.execute("INSERT INTO checkpoints VALUES(?, ?, ?, ?, ?, ?, ?)", (*key, parent, *row.values()))
            numbers: dict[str, int] = {}
            for task, channel, value in one.pending_writes or ():
                number = numbers[task] = numbers.get(task, -1) + 1
                index = WRITES_IDX_MAP.get(channel, number)
                typed = saver.serde.dumps_typed(value)
                db.execute("INSERT INTO writes VALUES(?, ?, ?, ?, ?, ?, ?, ?)", (*key, task, index, channel, *typed))
