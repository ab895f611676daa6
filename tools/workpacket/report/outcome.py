"""The result of a check: the value that every output format renders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from workpacket.model import exits
from workpacket.model.reasons import SEVERITIES, Reason
from workpacket.problem import Problem, Severity
from workpacket.value import NamedTuple

SourceLine = Callable[[str, int], "str | None"]


def no_source(_path: str, _line: int) -> str | None:
    """Return '' as the line, for outcomes whose text is not available."""
    return None


class Repaired(NamedTuple):
    """What `--fix` fixed: the files, and the number of fixes per code."""

    files: tuple[str, ...]
    codes: Mapping[str, int]


class CheckOutcome(NamedTuple):
    """The result of a check. `files` maps each checked path to its kind, including unreadable ones; `source_line`
    returns a line without its line ending.

    `notes` are sentences about the run itself, such as which files were not checked, and why. Findings of severity
    `fail_on` and higher make the check fail.
    """

    findings: tuple[Problem, ...]
    files: Mapping[str, str]
    notes: tuple[str, ...] = ()
    source_line: SourceLine = no_source
    fail_on: Severity = "error"
    repaired: Repaired | None = None

    @property
    def files_by_kind(self) -> dict[str, int]:
        return dict(sorted(Counter(self.files.values()).items()))

    def fails(self, finding: Problem) -> bool:
        """Whether this finding alone makes the check fail."""
        return SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.fail_on)

    def total(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def fixable(self, *, safe: bool) -> int:
        return sum(finding.fix is not None and finding.fix.safe is safe for finding in self.findings)

    def files_with_findings(self) -> int:
        return len({finding.path for finding in self.findings} & self.files.keys())


def by_file(findings: tuple[Problem, ...]) -> dict[str, list[Problem]]:
    """Return the findings of each path in text order; paths are sorted."""
    groups: dict[str, list[Problem]] = {}
    for finding in sorted(findings, key=lambda finding: finding.order):
        groups.setdefault(finding.path, []).append(finding)
    return groups


def by_gravity(findings: tuple[Problem, ...]) -> list[Problem]:
    """Return the findings, most severe first, so that a platform that truncates a list drops the least
    important ones.
    """
    return sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), finding.order))


# Most serious first. 'Tampered' outranks 'could not check', which outranks 'checked and found faults'.
_PRECEDENCE = (exits.INTEGRITY, exits.ENVIRONMENT)


def exit_status(outcome: CheckOutcome, reasons: Mapping[str, Reason]) -> int:
    """Return the exit status of the check. Checking nothing is not a success."""
    if not outcome.files:
        return exits.ENVIRONMENT
    failing = [finding for finding in outcome.findings if outcome.fails(finding)]
    if not failing:
        return exits.OK
    statuses = {reasons[finding.code].exit_code for finding in failing if finding.code in reasons}
    return next((status for status in _PRECEDENCE if status in statuses), exits.FINDINGS)
