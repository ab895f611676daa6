"""Findings as JSON text, for the cache and for worker processes. Compact: most files have none, some have dozens."""

from __future__ import annotations

import json
from collections.abc import Iterable

from workpacket.model.findings import Edit, Finding, Fix


def dump_findings(findings: Iterable[Finding]) -> str:
    rows = [
        [
            finding.code,
            finding.line,
            finding.column,
            finding.message,
            finding.hint,
            finding.confidence,
            finding.end_line,
            finding.end_column,
            _fix_row(finding.fix),
        ]
        for finding in findings
    ]
    return json.dumps(rows, separators=(",", ":"))


def load_findings(path: str, text: str) -> list[Finding]:
    """The findings of `dump_findings`; their severity is set by grading."""
    return [
        Finding(code, "error", path, line, column, message, hint, _fix(fix), confidence, end_line, end_column)
        for code, line, column, message, hint, confidence, end_line, end_column, fix in json.loads(text)
    ]


def _fix_row(fix: Fix | None) -> list[object] | None:
    return [fix.safe, fix.title, [[edit.start, edit.end, edit.text] for edit in fix.edits]] if fix else None


def _fix(row: tuple[bool, str, list[tuple[int, int, str]]] | None) -> Fix | None:
    return Fix(tuple(Edit(*edit) for edit in row[2]), row[0], row[1]) if row else None
