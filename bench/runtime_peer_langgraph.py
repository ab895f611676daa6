"""One turn of a conversation through LangGraph's SqliteSaver, in turns with the floor. Run by runtime_bench.py."""

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
# The saver's own default may lose the last turns with the power; the comparison is of durable steps.
connection.execute("PRAGMA synchronous = FULL")
tell(beside_the_floor(durable_append(folder / "floor"), turns(saver)))
