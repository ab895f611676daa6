"""All rows, in the order of the table. Their names never change, because commands and saved results refer to them."""

from __future__ import annotations

from bench import approvals, governance, many_events, postgres_rows, runtime_bench
from bench.rows import Row


def all_rows() -> list[Row]:
    return [*governance.rows(), *many_events.rows(), *approvals.rows(), *runtime_bench.rows(), *postgres_rows.rows()]
