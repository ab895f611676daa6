"""Findings for CI servers: as GitHub Actions workflow commands, as JUnit XML, and as SARIF.

GitHub shows workflow commands as annotations in the change under review. A step gets ten annotations of each level;
GitHub silently drops more. The most severe findings therefore come first, the rest are plain lines in the log, and the
last annotation says how many there are.

In JUnit XML each file is one test case, so that a CI server can show which files failed and since when. Findings that
fail the check are a `failure`, others are in `system-out`, and an unreadable file is an `error`, as is a run that
checked nothing. All text is escaped, which leaves only characters that XML allows.

In SARIF 2.1.0, for code scanning services and editors, results are sorted by severity and cut off at the number that
GitHub shows for a run; a notification then says how many are missing. Paths are relative to the root of the repository
and percent-encoded, which also preserves names that are not UTF-8.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Literal
from urllib.parse import quote

from workpacket import __version__
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.model.reasons import SEVERITIES, Reason
from workpacket.model.wording import counted
from workpacket.problem import Edit, Problem, Severity
from workpacket.report.outcome import CheckOutcome, SourceLine, by_file, by_gravity
from workpacket.report.terminal import escape, without_surrogates
from workpacket.report.text import REPOSITORY, location, summary
from workpacket.value import Value

# "10 warning annotations, 10 error annotations, and 10 notice annotations per step" (actions/toolkit, problem matchers)
ANNOTATIONS_PER_LEVEL = 10

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}

# "Results per run: 25,000; only the top 5,000 results will be included, prioritized by severity" (GitHub docs)
GITHUB_RESULTS = 5_000

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
# The name includes the algorithm: if the algorithm changes, so must the name, or old alerts would be mistaken for new
# ones.
FINGERPRINT = "codePathLine/v1"

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
# The severities by which GitHub sorts alerts.
_PROBLEM_SEVERITIES: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "recommendation"}

_NOT_EXECUTED = frozenset({exits.ENVIRONMENT, exits.INTERNAL, exits.INTERRUPTED})


def render_github(outcome: CheckOutcome) -> str:
    """Return the lines to print in a workflow step, ending with a newline."""
    groups = {severity: [f for f in by_gravity(outcome.findings) if f.severity == severity] for severity in SEVERITIES}
    cut_any = any(len(findings) > ANNOTATIONS_PER_LEVEL for findings in groups.values())
    shown: list[Problem] = []
    cut: list[Problem] = []
    for severity, findings in groups.items():
        # The annotation that reports the cut is itself a notice, and takes the place of one.
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
    return f"not annotated: {missing}; GitHub limits the annotations per step, but the step's log lists them all"


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
        # The dash prevents a path that begins with '::' from being read as a command.
        message = escape(finding.message)
        yield f"- {escape(finding.path)}:{location(finding)}: {finding.severity} {escape(finding.code)}: {message}"
    yield "::endgroup::"


def _data(text: str) -> str:
    """Escape text that is ours or already sanitized, for the runner."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(escape(text)).replace(":", "%3A").replace(",", "%2C")


_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
SUITE = "workpacket check"


class _Case(Value):
    """One file: the element for findings that make it fail, and the findings that are only reported."""

    name: str
    kind: str
    element: Literal["failure", "error"]
    failing: tuple[Problem, ...]
    lesser: tuple[Problem, ...]


def render_junit(outcome: CheckOutcome, reasons: Mapping[str, Reason]) -> str:
    """Return the document, which ends with a newline."""
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


def render_sarif(
    outcome: CheckOutcome, reasons: Mapping[str, Reason], exit_code: int, limit: int = GITHUB_RESULTS
) -> str:
    """Return one SARIF log with one run, on one line, in ASCII."""
    findings = by_gravity(outcome.findings)
    cut = len(findings) - limit
    findings = findings[:limit]
    codes = list(dict.fromkeys(finding.code for finding in findings))
    run: dict[str, Json] = {
        "tool": {
            "driver": {
                "name": "workpacket",
                "semanticVersion": __version__,
                "rules": [_rule(code, reasons.get(code)) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The repository's root."}}},
        "invocations": [_invocation(outcome, exit_code, max(cut, 0), limit)],
        "results": _results(findings, codes, outcome.source_line),
        "properties": {"filesChecked": len(outcome.files), "filesByKind": outcome.files_by_kind},
    }
    log: dict[str, Json] = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, separators=(",", ":"), allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def relative_uri(path: str) -> str:
    """Return `path` as a relative URI reference; bytes of the name that are not UTF-8 are preserved."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = without_surrogates(path).encode("utf-8")
    return quote(raw, safe="/")


def _rule(code: str, reason: Reason | None) -> dict[str, Json]:
    if reason is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": f"{reason.title}."},
        "fullDescription": {"text": reason.explanation},
        "help": {
            "text": f"{reason.explanation}\n\nRemedy: {reason.remedy}",
            "markdown": f"{reason.explanation}\n\n**Remedy:** {reason.remedy}",
        },
        "defaultConfiguration": {"level": _LEVELS[reason.severity]},
        "properties": {"tags": [reason.family], "problem.severity": _PROBLEM_SEVERITIES[reason.severity]},
    }


def _invocation(outcome: CheckOutcome, exit_code: int, cut: int, limit: int) -> dict[str, Json]:
    notifications: list[Json] = [_notification("note", escape(note)) for note in outcome.notes]
    if cut:
        total = cut + limit
        text = (
            f"{cut} of {total} findings are not in this file: code scanning shows {limit} per run. The most "
            "severe were kept; run 'workpacket check' to see all of them."
        )
        notifications.append(_notification("warning", text))
    return {
        "executionSuccessful": exit_code not in _NOT_EXECUTED,
        "exitCode": exit_code,
        "toolExecutionNotifications": notifications,
    }


def _notification(level: str, text: str) -> dict[str, Json]:
    return {"level": level, "message": {"text": text}}


def _results(findings: Iterable[Problem], codes: list[str], source_line: SourceLine) -> list[Json]:
    indexes = {code: index for index, code in enumerate(codes)}
    seen: Counter[str] = Counter()
    results: list[Json] = []
    for finding in findings:
        result: dict[str, Json] = {
            "ruleId": finding.code,
            "ruleIndex": indexes[finding.code],
            "level": _LEVELS[finding.severity],
            "message": {"text": _message(finding)},
            "locations": [_location(finding)],
            "partialFingerprints": {FINGERPRINT: _fingerprint(finding, source_line, seen)},
            "properties": {"confidence": finding.confidence},
        }
        fix = _fix(finding)
        if fix is not None:
            result["fixes"] = [fix]
        results.append(result)
    return results


def _message(finding: Problem) -> str:
    message = escape(finding.message)
    return f"{message}\nHelp: {escape(finding.hint)}" if finding.hint else message or finding.code


def _artifact(path: str) -> dict[str, Json]:
    return {"uri": relative_uri(path), "uriBaseId": ROOT}


def _location(finding: Problem) -> dict[str, Json]:
    """Return the location.

    GitHub refuses the whole upload if a result has none, so a finding without a location gets the nearest one.
    """
    artifact = _artifact(finding.path or GOVERNANCE_FOLDER)
    return {"physicalLocation": {"artifactLocation": artifact, "region": _region(finding)}}


def _region(finding: Problem) -> dict[str, Json]:
    region: dict[str, Json] = {"startLine": max(finding.line, 1)}
    if finding.line and finding.column:
        region["startColumn"] = finding.column
        if (finding.location.end_line, finding.location.end_column) > (finding.line, finding.column):
            region["endLine"] = finding.location.end_line
            region["endColumn"] = max(finding.location.end_column, 1)
    return region


def _fingerprint(finding: Problem, source_line: SourceLine, seen: Counter[str]) -> str:
    """Return a fingerprint that is stable when lines are added above: it is made from the code, the path, the text of
    the line, and an index.
    """
    line = source_line(finding.path, finding.line) if finding.line else None
    parts = (finding.code, finding.path, (line or "").strip())
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"


def _fix(finding: Problem) -> dict[str, Json] | None:
    """Return a fix whose text SARIF can represent; its description says how safe it is, because the format has no field
    for that.
    """
    fix = finding.fix
    if fix is None or not fix.edits or any(without_surrogates(edit.text) != edit.text for edit in fix.edits):
        return None
    safety = "safe" if fix.safe else "unsafe: a person should review it"
    return {
        "description": {"text": f"{escape(fix.title) or 'Fix'} ({safety})"},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(finding.path),
                "replacements": [_replacement(edit) for edit in fix.edits],
            }
        ],
    }


def _replacement(edit: Edit) -> dict[str, Json]:
    deleted = {"charOffset": edit.start, "charLength": edit.end - edit.start}
    return {"deletedRegion": deleted, "insertedContent": {"text": edit.text}}
