"""The lists of hollow proofs and of honest work are whole; a few cases are played. `tests/proof/evidence` plays all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evidence.play import ADVERSARY, HOLLOW, HONEST, Case, is_as_expected, judged, read_cases, shown
from workpacket.lifecycle.proofs import PROOF_CODES

# One of each way in which a proof is hollow, or work looks it.
PLAYED = {"mocked-subject", "root-conftest-fakes", "new-package", "unittest-import", "jest-new-module", "command-line"}
PLAYED |= {
    "call-without-assertion",
    "wrapper-swallows-assertions",
}
CASES = [case for path in (HOLLOW, HONEST, ADVERSARY) for case in read_cases(path)]


def test_the_lists_have_at_least_forty_cases_each_and_no_name_twice() -> None:
    for path, answer in ((HOLLOW, "refused"), (HONEST, "accepted")):
        cases = read_cases(path)
        assert len(cases) >= 40
        assert {case.expect for case in cases} == {answer}
        assert all(case.codes for case in cases) == (answer == "refused")
    assert len({case.id for case in CASES}) == len(CASES)
    said = {code for case in CASES for code in case.codes}
    assert PROOF_CODES - said == {"exemption_unsigned", "proof_other_command"}
    assert "proof_program_changed" in said


@pytest.mark.share(8)
@pytest.mark.skipif(sys.platform == "win32", reason="the proofs are written for a POSIX system")
@pytest.mark.parametrize("case", [case for case in CASES if case.id in PLAYED], ids=lambda case: case.id)
def test_a_proof_is_judged_as_the_list_says(case: Case, tmp_path: Path) -> None:
    faults = judged(case, tmp_path)
    assert is_as_expected(case, faults), shown(case, faults)
