"""Every hollow proof of the list is refused, with the code that the list says, and every honest work is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from evidence.play import ADVERSARY, HOLLOW, HONEST, Case, is_as_expected, judged, read_cases, shown
from proof.share import share


@pytest.mark.parametrize("case", share(read_cases(HOLLOW)), ids=lambda case: case.id)
def test_a_hollow_proof_is_refused(case: Case, tmp_path: Path) -> None:
    faults = judged(case, tmp_path)
    assert is_as_expected(case, faults), shown(case, faults)


@pytest.mark.parametrize("case", share(read_cases(HONEST)), ids=lambda case: case.id)
def test_honest_work_is_accepted(case: Case, tmp_path: Path) -> None:
    faults = judged(case, tmp_path)
    assert is_as_expected(case, faults), shown(case, faults)


@pytest.mark.parametrize("case", share(read_cases(ADVERSARY)), ids=lambda case: case.id)
def test_what_looks_for_gaps_is_judged_as_the_list_says(case: Case, tmp_path: Path) -> None:
    faults = judged(case, tmp_path)
    assert is_as_expected(case, faults), shown(case, faults)
