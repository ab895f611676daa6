"""What the numbers of an outcome are, and which exit status it means."""

from __future__ import annotations

import pytest

from report.samples import PACKET, REASONS, STUB, finding, fix, outcome
from workpacket.model import exits
from workpacket.problem import Problem, Severity
from workpacket.report.outcome import by_file, by_gravity, exit_status

WARNING = finding("stale_cell", "warning")
ERROR = finding()


@pytest.mark.parametrize(
    ("findings", "fail_on", "status"),
    [
        ((), "error", exits.OK),
        ((WARNING,), "error", exits.OK),
        ((WARNING,), "warning", exits.FINDINGS),
        ((ERROR,), "error", exits.FINDINGS),
        ((finding(severity="info"),), "warning", exits.OK),
        ((finding(severity="info"),), "info", exits.FINDINGS),
        ((ERROR, finding("file_unreadable")), "error", exits.ENVIRONMENT),
        ((ERROR, finding("file_unreadable"), finding("event_altered")), "error", exits.INTEGRITY),
        ((finding("unheard_of"),), "error", exits.FINDINGS),
    ],
)
def test_the_exit_status_is_that_of_the_gravest_failing_finding(
    findings: tuple[Problem, ...], fail_on: Severity, status: int
) -> None:
    assert exit_status(outcome(*findings, fail_on=fail_on), REASONS) == status


def test_a_check_that_looked_at_nothing_is_no_success() -> None:
    assert exit_status(outcome(files={}), REASONS) == exits.ENVIRONMENT


def test_findings_are_grouped_by_file_in_the_order_of_the_text() -> None:
    late, early, other = finding(line=9), finding(line=2), finding(path=PACKET)
    assert by_file((late, early, other)) == {PACKET: [other], STUB: [early, late]}


def test_the_gravest_finding_comes_first() -> None:
    info = finding(severity="info", line=1)
    assert by_gravity((info, WARNING, ERROR)) == [ERROR, WARNING, info]


def test_the_numbers_of_an_outcome() -> None:
    repository = finding(path="")
    safe, unsafe = finding(fix=fix()), finding(fix=fix(safe=False))
    result = outcome(repository, safe, unsafe, WARNING, files={STUB: "stub", PACKET: "packet", "x.md": "packet"})
    assert result.files_by_kind == {"packet": 2, "stub": 1}
    assert (result.total("error"), result.total("warning"), result.total("info")) == (3, 1, 0)
    assert (result.fixable(safe=True), result.fixable(safe=False)) == (1, 1)
    assert result.files_with_findings() == 1, "the repository as a whole is no file"
