"""All rows, in the order of the table. Their names never change, because commands and saved results refer to them."""

from __future__ import annotations

from bench import approvals, governance, many_events, postgres_rows, runtime_bench
from bench.rows import Row, within_a_process
from bench.trial import WAYS


def all_rows() -> list[Row]:
    trials = [Row(f"trial-{way}", within_a_process("bench.trial", way), "6000 tokens", repeats=1) for way in WAYS]
    ours = [*governance.rows(), *many_events.rows(), *approvals.rows(), *trials]
    return [*ours, *runtime_bench.rows(), *postgres_rows.rows()]
