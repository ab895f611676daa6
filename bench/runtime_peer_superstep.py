"""Measures a super-step with durability "sync", with our saver and with LangGraph's SqliteSaver by turns. Run by
runtime_bench.py. `ratio` is the median of the ratios of neighboring turns.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import time
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from figures_of_peers import tell
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from workpacket.runtime.langgraph import WorkpacketSaver

folder = Path(sys.argv[1])
STEPS = 10  # of a turn
TURNS = 60
THREAD = 10  # turns of one thread


class State(TypedDict):
    number: int
    text: Annotated[list[str], add]


def compiled(saver: Any) -> Any:
    builder, last = StateGraph(State), START
    for number in range(STEPS):
        builder.add_node(f"step-{number}", lambda state: {"number": state["number"] + 1, "text": ["x" * 200]})
        builder.add_edge(last, f"step-{number}")
        last = f"step-{number}"
    builder.add_edge(last, END)
    return builder.compile(checkpointer=saver)


def turn(graph: Any, number: int) -> tuple[float, float]:
    """Return the wall and CPU time of a super-step."""
    cpu, wall = time.process_time(), time.perf_counter()
    thread = {"configurable": {"thread_id": f"thread-{number // THREAD}"}}
    graph.invoke({"number": 0, "text": ["begin"]}, thread, durability="sync")
    return (time.perf_counter() - wall) / (STEPS + 1), (time.process_time() - cpu) / (STEPS + 1)


connection = sqlite3.connect(folder / "peer.db", check_same_thread=False)
theirs = SqliteSaver(connection)
theirs.setup()
# With the saver's default, a power loss may lose the last turns; this compares durable steps.
connection.execute("PRAGMA synchronous = FULL")
with WorkpacketSaver.open(folder / "runs.db") as ours:
    graphs = compiled(theirs), compiled(ours)
    pairs = [(turn(graphs[0], number), turn(graphs[1], number)) for number in range(TURNS)][THREAD:]
tell(
    {
        "wall_ms": statistics.median(one[0] for _, one in pairs) * 1e3,
        "cpu_ms": statistics.median(one[1] for _, one in pairs) * 1e3,
        "theirs_wall_ms": statistics.median(one[0] for one, _ in pairs) * 1e3,
        "theirs_cpu_ms": statistics.median(one[1] for one, _ in pairs) * 1e3,
        "ratio": statistics.median(ours[0] / theirs[0] for theirs, ours in pairs),
        "cpu_ratio": statistics.median(ours[1] / theirs[1] for theirs, ours in pairs),
    }
)
