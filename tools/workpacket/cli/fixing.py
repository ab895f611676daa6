"""`check --fix`, `--unsafe-fixes` and `--diff`, and the repairs of `fmt`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from workpacket.errors import WorkpacketError
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.model.wording import counted
from workpacket.problem import Edit, Location, Problem
from workpacket.report.catalogue import catalogue
from workpacket.report.diff import render_diff
from workpacket.report.outcome import Repaired
from workpacket.report.terminal import Style
from workpacket.rules.repair import RepairRefused, repair
from workpacket.shell.checking.examining import examine_bytes, load_findings, unreadable_finding
from workpacket.shell.configuration import lanes_here
from workpacket.shell.transactions.transaction import rewrite
from workpacket.shell.tree import Found, read_bytes
from workpacket.text.limits import REGISTER
from workpacket.text.source import Source

# One fix may make room for another: a heading renamed, then its section read. Each round settles at least one, and up
# to as many of a kind as are listed.
_ROUNDS = 64


class Repairs(NamedTuple):
    """What was fixed: each file before and after, the count per code, and the refused files."""

    changed: list[tuple[Source, Source]]
    codes: Counter[str]
    refused: list[Problem]

    def told(self, verb: str = "repaired") -> str:
        """`repaired 3 old_heading, 1 line_ends in 2 files`."""
        if not self.codes:
            return f"{verb} nothing"
        by_code = ", ".join(f"{count} {code}" for code, count in sorted(self.codes.items()))
        return f"{verb} {by_code} in {counted(len(self.changed), 'file')}"

    def done(self) -> Repaired:
        """The same for a report."""
        return Repaired(tuple(before.path for before, _ in self.changed), dict(sorted(self.codes.items())))


def nothing_yet() -> Repairs:
    return Repairs([], Counter(), [])


def fix_files(root: str, kinds: Mapping[str, str], findings: Sequence[Problem], *, unsafe: bool) -> Repairs:
    """Fixes the files that have fixable findings. A refused file stays unchanged, and the others are still fixed."""
    repairs = _repaired_files(root, kinds, findings, unsafe=unsafe)
    rewrite(root, "check --fix", repairs.changed)
    return repairs


def show_fixes(
    root: str, kinds: Mapping[str, str], findings: Sequence[Problem], *, unsafe: bool, style: Style
) -> tuple[str, list[Problem]]:
    """What the fixes would change, as one diff per file, and the files that would be refused."""
    repairs = _repaired_files(root, kinds, findings, unsafe=unsafe)
    shown = [render_diff(before, whole_change(before, after), style) for before, after in repairs.changed]
    return "".join(shown), repairs.refused


def _repaired_files(root: str, kinds: Mapping[str, str], findings: Sequence[Problem], *, unsafe: bool) -> Repairs:
    codes = frozenset(finding.code for finding in findings)
    lanes = lanes_here(root)
    repairs = nothing_yet()
    for path, group in _by_path(findings):
        before = Source.from_bytes(path, read_bytes(root, path, REGISTER.size))
        try:
            after, made = repaired(before, kinds[path], group, codes, unsafe=unsafe, lanes=lanes)
        except RepairRefused as refused:
            repairs.refused.append(refusal_of(path, refused))
            continue
        if after.text != before.text or after.bom != before.bom:
            repairs.changed.append((before, after))
            repairs.codes.update(made)
    return repairs


def repaired(
    source: Source,
    kind: str,
    findings: Sequence[Problem],
    codes: frozenset[str],
    *,
    unsafe: bool,
    lanes: LaneTable = BUILT_IN,
) -> tuple[Source, Counter[str]]:
    """The source with all fixes applied, round after round, and the count per code; only `codes` are fixed.
    `RepairRefused` if a fix would change more than its finding names; then no fix may be applied.
    """
    made: Counter[str] = Counter()
    for _ in range(_ROUNDS):
        before = source
        source, settled = repair(source, kind, findings, unsafe=unsafe, lanes=lanes)
        if source is before:
            break
        made.update(finding.code for finding in settled)
        row = examine_bytes(source.path, kind, source.encode(), lanes)
        findings = [finding for finding in load_findings(source.path, row.findings) if finding.code in codes]
    return source, made


def refuse_unreadable(files: Sequence[Found]) -> None:
    """Nothing is fixed while parts of the file cannot be read."""
    for found in files:
        finding = unreadable_finding(found.path, found.problem)
        if finding.code == "tree_unreadable":
            raise WorkpacketError(finding.code, finding.message, hint=finding.hint, path=finding.path)


def refusal_of(path: str, refused: RepairRefused) -> Problem:
    """The finding for a file that a fix would have changed too much."""
    message = f"not fixed, nothing was written: {refused}"
    return Problem("repair_refused", message, Location(path), catalogue()["repair_refused"].remedy)


def whole_change(before: Source, after: Source) -> list[Edit]:
    """One edit that turns `before` into `after`, without the common start and end."""
    old, new = before.text, after.text
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return [Edit(start, len(old) - end, new[start : len(new) - end])]


def _by_path(findings: Sequence[Problem]) -> list[tuple[str, list[Problem]]]:
    fixable = sorted((finding for finding in findings if finding.fix is not None), key=lambda finding: finding.order)
    return [(path, list(group)) for path, group in groupby(fixable, key=lambda finding: finding.path)]
