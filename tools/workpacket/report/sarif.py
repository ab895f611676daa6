"""Findings as SARIF 2.1.0, for code scanning services and editors.

The results are sorted by severity and cut at what GitHub shows of a run; a notification then says how many were cut.
Paths are relative to the root of the repository and percent-encoded, which also carries names that are not UTF-8.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from urllib.parse import quote

from workpacket import __version__
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.model.reasons import Reason
from workpacket.problem import Edit, Problem, Severity
from workpacket.report.escape import escape, without_surrogates
from workpacket.report.outcome import CheckOutcome, SourceLine, by_gravity

# "Results per run: 25,000; only the top 5,000 results will be included, prioritized by severity" (GitHub docs)
GITHUB_RESULTS = 5_000

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
# The name says how it is made: change the recipe and the name changes, or old alerts would be mistaken for new ones.
FINGERPRINT = "codePathLine/v1"

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
# What GitHub sorts alerts by, in its own words.
_PROBLEM_SEVERITIES: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "recommendation"}

_NOT_EXECUTED = frozenset({exits.ENVIRONMENT, exits.INTERNAL, exits.INTERRUPTED})


def render_sarif(
    outcome: CheckOutcome, reasons: Mapping[str, Reason], exit_code: int, limit: int = GITHUB_RESULTS
) -> str:
    """One SARIF log with one run, on one line, in ASCII."""
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
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [_invocation(outcome, exit_code, max(cut, 0), limit)],
        "results": _results(findings, codes, outcome.source_line),
        "properties": {"filesChecked": len(outcome.files), "filesByKind": outcome.files_by_kind},
    }
    log: dict[str, Json] = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, separators=(",", ":"), allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def relative_uri(path: str) -> str:
    """`path` as a relative URI reference; a byte of the name that is not UTF-8 comes back as that byte."""
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
            f"{cut} of {total} findings are not in this file: code scanning shows {limit} per run. The most severe "
            "were kept; run 'workpacket check' for all of them."
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
    """GitHub refuses the whole upload if a result has no location, so those without one get the nearest."""
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
    """A fingerprint that is stable when lines are added above: from code, path, text of the line, and an index."""
    line = source_line(finding.path, finding.line) if finding.line else None
    parts = (finding.code, finding.path, (line or "").strip())
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"


def _fix(finding: Problem) -> dict[str, Json] | None:
    """A fix whose text SARIF can represent; its description says how safe it is, because the format has no field for
    that.
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
