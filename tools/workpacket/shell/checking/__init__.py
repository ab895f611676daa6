"""`check` in the shell: choose the files, use cached results, examine the rest, and compare documents.

Findings are passed to the cache and between processes as JSON text, in a compact form: most files have no findings, but
some have dozens.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from workpacket.digests import sha256
from workpacket.documents.document import kind_named, read_document
from workpacket.documents.summary import WorkSummary
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.model.layout import LARGEST_SPECIFICATION
from workpacket.model.reasons import Reason
from workpacket.problem import Edit, Fix, Location, Problem
from workpacket.rules.rule import FileFact, Files, examine, references, rules_for, wanted_files
from workpacket.rules.settings import CheckSettings, grade, settings_findings, unused_finding
from workpacket.shell.cache import RACY_NS, Cache, RestsOn
from workpacket.shell.configuration import lanes_here
from workpacket.shell.package_files import schemas
from workpacket.shell.tree import (
    FOLDER_SHUT,
    NEAR_MISS,
    UNKNOWN_KIND,
    Found,
    find_documents,
    link_on_the_way,
    look_at,
    read_bytes,
    refusal,
)
from workpacket.text.source import Source
from workpacket.value import NamedTuple, Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.shell.judging.log_verification import LogsSeen


def dump_findings(findings: Iterable[Problem]) -> str:
    rows = []
    for one in findings:
        at = one.location
        place = (at.line, at.column, at.end_line, at.end_column, at.start, at.end)
        rows.append([one.code, one.message, place, one.hint, _fix_row(one.fix), one.confidence])
    return json.dumps(rows, separators=(",", ":"))


def load_findings(path: str, text: str) -> list[Problem]:
    """Return the findings in text from `dump_findings`; grading sets their severity."""
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
    """One examined file, as the cache stores it. Findings and summary are JSON strings."""

    path: str
    digest: str
    findings: str
    summary: str


def examine_bytes(path: str, kind: str, data: bytes, lanes: LaneTable = BUILT_IN) -> FileResult:
    """Examine one document, given as bytes."""
    source = Source.from_bytes(path, data)
    document = read_document(kind, source, lanes)
    findings = map(source.placed, examine(document, rules_for(kind), schemas()))
    summary = document.summary() if document.root is not None else {}
    text = json.dumps(summary, separators=(",", ":")) if summary else ""
    return FileResult(path, source.digest, dump_findings(findings), text)


def examine_file(root: str, path: str, kind: str, lanes: LaneTable = BUILT_IN) -> FileResult:
    """Examine one file. A file that is unreadable or too large gets a finding."""
    if kind == UNKNOWN_KIND:
        return unreadable(path, "is of an unknown kind")
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

    # One file of each kind is examined here, so that forked workers need not load its rules and patterns again.
    first = {kind: (path, kind) for path, kind in reversed(files)}
    for path, kind in first.values():
        yield examine_file(root, path, kind, lanes)
    done = len(first)
    files = [file for file in files if first[file[1]] != file]
    batches = [files[start : start + _BATCH] for start in range(0, len(files), _BATCH)]
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


class Checked:
    """The findings of a check, and what they depend on besides the documents.

    `by_people`: some event needs an approval, even if the policy does not mention approvals. `archived`: the files of
    superseded and abandoned work.
    """

    __slots__ = ("archived", "by_people", "findings", "rests_on")

    def __init__(
        self,
        findings: list[Problem],
        rests_on: RestsOn | None = None,
        *,
        by_people: bool = False,
        archived: frozenset[str] = frozenset(),
    ) -> None:
        self.findings = findings
        self.archived = archived
        self.rests_on = rests_on or RestsOn()
        self.by_people = by_people


def check(
    root: str,
    files: Sequence[Found],
    *,
    whole: bool,
    cache: Cache,
    reasons: Mapping[str, Reason],
    settings: CheckSettings,
    progress: Callable[[int, int], None],
    logs: LogsSeen | None = None,
) -> Checked:
    """Check `files`. Documents are compared with one another only if `files` are all files of the repository.

    `logs` is what the logs say, if they were read before; by default, they are read, and waivers are judged by the
    clock.
    """
    findings: list[Problem] = []
    lanes = lanes_here(root)
    results = known_or_examined(root, files, cache, progress, lanes)
    for found, result in zip(files, results, strict=True):
        if result.findings != "[]":
            findings += load_findings(found.path, result.findings)
    summarised = [(found, result.summary) for found, result in zip(files, results, strict=True) if result.summary]
    # One text for all is read three times as fast as ten thousand small ones.
    loaded = json.loads(f"[{','.join(summary for _, summary in summarised)}]")
    summaries = [(found.kind, found.path, summary) for (found, _), summary in zip(summarised, loaded, strict=True)]
    facts = gather_files(root, wanted_files(summaries))
    findings += references(summaries, facts.files)
    rests_on, by_people, archived = RestsOn(facts.paths), False, frozenset[str]()
    if whole:
        # Rules across files and the ledger are imported only for a whole repository.
        from workpacket.shell.checking.whole import compared

        found_across = compared(root, summaries, lanes, cache, logs)
        findings += found_across.findings
        rests_on, by_people = rests_on | found_across.rests_on, found_across.by_people
        archived = found_across.archived
    graded, unused = grade(findings, reasons, settings, archived)
    checked = {found.path for found in files}
    about_settings = [
        *settings_findings(settings, reasons),
        # If the policy is checked itself, its faults are reported already, except that its settings are not in force.
        *(fault for fault in settings.faults if fault.path not in checked or fault.code == "settings_unread"),
        *(unused_finding(ignore, settings) for ignore in unused if whole),
    ]
    graded += grade(about_settings, reasons, replace(settings, ignores=()))[0]
    graded.sort(key=lambda finding: finding.order)
    return Checked(graded, rests_on, by_people=by_people)


def check_text(
    root: str, path: str, kind: str, data: bytes, reasons: Mapping[str, Reason], settings: CheckSettings
) -> list[Problem]:
    """Check one document, given as bytes, which may differ from its file."""
    limit = kind_named(kind).limits.size
    if len(data) > limit:
        findings = [too_large(path, limit)]
    else:
        row = examine_bytes(path, kind, data, lanes_here(root))
        findings = load_findings(path, row.findings)
        summaries = [(kind, path, json.loads(row.summary))] if row.summary else []
        findings += references(summaries, gather_files(root, wanted_files(summaries)).files)
    return sorted(grade(findings, reasons, settings)[0], key=lambda finding: finding.order)


def known_or_examined(
    root: str, files: Sequence[Found], cache: Cache, progress: Callable[[int, int], None], lanes: LaneTable
) -> list[Result]:
    """Return a result for each file: from the cache if the same bytes were examined before with the same lanes."""
    started = time.time_ns()
    digests = _digests(root, files, cache)
    known = recall_results(cache, [result_key(digest + lanes.key, path) for path, digest in digests.items()])

    def key_of(found: Found) -> str:
        return result_key(digests.get(found.path, "") + lanes.key, found.path)

    missing = [found for found in files if not found.problem and key_of(found) not in known]
    rows = {row.path: row for row in examine_files(root, missing, lambda done: progress(done, len(missing)), lanes)}
    keep_results(
        cache,
        (
            (result_key(row.digest + lanes.key, row.path), Result(row.findings, row.summary))
            for row in rows.values()
            if row.digest
        ),
    )
    # The digest of the bytes that were examined, which may be newer than those that were looked at before.
    digests |= {row.path: row.digest for row in rows.values() if row.digest}
    at_rest = _at_rest(root, files, digests, started)
    cache.keep("file", ((path, f"{digest} {state}") for path, state, digest in at_rest))
    cache.forget_unused(most=2 * len(files) + 10_000)
    results: list[Result] = []
    for found in files:
        result = known.get(key_of(found))
        if result is None:
            row = rows[found.path] if not found.problem else unreadable(found.path, found.problem)
            result = Result(row.findings, row.summary)
        results.append(result)
    return results


def _digests(root: str, files: Sequence[Found], cache: Cache) -> dict[str, str]:
    """Return the digests of files that may have cached results: from their stat data if that is safe, otherwise by
    reading them.
    """
    if cache.is_empty("examined"):
        return {}
    known = cache.recall("file", [found.path for found in files])
    digests: dict[str, str] = {}
    for found in files:
        digest, _, state = known.get(found.path, "").partition(" ")
        if found.state and state == found.state:
            digests[found.path] = digest
        elif not found.problem:
            digests[found.path] = digest_of(root, found.path, found.kind)
    return digests


def _at_rest(
    root: str, files: Sequence[Found], digests: Mapping[str, str], started: int
) -> Iterator[tuple[str, str, str]]:
    """Yield (path, state, digest) of the files whose state will identify their bytes from now on.

    They had been unchanged for some time when they were first examined (see cache.RACY_NS), and have the same state
    after reading.
    """
    for found in files:
        digest = digests.get(found.path, "")
        if digest and found.mtime_ns + RACY_NS < started and look_at(root, found.path).state == found.state:
            yield found.path, found.state, digest


class Result(NamedTuple):
    """The result for one file: findings and summary, each as JSON text without line breaks."""

    findings: str
    summary: str


def result_key(digest: str, path: str) -> str:
    """Return the key of a result. `digest` is the digest of the bytes, followed by the key of the lanes if a policy
    adds some.
    """
    return f"{digest} {path}"


def recall_results(cache: Cache, keys: Sequence[str]) -> dict[str, Result]:
    known = cache.recall("examined", keys)
    return {key: Result(*text.split("\n", 1)) for key, text in known.items()}


def keep_results(cache: Cache, rows: Iterable[tuple[str, Result]]) -> None:
    cache.keep("examined", ((key, "\n".join(result)) for key, result in rows))


class CheckInput(Value):
    files: Files
    paths: list[str]


def gather_files(root: str, wanted: Iterable[tuple[str, bool]]) -> CheckInput:
    """Look up the files that documents refer to."""
    texts: dict[str, bool] = {}
    for path, text in wanted:
        texts[path] = texts.get(path, False) or text
    facts = {path: _fact(root, path, text) for path, text in texts.items()}
    return CheckInput(Files(facts), sorted(texts))


def _fact(root: str, path: str, text: bool) -> FileFact:
    full = os.path.join(root, path)
    # A link is not followed: it may lead out of the repository, and git stores the link and not the file.
    if link_on_the_way(root, path):
        return FileFact("file" if os.path.lexists(full) else "absent")
    if os.path.isdir(full):
        return FileFact("folder")
    if not os.path.exists(full):
        return FileFact("absent")
    source: Source | None = None
    if text:
        try:
            source = Source.from_bytes(path, read_bytes(root, path, LARGEST_SPECIFICATION))
        except OSError:
            source = None
    return FileFact("file", source)


_WORK = frozenset({"stub", "packet"})


def work_summaries(
    root: str, paths: Collection[str], cache: Cache, progress: Callable[[int, int], None]
) -> Mapping[str, WorkSummary]:
    """Return the summaries of these stubs and packets, by path; unreadable files are left out."""
    wanted = frozenset(paths)
    files = [found for found in find_documents(root) if found.kind in _WORK and found.path in wanted]
    results = known_or_examined(root, files, cache, progress, lanes_here(root))
    known = [(found.path, result.summary) for found, result in zip(files, results, strict=True) if result.summary]
    loaded = json.loads(f"[{','.join(summary for _, summary in known)}]")
    return {path: cast("WorkSummary", summary) for (path, _), summary in zip(known, loaded, strict=True)}
