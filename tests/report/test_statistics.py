"""How often each code was found."""

from __future__ import annotations

from hypothesis import given

from report.samples import PACKET, REASONS, finding, fix, outcome, outcomes
from workpacket.report.outcome import CheckOutcome
from workpacket.report.terminal import hidden
from workpacket.report.text import CodeCount, code_counts, render_statistics

FOUND = (
    *(finding("stale_cell", "warning", line=line) for line in range(10)),
    finding(fix=fix()),
    finding(fix=fix(safe=False), path=PACKET),
    finding("unheard_of", "info"),
)


def test_codes_are_counted_the_gravest_and_most_frequent_first() -> None:
    assert code_counts(FOUND) == [
        CodeCount("empty_field", "error", count=2, files=2, fixable=1),
        CodeCount("stale_cell", "warning", count=10, files=1, fixable=0),
        CodeCount("unheard_of", "info", count=1, files=1, fixable=0),
    ]


def test_the_table_ends_with_the_summary() -> None:
    assert render_statistics(outcome(*FOUND), REASONS) == (
        " 2  error    empty_field  [*]  A required field is empty\n"
        "10  warning  stale_cell        A cell of the registry is stale\n"
        " 1  info     unheard_of\n"
        "\n"
        "2 errors, 10 warnings, 1 info in 1 of 1 file; 1 can be fixed with --fix [*]; "
        "1 more can be fixed with --unsafe-fixes; a person should review the result\n"
    )


def test_a_clean_run_has_no_table() -> None:
    assert render_statistics(outcome(), REASONS) == "1 file checked, no findings (stub 1)\n"


@given(outcomes())
def test_every_finding_is_counted_once(result: CheckOutcome) -> None:
    assert sum(entry.count for entry in code_counts(result.findings)) == len(result.findings)
    assert all(hidden().search(line) is None for line in render_statistics(result, REASONS).split("\n"))
