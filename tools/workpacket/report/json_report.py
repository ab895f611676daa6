"""The JSON object that every command prints with `--json`; its schemas are `schemas/output*.schema.json`.

Pure ASCII: other characters are JSON escapes, so the object is safe to print and can be read back exactly. Prose
(message, hint, notes) is also sanitized, for programs that print it; paths and edits are not, because they are data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from workpacket import __version__
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.reasons import SEVERITIES
from workpacket.problem import Edit, Fix, Problem
from workpacket.report.outcome import CheckOutcome
from workpacket.report.terminal import escape, without_surrogates


def encode_readable(value: Json) -> str:
    """Return a part of the data of an envelope, as `render_envelope` writes it."""
    return _encode(_readable(value))


def _encode(value: Json) -> str:
    # JSON allows an unescaped DEL, but terminals may act on it. It can only occur inside a string.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("\x7f", "\\u007f")


def render_envelope(command: str, exit_code: int, findings: Iterable[Problem], data: Mapping[str, Json]) -> str:
    """Return the JSON object of any command, on one line. The strings of `data` may contain anything."""
    envelope: dict[str, Json] = {
        "workpacket": __version__,
        "command": command,
        "ok": exit_code == exits.OK,
        "exit_code": exit_code,
        "findings": [_finding(finding) for finding in sorted(findings, key=lambda finding: finding.order)],
        "data": _readable(data),
    }
    return _encode(envelope) + "\n"


def render_check(outcome: CheckOutcome, exit_code: int) -> str:
    """Return the object that `check` prints."""
    data: dict[str, Json] = {
        "files_checked": len(outcome.files),
        "files_by_kind": outcome.files_by_kind,
        "files_with_findings": outcome.files_with_findings(),
        "counts": {severity: outcome.total(severity) for severity in SEVERITIES},
        "fixable": {"safe": outcome.fixable(safe=True), "unsafe": outcome.fixable(safe=False)},
        "fail_on": outcome.fail_on,
        "notes": [escape(note) for note in outcome.notes],
    }
    if outcome.repaired is not None:
        data["repaired"] = {"files": [*outcome.repaired.files], "by_code": dict(outcome.repaired.codes)}
    return render_envelope("check", exit_code, outcome.findings, data)


def _finding(finding: Problem) -> dict[str, Json]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "path": without_surrogates(finding.path),
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.location.end_line,
        "end_column": finding.location.end_column,
        "message": escape(finding.message),
        "hint": escape(finding.hint),
        "confidence": finding.confidence,
        "fix": None if finding.fix is None else _fix(finding.fix),
    }


def _fix(fix: Fix) -> dict[str, Json]:
    return {"safe": fix.safe, "title": escape(fix.title), "edits": _edits(fix.edits)}


def _edits(edits: tuple[Edit, ...]) -> list[Json] | None:
    """Return the edits; None if their text contains bytes that are not UTF-8, which `--fix` can apply but JSON cannot
    represent.
    """
    if any(without_surrogates(edit.text) != edit.text for edit in edits):
        return None
    return [{"start": edit.start, "end": edit.end, "text": edit.text} for edit in edits]


def _readable(value: Json) -> Json:
    """Return `value` without lone surrogates, which strict JSON parsers refuse."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, Mapping):
        return {without_surrogates(key): _readable(item) for key, item in value.items()}
    if value is None or isinstance(value, int | float):
        return value
    return [_readable(item) for item in value]
