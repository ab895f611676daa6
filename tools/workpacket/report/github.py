"""Findings as workflow commands of GitHub Actions, which shows them as annotations in the change under review.

A step gets ten annotations of each level; GitHub drops further ones without a word. So the gravest findings come first,
the rest is written as plain lines of the log, and the last annotation says how many those are.
"""

from __future__ import annotations

from collections.abc import Iterable

from workpacket.model.findings import Finding
from workpacket.model.reasons import SEVERITIES, Severity
from workpacket.model.wording import counted
from workpacket.report.escape import escape
from workpacket.report.outcome import CheckOutcome, by_gravity
from workpacket.report.text import location, summary

# "10 warning annotations, 10 error annotations, and 10 notice annotations per step" (actions/toolkit, problem matchers)
ANNOTATIONS_PER_LEVEL = 10

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def render_github(outcome: CheckOutcome) -> str:
    """The lines to print in a workflow step; ends with a line feed."""
    groups = {severity: [f for f in by_gravity(outcome.findings) if f.severity == severity] for severity in SEVERITIES}
    cut_any = any(len(findings) > ANNOTATIONS_PER_LEVEL for findings in groups.values())
    shown: list[Finding] = []
    cut: list[Finding] = []
    for severity, findings in groups.items():
        # The annotation that tells of the cut is itself a notice, and needs one of their places.
        room = ANNOTATIONS_PER_LEVEL - (cut_any and severity == "info")
        shown += findings[:room]
        cut += findings[room:]
    lines = [_annotation(finding) for finding in shown]
    lines += _plain_lines(cut)
    lines += [f"note: {escape(note)}" for note in outcome.notes]
    lines.append(summary(outcome))
    if cut:
        lines.append(f"::notice title=workpacket::{_data(_cut_message(cut))}")
    return "\n".join(lines) + "\n"


def _cut_message(cut: Iterable[Finding]) -> str:
    severities = [finding.severity for finding in cut]
    counts = ((severity, severities.count(severity)) for severity in SEVERITIES)
    missing = ", ".join(counted(count, severity) for severity, count in counts if count)
    return f"{missing} more than GitHub shows as annotations of one step; the log of this step lists them all"


def _annotation(finding: Finding) -> str:
    properties: list[tuple[str, str]] = []
    if finding.path:
        properties.append(("file", finding.path))
    if finding.path and finding.line:
        properties += [("line", str(finding.line)), ("col", str(max(finding.column, 1)))]
    properties.append(("title", finding.code))
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties)
    message = escape(finding.message)
    if finding.hint:
        message += f"\nHelp: {escape(finding.hint)}"
    return f"::{_COMMANDS[finding.severity]} {listed}::{_data(message)}"


def _plain_lines(findings: list[Finding]) -> Iterable[str]:
    if not findings:
        return
    yield f"::group::{counted(len(findings), 'further finding')}"
    for finding in findings:
        # The dash keeps a path that begins with '::' from being read as a command.
        message = escape(finding.message)
        yield f"- {escape(finding.path)}:{location(finding)}: {finding.severity} {escape(finding.code)}: {message}"
    yield "::endgroup::"


def _data(text: str) -> str:
    """Text of our own or from the door, in the escaping of the runner."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(escape(text)).replace(":", "%3A").replace(",", "%2C")
