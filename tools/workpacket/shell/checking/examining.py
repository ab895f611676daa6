"""Read files and examine them, in this process or in several.

Findings are passed to the cache and between processes as JSON text, in a compact form: most files have no findings,
some have dozens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from workpacket.documents.reading import kind_named, read_document
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.problem import Edit, Fix, Location, Problem
from workpacket.rules.engine import examine, rules_for
from workpacket.shell.package_files import schemas
from workpacket.shell.tree import FOLDER_SHUT, NEAR_MISS, UNKNOWN_KIND, Found, read_bytes, refusal
from workpacket.text.source import Source


def dump_findings(findings: Iterable[Problem]) -> str:
    rows = []
    for one in findings:
        at = one.location
        place = (at.line, at.column, at.end_line, at.end_column, at.start, at.end)
        rows.append([one.code, one.message, place, one.hint, _fix_row(one.fix), one.confidence])
    return json.dumps(rows, separators=(",", ":"))


def load_findings(path: str, text: str) -> list[Problem]:
    """Return the findings from the text of `dump_findings`; grading sets their severity."""
    return [
        Problem(code, message, Location(path, *place), hint, _fix(fix), confidence=confidence)
        for code, message, place, hint, fix, confidence in json.loads(text)
    ]


def _fix_row(fix: Fix | None) -> list[object] | None:
    return [fix.safe, fix.title, [[edit.start, edit.end, edit.text] for edit in fix.edits]] if fix else None


def _fix(row: tuple[bool, str, list[tuple[int, int, str]]] | None) -> Fix | None:
    return Fix(tuple(Edit(*edit) for edit in row[2]), row[0], row[1]) if row else None


# Below this number of files, starting another process takes longer than it saves.
WORTH_A_PROCESS = 300
_BATCH = 50


class FileResult(NamedTuple):
    """One examined file, as the cache stores it. Findings and summary are JSON texts."""

    path: str
    digest: str
    findings: str
    summary: str


def examine_bytes(path: str, kind: str, data: bytes, lanes: LaneTable = BUILT_IN) -> FileResult:
    """Examine one document, given its bytes."""
    source = Source.from_bytes(path, data)
    document = read_document(kind, source, lanes)
    findings = map(source.placed, examine(document, rules_for(kind), schemas()))
    summary = document.summary() if document.root is not None else {}
    text = json.dumps(summary, separators=(",", ":")) if summary else ""
    return FileResult(path, source.digest, dump_findings(findings), text)


def examine_file(root: str, path: str, kind: str, lanes: LaneTable = BUILT_IN) -> FileResult:
    """Examine one file. A file that is unreadable or too large gets a finding."""
    if kind == UNKNOWN_KIND:
        return unreadable(path, "has no known kind")
    limit = kind_named(kind).limits.size
    try:
        data = read_bytes(root, path, limit)
    except OSError as error:
        return unreadable(path, refusal(error))
    if len(data) > limit:
        return _row_of(path, too_large(path, limit))
    return examine_bytes(path, kind, data, lanes)


def unreadable(path: str, problem: str) -> FileResult:
    return _row_of(path, unreadable_finding(path, problem))


def unreadable_finding(path: str, problem: str) -> Problem:
    if problem.startswith(FOLDER_SHUT):
        hint = f"make it readable: chmod u+rwx {path}"
        return Problem("tree_unreadable", f"not read, because it {problem}", Location(path), hint)
    if problem == NEAR_MISS:
        return Problem("file_not_checked", f"not checked: it {problem}", Location(path), severity="info")
    return Problem("file_unreadable", f"not checked, because it {problem}", Location(path))


def too_large(path: str, limit: int) -> Problem:
    message = f"the file is larger than {limit:,} bytes, the limit for its kind"
    return Problem("limit_size", message, Location(path))


def _row_of(path: str, finding: Problem) -> FileResult:
    # Without a digest, because the bytes are unknown, so nothing is cached.
    return FileResult(path, "", dump_findings([finding]), "")


def examine_files(
    root: str, found: Sequence[Found], progress: Callable[[int], None], lanes: LaneTable = BUILT_IN
) -> Iterator[FileResult]:
    """Examine files, in several processes if that is faster. `progress` is called with the number of files done."""
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
    """Return the digest of a file's bytes, or '' if it cannot be read or is too large."""
    limit = kind_named(kind).limits.size
    try:
        data = read_bytes(root, path, limit)
    except OSError:
        return ""
    return sha256(data).hexdigest() if len(data) <= limit else ""
