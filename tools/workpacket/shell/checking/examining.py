"""Reads files and examines them, in this process or in several.

Findings as JSON text, for the cache and for worker processes. Compact: most files have none, some have dozens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from typing import NamedTuple

from workpacket.documents.reading import kind_named, read_document
from workpacket.model.findings import Confidence, Edit, Finding, Fix
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.rules.by_kind import rules_for
from workpacket.rules.engine import examine, placed_finding
from workpacket.shell.shipped_schemas import schemas
from workpacket.shell.tree import FOLDER_SHUT, UNKNOWN_KIND, Found, read_bytes, refusal
from workpacket.text.source import Fault, Source


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


# Below this many files, starting another process costs more than it saves.
WORTH_A_PROCESS = 300
_BATCH = 50


class FileResult(NamedTuple):
    """One examined file: what the cache keeps. Findings and summary are JSON texts."""

    path: str
    digest: str
    findings: str
    summary: str


def examine_bytes(path: str, kind: str, data: bytes, lanes: LaneTable = BUILT_IN) -> FileResult:
    """Examines one document whose bytes are at hand."""
    source = Source.from_bytes(path, data)
    document = read_document(kind, source, lanes)
    findings = [_as_finding(source, fault, kind) for fault in examine(document, rules_for(kind), schemas())]
    summary = document.summary() if document.root is not None else {}
    text = json.dumps(summary, separators=(",", ":")) if summary else ""
    return FileResult(path, source.digest, dump_findings(findings), text)


def examine_file(root: str, path: str, kind: str, lanes: LaneTable = BUILT_IN) -> FileResult:
    """Examines one file. That it cannot be read, or is too large, is a finding."""
    if kind == UNKNOWN_KIND:
        return unreadable(path, "is of no known kind")
    limit = kind_named(kind).limits.size
    try:
        data = read_bytes(root, path, limit)
    except OSError as error:
        return unreadable(path, refusal(error))
    if len(data) > limit:
        return _row_of(path, too_large(path, limit))
    return examine_bytes(path, kind, data, lanes)


@cache
def _confidences(kind: str) -> dict[str, Confidence]:
    return {rule.code(): rule.confidence for rule in rules_for(kind)}


def unreadable(path: str, problem: str) -> FileResult:
    return _row_of(path, unreadable_finding(path, problem))


def unreadable_finding(path: str, problem: str) -> Finding:
    if problem.startswith(FOLDER_SHUT):
        hint = f"let yourself read it: chmod u+rwx {path}"
        return Finding("tree_unreadable", "error", path, 0, 0, f"not looked into, because it {problem}", hint)
    return Finding("file_unreadable", "error", path, 0, 0, f"not checked, because it {problem}")


def too_large(path: str, limit: int) -> Finding:
    message = f"the file is larger than {limit:,} bytes, the limit for its kind"
    return Finding("limit_size", "error", path, 0, 0, message)


def _row_of(path: str, finding: Finding) -> FileResult:
    # No digest: nothing is known of the bytes, so nothing is kept.
    return FileResult(path, "", dump_findings([finding]), "")


def _as_finding(source: Source, fault: Fault, kind: str) -> Finding:
    """A fault, at its line and column. Its severity is set by grading."""
    return placed_finding(source, fault, _confidences(kind).get(fault.code, "certain"))


def examine_files(
    root: str, found: Sequence[Found], progress: Callable[[int], None], lanes: LaneTable = BUILT_IN
) -> Iterator[FileResult]:
    """Examines files, in several processes when that pays. `progress` is told the number done."""
    files = [(file.path, file.kind) for file in found]
    workers = min(os.cpu_count() or 1, 8, len(files) // WORTH_A_PROCESS + 1)
    if workers < 2:
        for done, (path, kind) in enumerate(files, 1):
            yield examine_file(root, path, kind, lanes)
            progress(done)
        return
    from concurrent.futures import ProcessPoolExecutor

    batches = [files[start : start + _BATCH] for start in range(0, len(files), _BATCH)]
    done = 0
    with ProcessPoolExecutor(workers) as pool:
        for rows in pool.map(partial(_examine_batch, root, lanes), batches):
            yield from rows
            done += len(rows)
            progress(done)


def _examine_batch(root: str, lanes: LaneTable, files: Sequence[tuple[str, str]]) -> list[FileResult]:
    return [examine_file(root, path, kind, lanes) for path, kind in files]


def digest_of(root: str, path: str, kind: str) -> str:
    """The digest of a file's bytes, '' if it cannot be read or is too large."""
    limit = kind_named(kind).limits.size
    try:
        data = read_bytes(root, path, limit)
    except OSError:
        return ""
    return sha256(data).hexdigest() if len(data) <= limit else ""
