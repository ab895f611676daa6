"""Known findings, which `check` does not report: `.GOV/policy/baseline.json`.

A repository that adopts the tool has findings that no one will fix this week. `check --baseline` records them, and from
then on only new ones are reported. A finding is recognized by its file, its code and the text of its line, so that it
remains known when lines move, and is new when the line changes.

Findings about approvals, the log and contracts are never recorded: they are claims to verify, not habits to tolerate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from workpacket.model.layout import BASELINE_PATH
from workpacket.model.reasons import Reason
from workpacket.problem import Location, Problem
from workpacket.rules.engine import rules_in
from workpacket.text.json_strict import load_json
from workpacket.text.schema import SchemaSet
from workpacket.text.source import DATA, Source

VERSION = 1
_RECORDABLE = frozenset({"text", "document", "cross-file"})
_DIGITS = 16

SourceLine: TypeAlias = Callable[[str, int], "str | None"]


class KnownPlace(NamedTuple):
    """What identifies a known finding. `line` is the digest of the line's text, or '' for a finding about the file."""

    path: str
    code: str
    line: str


# The number of known findings for each place.
Baseline: TypeAlias = Mapping[KnownPlace, int]


class ComparedWithBaseline(NamedTuple):
    """The findings that the baseline does not contain, the number of findings that it contains, and its entries that
    matched nothing.
    """

    new: list[Problem]
    known: int
    gone: Counter[KnownPlace]


def read_baseline(data: bytes | None, schemas: SchemaSet) -> Baseline | Problem:
    """Return the baseline in a file, empty without one; a problem if the file is not a baseline."""
    if data is None:
        return {}
    if len(data) > DATA.size:
        return _unread(f"it is larger than {DATA.size:,} bytes")
    source = Source.from_bytes(BASELINE_PATH, data)
    loaded = load_json(source)
    if loaded.root is None:
        return _unread(loaded.faults[0].message)
    violation = next(iter(schemas.violations("baseline", loaded.root.plain())), None)
    if violation is not None:
        return _unread(violation.message)
    known: Counter[KnownPlace] = Counter()
    for entry in loaded.root.items_at("findings"):
        count = entry.get("count")
        place = KnownPlace(entry.string_at("path"), entry.string_at("code"), entry.string_at("line"))
        known[place] += count.value if count is not None and isinstance(count.value, int) else 0
    return known


def recorded(findings: Iterable[Problem], reasons: Mapping[str, Reason], line: SourceLine) -> Counter[KnownPlace]:
    """Return the baseline of these findings, without those that cannot be recorded."""
    against_log = _against_log()
    return Counter(_place(finding, line) for finding in findings if _recordable(reasons[finding.code], against_log))


def compare(
    findings: Sequence[Problem], known: Baseline, reasons: Mapping[str, Reason], line: SourceLine
) -> ComparedWithBaseline:
    """Separate new findings from known ones. If a line has more findings of a code than the baseline, the surplus ones
    are new.
    """
    if not known:
        return ComparedWithBaseline([*findings], 0, Counter())
    against_log = _against_log()
    left = Counter(known)
    new: list[Problem] = []
    for finding in findings:
        place = _place(finding, line)
        if left[place] > 0 and _recordable(reasons[finding.code], against_log):
            left[place] -= 1
        else:
            new.append(finding)
    return ComparedWithBaseline(new, len(findings) - len(new), +left)


def baseline_text(known: Baseline) -> str:
    """Return the file, with one line for each entry, so that git can merge removals on two branches."""
    rows = (
        json.dumps({"path": place.path, "code": place.code, "line": place.line, "count": count}, ensure_ascii=False)
        for place, count in sorted(known.items())
        if count > 0
    )
    entries = ",\n".join(f"    {row}" for row in rows)
    findings = f"[\n{entries}\n  ]" if entries else "[]"
    return f'{{\n  "version": {VERSION},\n  "findings": {findings}\n}}\n'


def _place(finding: Problem, line: SourceLine) -> KnownPlace:
    text = line(finding.path, finding.line) if finding.line else None
    return KnownPlace(finding.path, finding.code, _digest(text) if text is not None else "")


def _digest(text: str) -> str:
    return sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _recordable(reason: Reason, against_log: frozenset[str]) -> bool:
    return reason.ignorable and reason.family in _RECORDABLE and reason.code not in against_log


def _against_log() -> frozenset[str]:
    """Return the codes of the rules that compare documents with the log."""
    return frozenset(rule.code() for rule in rules_in("drift"))


def _unread(why: str) -> Problem:
    return Problem("baseline_unread", f"its entries are not applied: {why}", Location(BASELINE_PATH))
