"""Rows on a PostgreSQL server, which is started for the first of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from bench.peers import POSTGRES_DBOS, POSTGRES_LANGGRAPH, Peer, figures_of
from bench.rows import Row, Sampler
from bench.sides import ROOT, Figures, Side
from bench.timing import NotMeasured

if TYPE_CHECKING:
    from postgres.server import Server

FLOOR = "CREATE TABLE IF NOT EXISTS floor(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data text)"

# These store a lot, so each sample has its own schema, and commits are not synced.
_LARGE = ("growth", "latest")


def rows() -> Iterator[Row]:
    for name, repeats in (("step", 3), ("queue", 3), ("growth", 1), ("latest", 1)):
        yield Row(f"postgres-{name}", _ours(name), repeats=repeats)
    for workers in (1, 4):
        yield Row(f"postgres-workers-{workers}", _ours("workers", str(workers)), repeats=1)
    # LangGraph has no steps; a turn of a conversation is the smallest unit that its savers store.
    for row, environment, program in (
        ("postgres-langgraph-step", POSTGRES_LANGGRAPH, "postgres_peer_langgraph.py"),
        ("postgres-dbos-step", POSTGRES_DBOS, "postgres_peer_dbos.py"),
        ("postgres-langgraph-growth", POSTGRES_LANGGRAPH, "postgres_peer_growth.py"),
    ):
        yield Row(row, _peer(environment, program), kind="peer", repeats=1)


def _ours(name: str, *arguments: str) -> Callable[[Side], Sampler]:
    def prepare(side: Side) -> Sampler:
        server = server_of(side)
        numbers = count()

        def sample() -> Figures:
            url = server.url()
            if name in _LARGE:
                schema = f"{name}{next(numbers)}"
                url = server.url(workpacket_schema=schema, options="-csynchronous_commit%3Doff")
            return side.figures("bench.postgres_bench", name, url, *arguments)

        return sample

    return prepare


def _peer(environment: Peer, program: str) -> Callable[[Side], Sampler]:
    def prepare(side: Side) -> Sampler:
        server = server_of(side)
        return lambda: figures_of(environment, program, server.url())

    return prepare


def server_of(side: Side) -> Server:
    """Start the server that the tests use, with everything durable."""
    sys.path.append(str(ROOT / "tests"))
    from postgres.server import Server, programs

    def make(_path: Path) -> Server:
        if programs() is None:
            raise NotMeasured("there is no PostgreSQL here, and no wheel that brings it")
        server = Server({"fsync": "on", "autovacuum": "off"})
        side.when_done(server.remove)
        server.start()
        with psycopg.connect(server.url(), autocommit=True) as plain:
            plain.execute(FLOOR)
        return server

    return side.made("postgres", make)
