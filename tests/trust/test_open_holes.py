"""Holes that were known and open: cases of the lists, each with the code that refuses it, and controls that land."""

from __future__ import annotations

import pytest

from trust.measure import HERE
from trust.play import Table, read_cases

pytestmark = pytest.mark.share(5)

CASES = {
    case.id: case
    for name in ("open_holes", "own_attacks", "first_minutes", "fresh_attacks")
    for case in read_cases(HERE / f"{name}.jsonl")
}
REFUSED = {
    "O01-prev": "event_subject_false",
    "O05": "move_without_gate",
    "O09-anchor": "policy_unguarded",
    "A41": "change_uncovered",
    "A43": "move_without_gate",
    "A46": "move_without_gate",
    "A48": "change_uncovered",
    "A51": "changed_after_verdict",
    "O15-swapped": "threshold_unmet",
    "O15-other": "scope_moved",
    "O17-before": "move_without_gate",
    "S01": "attribute_hides",
    "S06": "change_uncovered",
    "S18": "change_uncovered",
    "T26": "move_without_gate",
    "T27": "move_illegal",
    "W01": "log_file_deleted",
    "W12": "contract_changed",
    "W25": "log_file_deleted",
    "W33": "change_uncovered",
    "W53": "move_without_gate",
}
KEPT = ("O01-together", "O06-claim", "O06-why", "O08", "O09-first", "O15-control", "O20-root", "S08", "W26", "W57")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(tmp_path_factory.mktemp("open_holes"))


@pytest.mark.share(4)
@pytest.mark.parametrize("name", REFUSED)
def test_a_change_is_refused_with_its_code(name: str, table: Table) -> None:
    outcome = table.play(CASES[name], "merge")
    assert outcome.fits(CASES[name])
    assert REFUSED[name] in outcome.codes


@pytest.mark.share(4)
@pytest.mark.parametrize("name", KEPT)
def test_a_case_ends_as_expected(name: str, table: Table) -> None:
    outcome = table.play(CASES[name], "merge")
    assert outcome.fits(CASES[name]), outcome
