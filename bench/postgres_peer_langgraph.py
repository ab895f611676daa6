"""Measures a turn with LangGraph's PostgresSaver, alternating with the floor. Run by postgres_bench.py."""

from __future__ import annotations

import sys

import psycopg
from conversation_of_peers import turns
from figures_of_peers import TEXT, beside_the_floor, tell
from langgraph.checkpoint.postgres import PostgresSaver

INSERT = "INSERT INTO floor(data) VALUES (%s)"

with PostgresSaver.from_conn_string(sys.argv[1]) as saver, psycopg.connect(sys.argv[1], autocommit=True) as plain:
    saver.setup()
    tell(beside_the_floor(lambda: [plain.execute(INSERT, (TEXT,)) for _ in range(2)], turns(saver)))
