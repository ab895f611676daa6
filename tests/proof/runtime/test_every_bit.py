"""Every bit flipped and every truncation, of the database and of its write-ahead log: nothing false is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from proof.share import stride
from runtime.damage import Truth, damages, judged, quick_folder, small_store, truncations

SHARES = 8  # so that several workers can take part


@pytest.fixture(scope="module", params=[False, True], ids=["database", "log"])
def case(request: pytest.FixtureRequest) -> Iterator[tuple[Path, Truth, str]]:
    with quick_folder() as folder:
        place = folder / "made"
        place.mkdir()
        truth = small_store(place, in_wal=request.param)
        yield folder / "judged", truth, "runs.db-wal" if request.param else "runs.db"


@pytest.mark.parametrize("share", range(SHARES))
def test_no_flipped_bit_is_believed(case: tuple[Path, Truth, str], share: int) -> None:
    folder, truth, name = case
    everything = damages(truth.files[name], 1, tuple(range(8)))
    mine = islice(everything, share, None, SHARES * stride(101))
    results = Counter(judged(folder, truth, name, damaged) for damaged in mine)
    assert results["detected"] > 0


def test_no_truncation_is_believed(case: tuple[Path, Truth, str]) -> None:
    folder, truth, name = case
    cuts = islice(truncations(truth.files[name], 1), 0, None, stride(101))
    results = Counter(judged(folder, truth, name, cut) for cut in cuts)
    assert results["harmless"] == 0
