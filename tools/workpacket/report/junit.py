"""Findings as JUnit XML: one test case a file, so that a CI server can show which files failed and since when.

What makes the check fail is a `failure`, lesser findings stand in `system-out`, and a file that could not be looked at
is an `error`, as is a run that looked at nothing. All text passes the door, which leaves only characters XML allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workpacket.model import exits
from workpacket.model.findings import Finding
from workpacket.model.reasons import Reason
from workpacket.report.door import escape
from workpacket.report.outcome import CheckOutcome, by_file
from workpacket.report.text import REPOSITORY, counted, location

_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
SUITE = "workpacket check"


def render_junit(outcome: CheckOutcome, reasons: Mapping[str, Reason]) -> str:
    """The document, with a line feed at its end."""
    groups = by_file(outcome.findings)
    failing = set(outcome.failing)
    unreadable = {code for code, reason in reasons.items() if reason.exit_code == exits.ENVIRONMENT}
    cases: list[str] = []
    errors = failures = 0
    for path in sorted({*outcome.files, *groups}):
        findings = groups.get(path, [])
        grave = [finding for finding in findings if finding in failing]
        lesser = [finding for finding in findings if finding not in failing]
        tag = "error" if any(finding.code in unreadable for finding in grave) else "failure"
        errors += bool(grave) and tag == "error"
        failures += bool(grave) and tag == "failure"
        cases += _case(path, outcome.files.get(path, "repository"), tag, grave, lesser)
    if not outcome.files:
        errors += 1
        cases += _nothing_checked()
    tests = sum(line.startswith("    <testcase") for line in cases)
    counts = f'tests="{tests}" failures="{failures}" errors="{errors}"'
    output = [f"    <system-out>{_text(' '.join(outcome.notes))}</system-out>"] if outcome.notes else []
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="{SUITE}" {counts}>',
        f'  <testsuite name="{SUITE}" {counts} skipped="0">',
        *cases,
        *output,
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(path: str, kind: str, tag: str, grave: list[Finding], lesser: list[Finding]) -> list[str]:
    name = path or REPOSITORY
    start = f'    <testcase classname="{_text(kind)}" name="{_text(name)}"'
    if not grave and not lesser:
        return [f"{start}/>"]
    lines = [f"{start}>"]
    if grave:
        first = grave[0]
        message = f"{counted(len(grave), 'finding')}, first {first.message}" if len(grave) > 1 else first.message
        lines += [f'      <{tag} type="{_text(first.code)}" message="{_text(message)}">', *_listing(name, grave)]
        lines.append(f"      </{tag}>")
    if lesser:
        lines += ["      <system-out>", *_listing(name, lesser), "      </system-out>"]
    return [*lines, "    </testcase>"]


def _listing(name: str, findings: Iterable[Finding]) -> list[str]:
    lines: list[str] = []
    for finding in findings:
        message = _text(finding.message)
        lines.append(f"{_text(name)}:{location(finding)}: {finding.severity} {_text(finding.code)}: {message}")
        if finding.hint:
            lines.append(f"  help: {_text(finding.hint)}")
    return lines


def _nothing_checked() -> list[str]:
    return [
        f'    <testcase classname="repository" name="{REPOSITORY}">',
        '      <error type="nothing_to_check" message="no file was checked"/>',
        "    </testcase>",
    ]


def _text(text: str) -> str:
    return escape(text).translate(_XML)
