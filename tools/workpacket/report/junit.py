"""Findings as JUnit XML: one test case a file, so that a CI server can show which files failed and since when.

What makes the check fail is a `failure`, lesser findings stand in `system-out`, and a file that could not be looked at
is an `error`, as is a run that looked at nothing. All text passes the door, which leaves only characters XML allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from workpacket.model import exits
from workpacket.model.findings import Finding
from workpacket.model.reasons import Reason
from workpacket.model.wording import counted
from workpacket.report.escape import escape
from workpacket.report.outcome import CheckOutcome, by_file
from workpacket.report.text import REPOSITORY, location
from workpacket.value import Value

_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
SUITE = "workpacket check"


class _Case(Value):
    """One file: what fails it, by which element, and what is only told."""

    name: str
    kind: str
    element: Literal["failure", "error"]
    failing: tuple[Finding, ...]
    lesser: tuple[Finding, ...]


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
        nothing = Finding("nothing_to_check", "error", "", 0, 0, "no file was checked")
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


def _listing(name: str, findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings:
        yield _text(f"{name}:{location(finding)}: {finding.severity} {finding.code}: {finding.message}")
        if finding.hint:
            yield f"  help: {_text(finding.hint)}"


def _text(text: str) -> str:
    return escape(text).translate(_XML)
