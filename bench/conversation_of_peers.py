"""The conversation that LangGraph savers are measured with; used by the peer programs, which have LangGraph."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    number: int
    text: Annotated[list[str], add]


def work(state: State) -> dict[str, Any]:
    return {"number": state["number"] + 1}


graph = StateGraph(State)
graph.add_node("work", work)
graph.add_edge(START, "work")
graph.add_edge("work", END)


def turns(saver: Any) -> Callable[[int], object]:
    """Return a function that makes one turn of one thread per call."""
    compiled = graph.compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "t"}}
    return lambda number: compiled.invoke({"number": number, "text": []}, thread)
