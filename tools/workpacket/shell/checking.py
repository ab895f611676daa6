"""`check` as the shell sees it: which files, what is already known of them, what has to be examined, what follows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from workpacket.model.findings import Finding
from workpacket.model.reasons import Reason
from workpacket.rules.all_rules import RULES
from workpacket.rules.engine import across, references, wanted_files
from workpacket.rules.files import FileFact, Files
from workpacket.rules.repository import Repository
from workpacket.rules.settings import Settings, grade, settings_findings, unused_finding
from workpacket.shell.cache import RACY_NS, Cache, Result
from workpacket.shell.examining import Row, digest_of, examine_files, unreadable
from workpacket.shell.rows import load_findings
from workpacket.shell.tree import Found, look_at, read_bytes
from workpacket.text.source import Source

Summary = tuple[str, str, Mapping[str, object]]

# A document may point at a specification much longer than any document.
_REFERENCE_LIMIT = 32 * 1024 * 1024


@dataclass(slots=True)
class Checked:
    """What a check found. `extras` are the files besides the documents that the verdict rests on."""

    findings: list[Finding]
    extras: list[str]


def check(
    root: str,
    files: Sequence[tuple[Found, str]],
    *,
    whole: bool,
    cache: Cache,
    reasons: Mapping[str, Reason],
    settings: Settings,
    progress: Callable[[int, int], None],
) -> Checked:
    """Checks `files`, each with its kind. Only of a `whole` repository can documents be compared with one another."""
    findings: list[Finding] = []
    summaries: list[Summary] = []
    for (found, kind), result in zip(files, known_or_examined(root, files, cache, progress), strict=True):
        if result.findings != "[]":
            findings += load_findings(found.path, result.findings)
        if result.summary:
            summaries.append((kind, found.path, json.loads(result.summary)))
    facts = gather_files(root, wanted_files(summaries, RULES))
    findings += references(summaries, RULES, facts.files)
    if whole:
        findings += across(Repository(summaries), RULES)
    graded, unused = grade(findings, reasons, settings)
    about_settings = [
        *settings_findings(settings, reasons),
        *(unused_finding(ignore, settings) for ignore in unused if whole),
    ]
    graded += grade(about_settings, reasons, replace(settings, ignores=()))[0]
    graded.sort(key=lambda finding: finding.order)
    return Checked(graded, facts.paths)


def known_or_examined(
    root: str, files: Sequence[tuple[Found, str]], cache: Cache, progress: Callable[[int, int], None]
) -> list[Result]:
    """A result for each file: from the cache where the very same bytes were examined before."""
    digests = _digests(root, files, cache)
    keys = [(digest, found.path) for digest, (found, _) in zip(digests, files, strict=True)]
    known = cache.results(keys)
    missing = [
        (found.path, kind)
        for (found, kind), key in zip(files, keys, strict=True)
        if key not in known and not found.problem
    ]
    rows: dict[str, Row] = {}
    for row in examine_files(root, missing, lambda done: progress(done, len(missing))):
        rows[row.path] = row
    cache.remember_results((row.digest, row.path, row.findings, row.summary) for row in rows.values() if row.digest)
    cache.forget_unused(most=2 * len(files) + 10_000)
    results: list[Result] = []
    for (found, _), key in zip(files, keys, strict=True):
        if found.problem:
            row = unreadable(found.path, found.problem)
            results.append(Result(row.findings, row.summary))
        elif key in known:
            results.append(known[key])
        else:
            row = rows[found.path]
            results.append(Result(row.findings, row.summary))
    return results


def _digests(root: str, files: Sequence[tuple[Found, str]], cache: Cache) -> list[str]:
    """The digest of each file: by the stat shortcut where that is safe, else by reading."""
    known = cache.known_digests([found.path for found, _ in files])
    digests: list[str] = []
    fresh: list[tuple[str, str, str]] = []
    now = time.time_ns()
    for found, kind in files:
        state, digest = known.get(found.path, ("", ""))
        if found.problem:
            digest = ""
        elif not found.state or state != found.state:
            digest = digest_of(root, found.path, kind)
            # The file may have changed between the look and the reading: only what looks the same afterwards is kept,
            # and only if it had been at rest (see cache.RACY_NS).
            if digest and found.mtime_ns + RACY_NS < now and look_at(root, found.path).state == found.state:
                fresh.append((found.path, found.state, digest))
        digests.append(digest)
    cache.remember_files(fresh)
    return digests


@dataclass(slots=True)
class Gathered:
    files: Files
    paths: list[str]


def gather_files(root: str, wanted: Iterable[tuple[str, bool]]) -> Gathered:
    """Looks at the files that documents refer to."""
    texts: dict[str, bool] = {}
    for path, text in wanted:
        texts[path] = texts.get(path, False) or text
    facts = {path: _fact(root, path, text) for path, text in texts.items()}
    return Gathered(Files(facts), sorted(texts))


def _fact(root: str, path: str, text: bool) -> FileFact:
    full = os.path.join(root, path)
    if os.path.isdir(full):
        return FileFact("folder")
    if not os.path.exists(full):
        return FileFact("absent")
    source: Source | None = None
    if text:
        try:
            source = Source.from_bytes(path, read_bytes(root, path, _REFERENCE_LIMIT))
        except OSError:
            source = None
    return FileFact("file", source)
