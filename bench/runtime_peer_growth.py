"""Measures disk and CPU of 1,000 turns with our saver, and with LangGraph's SqliteSaver. Run by runtime_bench.py.

The text is new in every turn, and compression does not make it smaller. `times` is the size of the closed store as a
multiple of the messages. Both savers store the same graph with LangGraph's defaults.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import time
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from workpacket.runtime.langgraph import WorkpacketSaver

folder = Path(sys.argv[1])
turns = int(sys.argv[2]) if len(sys.argv) > 2 else 1000


class State(TypedDict):
    number: int
    text: Annotated[list[str], add]


def talk(saver: Any) -> float:
    builder = StateGraph(State)
    builder.add_node("work", lambda state: {"number": state["number"] + 1})
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    compiled, noise = builder.compile(checkpointer=saver), random.Random(7)
    began = time.process_time()
    for number in range(turns):
        said = "".join(chr(noise.randrange(33, 127)) for _ in range(1000))
        compiled.invoke({"number": number, "text": [said]}, {"configurable": {"thread_id": "t"}})
    return time.process_time() - began


def figures(place: Path, seconds: float) -> dict[str, float]:
    size = sum(file.stat().st_size for file in place.iterdir())
    return {"times": round(size / (turns * 1000), 2), "cpu_ms": round(seconds / turns * 1000, 2)}


for name in ("ours", "theirs"):
    (folder / name).mkdir()
with WorkpacketSaver.open(folder / "ours" / "runs.db") as ours:
    spent = talk(ours)
ours_took = figures(folder / "ours", spent)
connection = sqlite3.connect(folder / "theirs" / "peer.db", check_same_thread=False)
theirs = SqliteSaver(connection)
theirs.setup()
spent = talk(theirs)
connection.close()
took = figures(folder / "theirs", spent)
print(json.dumps({**took, **{f"ours_{name}": figure for name, figure in ours_took.items()}}))
