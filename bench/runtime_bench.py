"""Measures the runtime, the floor of this machine, and the peers.

The floor of a durable step is one append and one fdatasync of as many bytes. Each process alternates a step, or a peer,
with the floor, so that a slow moment of the disk affects both, and prints the multiple of the floor.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial

from bench.peers import DBOS, LANGGRAPH, figures_of
from bench.rows import Row, Sampler, within_a_process
from bench.sides import Figures, Side


def rows() -> Iterator[Row]:
    for name, arguments, target, repeats in (
        ("step", ("step",), "1.5x", 5),
        ("effect", ("effect",), "2.3x", 5),
        ("latest-checkpoint", ("latest-checkpoint", "1000000"), "", 1),
        ("resume", ("resume",), "", 5),
        ("store-growth", ("store-growth",), "", 1),
        ("eight-writers", ("eight-writers",), "", 1),
        ("list-5000-runs", ("list-runs", "5000"), "20", 1),
        ("list-10000-runs", ("list-runs", "10000"), "50", 1),
        ("open-100000-steps", ("long-run", "100000", "open"), "", 1),
        ("replay-100000-steps", ("long-run", "100000", "replay"), "1500", 1),
    ):
        yield Row(name, within_a_process("bench.in_process", *arguments), target, repeats=repeats)
    # LangGraph has no steps; a turn of a conversation is the smallest unit that its savers store.
    yield Row("langgraph-step", partial(_peer, "langgraph"), kind="peer", repeats=1)
    yield Row("dbos-step", partial(_peer, "dbos"), kind="peer", repeats=1)
    yield Row("langgraph-growth", partial(_peer, "growth"), kind="peer", repeats=1)
    yield Row("langgraph-super-step", partial(_peer, "superstep"), kind="peer", repeats=1)


def _peer(name: str, _side: Side) -> Sampler:
    environment = DBOS if name == "dbos" else LANGGRAPH

    def sample() -> Figures:
        with tempfile.TemporaryDirectory() as folder:
            return figures_of(environment, f"runtime_peer_{name}.py", folder)

    return sample
