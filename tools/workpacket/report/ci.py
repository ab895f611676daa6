"""Findings for CI servers: as workflow commands of GitHub Actions, and as JUnit XML.

GitHub shows workflow commands as annotations in the change under review.

A step gets ten annotations of each level; GitHub silently drops more. The most severe findings therefore come first,
the rest are plain lines in the log, and the last annotation says how many there are.

In JUnit XML each file is one test case, so that a CI server can show which files failed and since when. Findings that
fail the check are a `failure`, others are in `system-out`, and an unreadable file is an `error`, as is a run that
checked nothing. All text is escaped, which leaves only characters that XML allows.

Findings as workflow commands of GitHub Actions, which shows them as annotations in the change under review.

A step gets ten annotations of each level; GitHub silently drops more. The most severe findings therefore come first,
the rest are plain lines in the log, and the last annotation says how many there are.

Findings as JUnit XML: one test case a file, so that a CI server can show which files failed and since when.

Findings that fail the check are a `failure`, others are in `system-out`, and an unreadable file is an `error`, as is a
run that checked nothing. All text passes the door, which leaves only characters XML allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from workpacket.model import exits
from workpacket.model.reasons import SEVERITIES, Reason
from workpacket.model.wording import counted
from workpacket.problem import Problem, Severity
from workpacket.report.escape import escape
from workpacket.report.outcome import CheckOutcome, by_file, by_gravity
from workpacket.report.text import REPOSITORY, location, summary
from workpacket.value import Value

# "10 warning annotations, 10 error annotations, and 10 notice annotations per step" (actions/toolkit, problem matchers)
ANNOTATIONS_PER_LEVEL = 10

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def render_github(outcome: CheckOutcome) -> str:
    """The lines to print in a workflow step; ends with a line feed."""
    groups = {severity: [f for f in by_gravity(outcome.findings) if f.severity == severity] for severity in SEVERITIES}
    cut_any = any(len(findings) > ANNOTATIONS_PER_LEVEL for findings in groups.values())
    shown: list[Problem] = []
    cut: list[Problem] = []
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


def _cut_message(cut: Iterable[Problem]) -> str:
    severities = [finding.severity for finding in cut]
    counts = ((severity, severities.count(severity)) for severity in SEVERITIES)
    missing = ", ".join(counted(count, severity) for severity, count in counts if count)
    return f"{missing} more than GitHub shows as annotations for one step; the step's log lists them all"


def _annotation(finding: Problem) -> str:
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


def _plain_lines(findings: list[Problem]) -> Iterable[str]:
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


_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
SUITE = "workpacket check"


class _Case(Value):
    """One file: what fails it, in which element, and what is only reported."""

    name: str
    kind: str
    element: Literal["failure", "error"]
    failing: tuple[Problem, ...]
    lesser: tuple[Problem, ...]


def render_junit(outcome: CheckOutcome, reasons: Mapping[str, Reason]) -> str:
    """The document, with a line feed at its end."""
    cases = list(_cases(outcome, reasons))
    failures = sum(bool(case.failing) and case.element == "failure" for case in cases)
    errors = sum(bool(case.failing) and case.element == "error" for case in cases)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    notes = _text(" ".join(outcome.notes))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="{SUITE}" {counts}>',
        f'  <testsuite name="{SUITE}" {counts} skipped="0">',
        *(line for case in cases for line in _case_lines(case)),
        *([f"    <system-out>{notes}</system-out>"] if notes else []),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _cases(outcome: CheckOutcome, reasons: Mapping[str, Reason]) -> Iterator[_Case]:
    if not outcome.files:
        nothing = Problem("nothing_to_check", "no files were checked")
        yield _Case(REPOSITORY, "run", "error", (nothing,), ())
    unreadable = {code for code, reason in reasons.items() if reason.exit_code == exits.ENVIRONMENT}
    groups = by_file(outcome.findings)
    for path in sorted({*outcome.files, *groups}):
        findings = groups.get(path, [])
        failing = tuple(finding for finding in findings if outcome.fails(finding))
        lesser = tuple(finding for finding in findings if not outcome.fails(finding))
        unseen = any(finding.code in unreadable for finding in failing)
        kind = outcome.files.get(path, "repository")
        yield _Case(path or REPOSITORY, kind, "error" if unseen else "failure", failing, lesser)


def _case_lines(case: _Case) -> Iterator[str]:
    start = f'    <testcase classname="{_text(case.kind)}" name="{_text(case.name)}"'
    if not case.failing and not case.lesser:
        yield f"{start}/>"
        return
    yield f"{start}>"
    if case.failing:
        first = case.failing[0]
        others = counted(len(case.failing) - 1, "more finding")
        message = f"{first.message} (and {others})" if case.failing[1:] else first.message
        yield f'      <{case.element} type="{_text(first.code)}" message="{_text(message)}">'
        yield from _listing(case.name, case.failing)
        yield f"      </{case.element}>"
    if case.lesser:
        yield "      <system-out>"
        yield from _listing(case.name, case.lesser)
        yield "      </system-out>"
    yield "    </testcase>"


def _listing(name: str, findings: tuple[Problem, ...]) -> Iterator[str]:
    for finding in findings:
        yield _text(f"{name}:{location(finding)}: {finding.severity} {finding.code}: {finding.message}")
        if finding.hint:
            yield f"  help: {_text(finding.hint)}"


def _text(text: str) -> str:
    return escape(text).translate(_XML)
