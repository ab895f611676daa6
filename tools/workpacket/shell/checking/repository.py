"""`check` as the shell sees it: which files, what is already known of them, what has to be examined, what follows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from workpacket.model.lanes import LaneTable
from workpacket.model.layout import LARGEST_SPECIFICATION
from workpacket.model.reasons import Reason
from workpacket.problem import Problem
from workpacket.rules.engine import references, wanted_files
from workpacket.rules.files import FileFact, Files
from workpacket.rules.settings import CheckSettings, grade, settings_findings, unused_finding
from workpacket.shell.checking.cache import RACY_NS, Cache, Result
from workpacket.shell.checking.examining import digest_of, examine_files, load_findings, unreadable
from workpacket.shell.configuration import lanes_here
from workpacket.shell.tree import Found, link_on_the_way, look_at, read_bytes
from workpacket.text.source import Source
from workpacket.value import Value, replace

# A document may point at a specification much longer than any document.


class Checked:
    """What a check found. `extras` are the files besides the documents that the verdict rests on.

    `passing`: time alone can change it. With `rests_on_people` it rests on approvals too, even where the policy says
    nothing of them.
    """

    __slots__ = ("extras", "findings", "passing", "rests_on_people")

    def __init__(
        self, findings: list[Problem], extras: list[str], *, passing: bool = False, rests_on_people: bool = False
    ) -> None:
        self.findings = findings
        self.extras = extras
        self.passing = passing
        self.rests_on_people = rests_on_people


def check(
    root: str,
    files: Sequence[Found],
    *,
    whole: bool,
    cache: Cache,
    reasons: Mapping[str, Reason],
    settings: CheckSettings,
    progress: Callable[[int, int], None],
    now: str = "",
) -> Checked:
    """Checks `files`. Only of a `whole` repository can documents be compared with one another.

    `now` is when waivers are judged; the clock says, unless it is given.
    """
    findings: list[Problem] = []
    passing = False
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
    rests_on_people = False
    if whole:
        # Rules across files and the ledger are imported for a whole repository only.
        from workpacket.shell.checking.whole import compared

        found_across = compared(root, summaries, lanes, cache, now)
        findings += found_across.findings
        facts.paths.extend(found_across.extras)
        passing, rests_on_people = found_across.passing, found_across.rests_on_people
    graded, unused = grade(findings, reasons, settings)
    checked = {found.path for found in files}
    about_settings = [
        *settings_findings(settings, reasons),
        # Of a policy that is checked itself, the same is said already, except that its settings are not in force.
        *(fault for fault in settings.faults if fault.path not in checked or fault.code == "settings_unread"),
        *(unused_finding(ignore, settings) for ignore in unused if whole),
    ]
    graded += grade(about_settings, reasons, replace(settings, ignores=()))[0]
    graded.sort(key=lambda finding: finding.order)
    return Checked(graded, facts.paths, passing=passing, rests_on_people=rests_on_people)


def known_or_examined(
    root: str, files: Sequence[Found], cache: Cache, progress: Callable[[int, int], None], lanes: LaneTable
) -> list[Result]:
    """A result for each file: from the cache where the very same bytes were examined before, for the same lanes."""
    started = time.time_ns()
    digests = _digests(root, files, cache)
    known = cache.results([(digest + lanes.key, path) for path, digest in digests.items()])

    def key_of(found: Found) -> str:
        return digests.get(found.path, "") + lanes.key

    missing = [
        found
        for found in files
        if not found.problem and (digests.get(found.path, "") + lanes.key, found.path) not in known
    ]
    rows = {row.path: row for row in examine_files(root, missing, lambda done: progress(done, len(missing)), lanes)}
    examined = (row for row in rows.values() if row.digest)
    cache.remember_results((row.digest + lanes.key, row.path, row.findings, row.summary) for row in examined)
    digests |= {row.path: row.digest for row in rows.values() if row.digest}
    cache.remember_files(_at_rest(root, files, digests, started))
    cache.forget_unused(most=2 * len(files) + 10_000)
    results: list[Result] = []
    for found in files:
        result = known.get((key_of(found), found.path))
        if result is None:
            row = rows[found.path] if not found.problem else unreadable(found.path, found.problem)
            result = Result(row.findings, row.summary)
        results.append(result)
    return results


def _digests(root: str, files: Sequence[Found], cache: Cache) -> dict[str, str]:
    """The digests of files of which something may be known: by the stat shortcut where it is safe, else by reading."""
    if cache.is_empty:
        return {}
    known = cache.known_digests([found.path for found in files])
    digests: dict[str, str] = {}
    for found in files:
        state, digest = known.get(found.path, ("", ""))
        if found.state and state == found.state:
            digests[found.path] = digest
        elif not found.problem:
            digests[found.path] = digest_of(root, found.path, found.kind)
    return digests


def _at_rest(
    root: str, files: Sequence[Found], digests: Mapping[str, str], started: int
) -> Iterator[tuple[str, str, str]]:
    """(path, state, digest) of the files whose state may stand for their bytes from now on.

    They had been at rest before they were looked at (see cache.RACY_NS), and look the same after they were read.
    """
    for found in files:
        digest = digests.get(found.path, "")
        if digest and found.mtime_ns + RACY_NS < started and look_at(root, found.path).state == found.state:
            yield found.path, found.state, digest


class CheckInput(Value):
    files: Files
    paths: list[str]


def gather_files(root: str, wanted: Iterable[tuple[str, bool]]) -> CheckInput:
    """Looks at the files that documents refer to."""
    texts: dict[str, bool] = {}
    for path, text in wanted:
        texts[path] = texts.get(path, False) or text
    facts = {path: _fact(root, path, text) for path, text in texts.items()}
    return CheckInput(Files(facts), sorted(texts))


def _fact(root: str, path: str, text: bool) -> FileFact:
    full = os.path.join(root, path)
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
