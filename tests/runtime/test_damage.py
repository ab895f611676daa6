"""A damaged file is noticed or does not matter; nothing false is ever believed. The proof does it for every bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.damage import Truth, damages, judged, quick_folder, small_store, truncations


@pytest.fixture(scope="module")
def closed() -> Iterator[tuple[Path, Truth]]:
    with quick_folder() as folder:
        place = folder / "made"
        place.mkdir()
        yield folder / "judged", small_store(place, in_wal=False)


@pytest.fixture(scope="module")
def in_wal() -> Iterator[tuple[Path, Truth]]:
    with quick_folder() as folder:
        place = folder / "made"
        place.mkdir()
        yield folder / "judged", small_store(place, in_wal=True)


def test_an_undamaged_file_is_harmless(closed: tuple[Path, Truth], in_wal: tuple[Path, Truth]) -> None:
    for folder, truth in (closed, in_wal):
        assert judged(folder, truth, "", b"") == "harmless"
    assert any(name.endswith("-wal") for name in in_wal[1].files)


def test_no_flipped_bit_of_the_database_is_believed(closed: tuple[Path, Truth]) -> None:
    folder, truth = closed
    results = Counter(judged(folder, truth, "runs.db", d) for d in damages(truth.files["runs.db"], 37, (0, 6)))
    assert results["detected"] > 50


def test_no_flipped_bit_of_the_write_ahead_log_is_believed(in_wal: tuple[Path, Truth]) -> None:
    folder, truth = in_wal
    results = Counter(judged(folder, truth, "runs.db-wal", d) for d in damages(truth.files["runs.db-wal"], 101, (3,)))
    assert results["detected"] > 50


def test_a_truncated_database_is_noticed(closed: tuple[Path, Truth]) -> None:
    folder, truth = closed
    content = truth.files["runs.db"]
    results = Counter(judged(folder, truth, "runs.db", cut) for cut in truncations(content, 97))
    assert results["harmless"] == 0


def test_a_truncated_write_ahead_log_is_noticed(in_wal: tuple[Path, Truth]) -> None:
    folder, truth = in_wal
    results = Counter(judged(folder, truth, "runs.db-wal", cut) for cut in truncations(truth.files["runs.db-wal"], 199))
    assert results["harmless"] == 0


@pytest.mark.parametrize("bits", [(0, 7), pytest.param(tuple(range(8)), marks=pytest.mark.long)])
def test_a_damaged_side_file_changes_nothing(closed: tuple[Path, Truth], bits: tuple[int, ...]) -> None:
    folder, truth = closed
    for damaged in damages(truth.files["runs.db.lock"], 1, bits):
        assert judged(folder, truth, "runs.db.lock", damaged) == "harmless"
