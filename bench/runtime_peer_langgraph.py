"""One turn of a conversation through LangGraph's SqliteSaver, in turns with the floor. Run by runtime_bench.py."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import sys
import time
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

folder = Path(sys.argv[1])
TEXT = "x" * 1000


class State(TypedDict):
    number: int
    text: Annotated[list[str], add]


def work(state: State) -> dict[str, Any]:
    return {"number": state["number"] + 1}


graph = StateGraph(State)
graph.add_node("work", work)
graph.add_edge(START, "work")
graph.add_edge("work", END)
connection = sqlite3.connect(folder / "peer.db", check_same_thread=False)
saver = SqliteSaver(connection)
saver.setup()
# The saver's own default may lose the last turns with the power; the comparison is of durable steps.
connection.execute("PRAGMA synchronous = FULL")
compiled = graph.compile(checkpointer=saver)
floor, steps = [], []
descriptor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in range(150):
    began = time.perf_counter()
    os.write(descriptor, TEXT.encode())
    os.fdatasync(descriptor)
    floor.append(time.perf_counter() - began)
    began = time.perf_counter()
    compiled.invoke({"number": number, "text": []}, {"configurable": {"thread_id": "t"}})
    steps.append(time.perf_counter() - began)
print(
    json.dumps(
        {
            "median_us": round(statistics.median(steps) * 1e6, 1),
            "times_floor_median": round(statistics.median(steps) / statistics.median(floor), 2),
            "times_floor_mean": round(statistics.fmean(steps) / statistics.fmean(floor), 2),
        }
    )
)
