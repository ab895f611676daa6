"""Measures the size of the tables after a conversation with our saver, and with LangGraph's PostgresSaver."""

from __future__ import annotations

import json
import random
import sys
import time
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph

from workpacket.runtime.langgraph import WorkpacketSaver

url = sys.argv[1]
turns = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = relnamespace "
    "WHERE relkind = 'r' AND nspname NOT IN ('pg_catalog', 'information_schema')"
)


class State(TypedDict):
    number: int
    text: Annotated[list[str], add]


def talk(saver: Any) -> dict[str, float]:
    builder = StateGraph(State)
    builder.add_node("work", lambda state: {"number": state["number"] + 1})
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    compiled, noise = builder.compile(checkpointer=saver), random.Random(7)
    before, began = size(), time.process_time()
    for number in range(turns):
        said = "".join(chr(noise.randrange(33, 127)) for _ in range(1000))
        compiled.invoke({"number": number, "text": [said]}, {"configurable": {"thread_id": "growth"}})
    seconds = time.process_time() - began
    return {
        "times": round((size() - before) / (turns * 1000), 2),
        "cpu_ms": round(seconds / turns * 1000, 2),
    }


def size() -> int:
    with psycopg.connect(url.partition("?workpacket")[0], autocommit=True) as plain:
        return int(plain.execute(SIZE).fetchone()[0])


with WorkpacketSaver.open(url) as ours:
    ours_took = talk(ours)
with PostgresSaver.from_conn_string(url) as theirs:
    theirs.setup()
    took = talk(theirs)
print(json.dumps({**took, **{f"ours_{name}": figure for name, figure in ours_took.items()}}))
