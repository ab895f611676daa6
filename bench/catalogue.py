"""All rows, in the order of the table. Their names never change, because commands and saved results refer to them."""

from __future__ import annotations

from bench import approvals, governance, many_events, postgres_rows, runtime_bench, temporal_bench
from bench.rows import Row, within_a_process
from bench.trial import WAYS
from bench.trial_peers import PLAYS


def all_rows() -> list[Row]:
    trials = [
        Row(f"trial-{way}", within_a_process("bench.trial", way), "6000 tokens", repeats=1, must=True) for way in WAYS
    ]
    trials += [
        Row(f"trial-{peer}-{way}", within_a_process("bench.trial_peers", peer, way), kind="peer", repeats=1)
        for peer, play in PLAYS.items()
        for way in (WAYS if play.tools else ("shell",))
    ]
    call = Row("mcp-call", within_a_process("bench.mcp_call"), "30 CPU", repeats=3, must=True)
    ours = [*governance.rows(), *many_events.rows(), *approvals.rows(), call, *trials]
    return [*ours, *runtime_bench.rows(), *postgres_rows.rows(), *temporal_bench.rows()]
