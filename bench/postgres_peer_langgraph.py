"""One turn of a conversation through LangGraph's PostgresSaver, in turns with the floor. Run by postgres_bench.py."""

from __future__ import annotations

import json
import statistics
import sys
import time
from operator import add
from typing import Annotated, Any, TypedDict

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph

TEXT = "x" * 1000
INSERT = "INSERT INTO floor(data) VALUES (%s)"


class State(TypedDict):
    number: int
    text: Annotated[list[str], add]


def work(state: State) -> dict[str, Any]:
    return {"number": state["number"] + 1}


graph = StateGraph(State)
graph.add_node("work", work)
graph.add_edge(START, "work")
graph.add_edge("work", END)
floor, steps = [], []
with PostgresSaver.from_conn_string(sys.argv[1]) as saver, psycopg.connect(sys.argv[1], autocommit=True) as plain:
    saver.setup()
    compiled = graph.compile(checkpointer=saver)
    for number in range(150):
        began = time.perf_counter()
        plain.execute(INSERT, (TEXT,))
        plain.execute(INSERT, (TEXT,))
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
