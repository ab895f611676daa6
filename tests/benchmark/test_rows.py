"""Rows have names that stay the same, and are chosen by them."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from bench import quick
from bench.catalogue import all_rows
from bench.governance import PYTHON
from bench.rows import Measured, UnknownRow, selected, with_floors

from benchmark.programs import LAST, WORK
from benchmark.programs import PYTHON as FLOOR

ROWS = [FLOOR, WORK, LAST]


def names(*patterns: str) -> list[str]:
    return [row.name for row in selected(all_rows(), patterns)]


def test_every_row_has_a_name_of_its_own_that_can_be_typed_without_quotes() -> None:
    found = [row.name for row in all_rows()]

    assert len(set(found)) == len(found)
    assert [name for name in found if not name.replace("-", "").isalnum() or name != name.lower()] == []


def test_the_rows_that_others_refer_to_are_there() -> None:
    assert names("step", "effect", "one edited file") == ["one-edited-file", "step", "effect"]
    assert set(quick.ROWS) <= set(names())


def test_a_glob_chooses_several_rows_in_the_order_of_the_table() -> None:
    assert names("audit-*", "python") == [
        "python", "audit-1000", "audit-10000", "audit-10000-memory", "audit-10000x20", "audit-10000x20-memory"
    ]  # fmt: skip


def test_a_name_that_no_row_has_is_an_error_even_beside_one_that_is_there() -> None:
    with pytest.raises(UnknownRow, match="no row is called 'stp'; --list shows the names"):
        names("step", "stp")


def test_every_floor_is_a_row_that_comes_before_its_multiples() -> None:
    order = [row.name for row in all_rows()]
    for row in all_rows():
        assert not row.floor or order.index(row.floor) < order.index(row.name), row.name


# Curves that a person looks at, rows of a server that compare themselves with inserts (docs/scale.md), and those that
# help to choose an engine (docs/runtime/engines.md).
WITHOUT_TARGET = {
    "engine-postgres", "engine-sqlite", "engine-temporal", "eight-writers", "latest-checkpoint", "open-100000-steps",
    "resume", "store-growth",
}  # fmt: skip
# Rows that measure their own floor in turns, or count tokens or the server's time.
WITHOUT_FLOOR = ("step", "effect", "temporal-effect", "list-*-runs", "replay-*", "mcp-call", "trial-*")


def test_every_row_of_ours_has_a_target_and_a_floor() -> None:
    ours = [row for row in all_rows() if row.kind == "ours" and not row.name.startswith("postgres-")]

    assert {row.name for row in ours if not row.target} == WITHOUT_TARGET
    alone = {row.name for row in ours if not row.floor} - WITHOUT_TARGET
    assert {name for name in alone if not any(fnmatchcase(name, each) for each in WITHOUT_FLOOR)} == set()


def test_a_row_is_measured_together_with_its_floor() -> None:
    assert with_floors([WORK], ROWS) == [FLOOR, WORK]


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        ("20", "met"),
        ("19", "missed"),
        ("10 CPU", "met"),
        ("9 CPU", "missed"),
        ("4x", "met"),
        ("3x", "missed"),
        ("5 CPU more", "met"),
        ("4 CPU more", "missed"),
        ("30 MB", "met"),
        ("29 MB", "missed"),
        ("", ""),
    ],
)
def test_a_target_is_met_by_time_memory_or_in_relation_to_the_floor(target: str, verdict: str) -> None:
    floor = Measured(FLOOR, [{"wall_ms": 5.0, "cpu_ms": 5.0}])
    row = type(WORK)("work", WORK.prepare, target, PYTHON)

    assert Measured(row, [{"wall_ms": 20.0, "cpu_ms": 10.0, "peak_mb": 30.0}], floor=floor).verdict == verdict


def test_a_row_that_takes_turns_with_its_floor_is_judged_by_that() -> None:
    row = type(WORK)("step", WORK.prepare, "1.5x")

    assert [Measured(row, [{"times_floor": times}]).verdict for times in (1.5, 1.6)] == ["met", "missed"]
