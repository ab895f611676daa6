"""Measures a turn with LangGraph's SqliteSaver, alternating with the floor. Run by runtime_bench.py."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

from conversation_of_peers import turns
from figures_of_peers import beside_the_floor, durable_append, tell
from langgraph.checkpoint.sqlite import SqliteSaver

folder = Path(sys.argv[1])
connection = sqlite3.connect(folder / "peer.db", check_same_thread=False)
saver = SqliteSaver(connection)
saver.setup()
# With the saver's default, a power loss may lose the last turns; this compares durable steps.
connection.execute("PRAGMA synchronous = FULL")
tell(beside_the_floor(durable_append(folder / "floor"), turns(saver)))
