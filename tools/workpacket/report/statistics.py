"""How often each code was found, for a repository that has too many findings to read."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.model.findings import Finding
from workpacket.model.reasons import SEVERITIES, Reason, Severity
from workpacket.report.door import escape
from workpacket.report.outcome import CheckOutcome
from workpacket.report.style import PLAIN, Style
from workpacket.report.text import SAFE_FIX_MARK, summary
from workpacket.value import Value


class CodeCount(Value):
    """`severity` is the gravest under which the code was found; `fixable` counts safe fixes."""

    code: str
    severity: Severity
    count: int
    files: int
    fixable: int


def code_counts(findings: tuple[Finding, ...]) -> list[CodeCount]:
    """One entry a code, the gravest and then the most frequent first."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.code, []).append(finding)
    counts = [_code_count(code, group) for code, group in groups.items()]
    return sorted(counts, key=lambda entry: (SEVERITIES.index(entry.severity), -entry.count, entry.code))


def render_statistics(outcome: CheckOutcome, reasons: Mapping[str, Reason], style: Style = PLAIN) -> str:
    """A table of count, severity, code and title, and the summary line of the full report."""
    counts = code_counts(outcome.findings)
    digits = max((len(str(entry.count)) for entry in counts), default=0)
    severities = max((len(entry.severity) for entry in counts), default=0)
    codes = max((len(entry.code) for entry in counts), default=0)
    lines: list[str] = []
    for entry in counts:
        severity = style.paint(entry.severity.ljust(severities), entry.severity)
        mark = SAFE_FIX_MARK if entry.fixable else " " * len(SAFE_FIX_MARK)
        title = reasons[entry.code].title if entry.code in reasons else ""
        code = style.paint(escape(entry.code).ljust(codes), "code")
        lines.append(f"{entry.count:>{digits}}  {severity}  {code}  {mark}  {escape(title)}".rstrip(" "))
    if lines:
        lines.append("")
    lines += [f"note: {escape(note)}" for note in outcome.notes]
    lines.append(summary(outcome))
    return "\n".join(lines) + "\n"


def _code_count(code: str, group: list[Finding]) -> CodeCount:
    gravest = min((finding.severity for finding in group), key=SEVERITIES.index)
    fixable = sum(finding.fix is not None and finding.fix.safe for finding in group)
    return CodeCount(code, gravest, len(group), len({finding.path for finding in group}), fixable)
