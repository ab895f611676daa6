"""`check --fix`, `--unsafe-fixes` and `--diff`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from workpacket.errors import WorkpacketError
from workpacket.model.findings import Edit, Finding
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.report.diff import render_diff
from workpacket.report.style import Style
from workpacket.rules.repair import repair
from workpacket.shell.base.policy import lanes_here
from workpacket.shell.checking.examining import examine_bytes, unreadable_finding
from workpacket.shell.checking.rows import load_findings
from workpacket.shell.transactions.writing import rewrite
from workpacket.shell.tree import Found, read_bytes
from workpacket.text.limits import REGISTER
from workpacket.text.source import Source

# One fix may make room for another: a heading renamed, then its section read. Each round settles at least one, and up
# to as many of a kind as are listed.
_ROUNDS = 64


def fix_files(root: str, kinds: Mapping[str, str], findings: Sequence[Finding], *, unsafe: bool) -> list[str]:
    """Repairs the files that have fixable findings, and returns their paths."""
    changed: list[tuple[Source, Source]] = []
    codes = frozenset(finding.code for finding in findings)
    lanes = lanes_here(root)
    for path, group in _by_path(findings):
        before = Source.from_bytes(path, read_bytes(root, path, REGISTER.size))
        after = repaired(before, kinds[path], group, codes, unsafe=unsafe, lanes=lanes)
        if after.text != before.text or after.bom != before.bom:
            changed.append((before, after))
    rewrite(root, "check --fix", changed)
    return [before.path for before, _ in changed]


def repaired(
    source: Source,
    kind: str,
    findings: Sequence[Finding],
    codes: frozenset[str],
    *,
    unsafe: bool,
    lanes: LaneTable = BUILT_IN,
) -> Source:
    """The source with all fixes made, round after round; only findings with one of `codes` are repaired."""
    for _ in range(_ROUNDS):
        before, source = source, repair(source, kind, findings, unsafe=unsafe, lanes=lanes)
        if source is before:
            break
        row = examine_bytes(source.path, kind, source.encode(), lanes)
        findings = [finding for finding in load_findings(source.path, row.findings) if finding.code in codes]
    return source


def refuse_unreadable(files: Sequence[Found]) -> None:
    """Nothing is repaired as long as nobody knows what else there is."""
    for found in files:
        finding = unreadable_finding(found.path, found.problem)
        if finding.code == "tree_unreadable":
            raise WorkpacketError(finding.code, finding.message, hint=finding.hint, path=finding.path)


def show_fixes(root: str, kinds: Mapping[str, str], findings: Sequence[Finding], *, unsafe: bool, style: Style) -> str:
    """What the fixes would change, as one diff a file."""
    codes = frozenset(finding.code for finding in findings)
    lanes = lanes_here(root)
    shown: list[str] = []
    for path, group in _by_path(findings):
        before = Source.from_bytes(path, read_bytes(root, path, REGISTER.size))
        after = repaired(before, kinds[path], group, codes, unsafe=unsafe, lanes=lanes)
        shown.append(render_diff(before, whole_change(before, after), style))
    return "".join(shown)


def whole_change(before: Source, after: Source) -> list[Edit]:
    """One edit that makes `after` of `before`, without what is the same at both ends."""
    old, new = before.text, after.text
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return [Edit(start, len(old) - end, new[start : len(new) - end])]


def _by_path(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    fixable = sorted((finding for finding in findings if finding.fix is not None), key=lambda finding: finding.order)
    return [(path, list(group)) for path, group in groupby(fixable, key=lambda finding: finding.path)]
