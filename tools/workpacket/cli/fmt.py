"""`workpacket fmt`: rewrite documents in their canonical form without changing their content.

Also `check --fix`, `--unsafe-fixes` and `--diff`, and the repairs of `fmt`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from workpacket.cli.check import chosen_files
from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.workspace import open_workspace
from workpacket.documents.document import kind_named
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.model.wording import counted
from workpacket.problem import Edit, Location, Problem, WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.diff import render_diff
from workpacket.report.json_report import render_envelope
from workpacket.report.outcome import Repaired
from workpacket.report.terminal import Style, escape
from workpacket.rules.repair import RepairRefused, repair, upgraded
from workpacket.shell.checking import examine_bytes, load_findings, too_large, unreadable_finding
from workpacket.shell.configuration import lanes_here
from workpacket.shell.transactions.transaction import rewrite
from workpacket.shell.tree import Found, read_bytes, refusal
from workpacket.text.source import REGISTER, Source

# One fix may make another possible: once a heading is renamed, its section is read. Each round applies at least one
# fix; the number of rounds is limited.
_ROUNDS = 64


def run(arguments: Arguments) -> int:
    workspace = open_workspace()
    codes = frozenset(catalogue())
    writes = not (arguments.flag("check") or arguments.flag("diff"))
    repairs = nothing_yet()
    upgrades: list[str] = []
    try:
        files = chosen_files(arguments, workspace)
    except WorkpacketError as nothing:
        # A hook names the files of a commit; guides and templates of the governance folder have no canonical form.
        named = [workspace.relative(word) for word in arguments.words]
        if nothing.code != "nothing_to_check" or not all(one.startswith(f"{GOVERNANCE_FOLDER}/") for one in named):
            raise
        return _say(arguments, repairs, upgrades, len(named), writes=writes)
    if writes:
        refuse_unreadable(files)
    lanes = lanes_here(workspace.root)
    for found in files:
        before = _readable(workspace.root, found)
        if isinstance(before, Problem):
            repairs.refused.append(before)
            continue
        try:
            done = formatted(before, found.kind, codes, upgrade=arguments.flag("upgrade"), lanes=lanes)
        except RepairRefused as refused:
            repairs.refused.append(refusal_of(found.path, refused))
            continue
        after = done.source
        if after.encode() == before.encode():
            continue
        repairs.changed.append((before, after))
        repairs.codes.update(done.codes)
        upgrades += [found.path] if done.upgraded else []
        if arguments.flag("diff") and not arguments.flag("json"):
            sys.stdout.write(render_diff(before, whole_change(before, after), style_of(arguments)))
    if writes:
        rewrite(workspace.root, "fmt", repairs.changed)
    return _say(arguments, repairs, upgrades, len(files), writes=writes)


def _say(arguments: Arguments, repairs: Repairs, upgrades: list[str], files: int, *, writes: bool) -> int:
    changed = [before.path for before, _ in repairs.changed]
    status = _status(changed, repairs.refused, files, writes=writes)
    if arguments.flag("json"):
        data: dict[str, Json] = {"changed": [*changed], "written": writes, "files": files}
        data |= {"repaired": dict(sorted(repairs.codes.items())), "upgraded": [*upgrades]}
        sys.stdout.write(render_envelope("fmt", status, repairs.refused, data))
    else:
        _report(arguments, repairs, upgrades, files, writes=writes)
    return status


def _readable(root: str, found: Found) -> Source | Problem:
    """Return the document, or a problem to report if it cannot be formatted."""
    if found.problem:
        return unreadable_finding(found.path, found.problem)
    limit = kind_named(found.kind).limits.size
    try:
        data = read_bytes(root, found.path, limit)
    except OSError as error:
        return unreadable_finding(found.path, refusal(error))
    return Source.from_bytes(found.path, data) if len(data) <= limit else too_large(found.path, limit)


def _status(changed: list[str], left_out: list[Problem], files: int, *, writes: bool) -> int:
    if not files or left_out:
        return exits.ENVIRONMENT
    return exits.OK if writes or not changed else exits.FINDINGS


class Formatted(NamedTuple):
    """A document in its canonical form, the number of fixes per code, and whether it was an older stub."""

    source: Source
    codes: Counter[str]
    upgraded: bool


def formatted(
    source: Source, kind: str, codes: frozenset[str], *, upgrade: bool, lanes: LaneTable = BUILT_IN
) -> Formatted:
    """Return the canonical form of a document. Formatting a formatted document changes nothing."""
    present = upgraded(source) if upgrade and kind == "stub" else None
    source = present or source
    row = examine_bytes(source.path, kind, source.encode(), lanes)
    found = load_findings(source.path, row.findings)
    return Formatted(*repaired(source, kind, found, codes, unsafe=False, lanes=lanes), present is not None)


def _report(arguments: Arguments, repairs: Repairs, upgrades: list[str], files: int, *, writes: bool) -> None:
    changed = [before.path for before, _ in repairs.changed]
    for finding in repairs.refused:
        sys.stderr.write(f"error: {escape(finding.path)}: {escape(finding.message)} ({finding.code})\n")
    if not files:
        sys.stderr.write("error: no governance documents found (nothing_to_check)\n")
    if not files or arguments.flag("diff"):
        return
    for path in changed:
        sys.stdout.write(f"{'formatted' if writes else 'would format'} {escape(path)}\n")
    if repairs.codes:
        sys.stdout.write(f"{repairs.told('repaired' if writes else 'would repair')}\n")
    if upgrades:
        sys.stdout.write(f"{'upgraded' if writes else 'would upgrade'} {counted(len(upgrades), 'older stub')}\n")
    verb = "formatted" if writes else "would be formatted"
    unchanged = files - len(changed) - len(repairs.refused)
    sys.stdout.write(f"{counted(len(changed), 'file')} {verb}, {counted(unchanged, 'file')} unchanged\n")


COMMAND = Command(
    "fmt",
    run,
    arguments="[PATH...]",
    description="""
Applies every safe fix: byte order marks, line ends, old headings, field syntax, checklists. After each fix the document
is read again, also by independent parsers. If more than the intended part changed, the file is reported and not
written; the others are still formatted.

With `--upgrade`, stubs of the older family are rewritten in the current form. Every line is carried over; missing
information is left open as `<fill in>`, which `check` reports.""",
    options=(
        Option("check", "change nothing; exit with 1 if something would be changed"),
        Option("diff", "change nothing; show what would be changed"),
        Option("upgrade", "convert stubs in the older form to the current form"),
        Option("kind", "the document kind of the given files", value="KIND"),
    ),
    examples=("workpacket fmt", "workpacket fmt --check", "workpacket fmt --upgrade .GOV/task_packets/stubs"),
)


class Repairs(NamedTuple):
    """The applied fixes: each file before and after, the number of fixes per code, and the refused files."""

    changed: list[tuple[Source, Source]]
    codes: Counter[str]
    refused: list[Problem]

    def told(self, verb: str = "repaired") -> str:
        """Return a line such as `repaired 3 old_heading, 1 line_ends in 2 files`."""
        if not self.codes:
            return f"{verb} nothing"
        by_code = ", ".join(f"{count} {code}" for code, count in sorted(self.codes.items()))
        return f"{verb} {by_code} in {counted(len(self.changed), 'file')}"

    def done(self) -> Repaired:
        """Return the counts as data for a report."""
        return Repaired(tuple(before.path for before, _ in self.changed), dict(sorted(self.codes.items())))


def nothing_yet() -> Repairs:
    return Repairs([], Counter(), [])


def fix_files(root: str, kinds: Mapping[str, str], findings: Sequence[Problem], *, unsafe: bool) -> Repairs:
    """Fix the files that have fixable findings. A refused file remains unchanged, and the others are still fixed."""
    repairs = _repaired_files(root, kinds, findings, unsafe=unsafe)
    rewrite(root, "check --fix", repairs.changed)
    return repairs


def show_fixes(
    root: str, kinds: Mapping[str, str], findings: Sequence[Problem], *, unsafe: bool, style: Style
) -> tuple[str, list[Problem]]:
    """Return the changes that the fixes would make, as one diff per file, and the files that would be refused."""
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
    """Return the source after all rounds of fixes, and the number of fixes per code; only `codes` are fixed.

    Raises RepairRefused if a fix would change more than its finding covers; in that case, no fix may be applied.
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
    """Refuse to fix files that can be read only in part."""
    for found in files:
        finding = unreadable_finding(found.path, found.problem)
        if finding.code == "tree_unreadable":
            raise WorkpacketError(finding.code, finding.message, hint=finding.hint, path=finding.path)


def refusal_of(path: str, refused: RepairRefused) -> Problem:
    """Return the finding for a file that a fix would have changed too much."""
    message = f"not fixed, and nothing was written: {refused}"
    return Problem("repair_refused", message, Location(path), catalogue()["repair_refused"].remedy)


def whole_change(before: Source, after: Source) -> list[Edit]:
    """Return one edit that turns `before` into `after`, leaving out their common start and end."""
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
