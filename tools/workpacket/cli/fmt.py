"""`workpacket fmt`: brings documents to their canonical form and changes nothing that they say."""

from __future__ import annotations

import sys

from workpacket.cli.check import chosen_files
from workpacket.cli.checking import style_of
from workpacket.cli.fixing import refuse_unreadable, repaired, whole_change
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.workspace import open_workspace
from workpacket.documents.reading import kind_named
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.findings import Finding
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.report.catalogue import catalogue
from workpacket.report.diff import render_diff
from workpacket.report.door import escape
from workpacket.report.json_report import render_envelope
from workpacket.report.text import counted
from workpacket.rules.upgrade import upgraded
from workpacket.shell.base.policy import lanes_here
from workpacket.shell.checking.examining import examine_bytes, too_large, unreadable_finding
from workpacket.shell.checking.rows import load_findings
from workpacket.shell.transactions.writing import rewrite
from workpacket.shell.tree import Found, read_bytes, refusal
from workpacket.text.source import Source


def run(arguments: Arguments) -> int:
    workspace = open_workspace()
    codes = frozenset(catalogue())
    writes = not (arguments.flag("check") or arguments.flag("diff"))
    changed: list[tuple[Source, Source]] = []
    left_out: list[Finding] = []
    files = chosen_files(arguments, workspace)
    if writes:
        refuse_unreadable(files)
    lanes = lanes_here(workspace.root)
    for found in files:
        before = _readable(workspace.root, found)
        if isinstance(before, Finding):
            left_out.append(before)
            continue
        after = formatted(before, found.kind, codes, upgrade=arguments.flag("upgrade"), lanes=lanes)
        if after.encode() == before.encode():
            continue
        changed.append((before, after))
        if arguments.flag("diff") and not arguments.flag("json"):
            sys.stdout.write(render_diff(before, whole_change(before, after), style_of(arguments)))
    if writes:
        rewrite(workspace.root, "fmt", changed)
    return _say(arguments, [before.path for before, _ in changed], left_out, len(files), writes=writes)


def _say(arguments: Arguments, changed: list[str], left_out: list[Finding], files: int, *, writes: bool) -> int:
    status = _status(changed, left_out, files, writes=writes)
    if arguments.flag("json"):
        data: dict[str, Json] = {"changed": [*changed], "written": writes, "files": files}
        sys.stdout.write(render_envelope("fmt", status, left_out, data))
    else:
        _report(arguments, changed, left_out, files, writes=writes)
    return status


def _readable(root: str, found: Found) -> Source | Finding:
    """The document, or why it cannot be formatted: what is left out is said."""
    if found.problem:
        return unreadable_finding(found.path, found.problem)
    limit = kind_named(found.kind).limits.size
    try:
        data = read_bytes(root, found.path, limit)
    except OSError as error:
        return unreadable_finding(found.path, refusal(error))
    return Source.from_bytes(found.path, data) if len(data) <= limit else too_large(found.path, limit)


def _status(changed: list[str], left_out: list[Finding], files: int, *, writes: bool) -> int:
    if not files or left_out:
        return exits.ENVIRONMENT
    return exits.OK if writes or not changed else exits.FINDINGS


def formatted(
    source: Source, kind: str, codes: frozenset[str], *, upgrade: bool, lanes: LaneTable = BUILT_IN
) -> Source:
    """The canonical form of a document. Formatting what is formatted changes nothing."""
    if upgrade and kind == "stub":
        source = upgraded(source) or source
    row = examine_bytes(source.path, kind, source.encode(), lanes)
    return repaired(source, kind, load_findings(source.path, row.findings), codes, unsafe=False, lanes=lanes)


def _report(arguments: Arguments, changed: list[str], left_out: list[Finding], files: int, *, writes: bool) -> None:
    for finding in left_out:
        sys.stderr.write(f"error: {escape(finding.path)}: {escape(finding.message)} ({finding.code})\n")
    if not files:
        sys.stderr.write("error: no governance document found (nothing_to_check)\n")
    if not files or arguments.flag("diff"):
        return
    for path in changed:
        sys.stdout.write(f"{'formatted' if writes else 'would format'} {escape(path)}\n")
    verb = "formatted" if writes else "to be formatted"
    unchanged = files - len(changed) - len(left_out)
    sys.stdout.write(f"{counted(len(changed), 'file')} {verb}, {counted(unchanged, 'file')} unchanged\n")


COMMAND = Command(
    "fmt",
    "bring documents to their canonical form",
    run,
    arguments="[PATH...]",
    description="""
Makes every safe fix: byte order marks, line ends, old headings, field syntax, checklists. After each one the document
is read again, and unless only the intended thing changed, nothing is written.""",
    options=(
        Option("check", "change nothing; exit with 1 if something would be changed"),
        Option("diff", "change nothing; show what would be changed"),
        Option("upgrade", "rewrite stubs of the older family into the present one"),
        Option("kind", "the kind of the files named", value="KIND"),
    ),
    examples=("workpacket fmt", "workpacket fmt --check", "workpacket fmt --upgrade .GOV/task_packets/stubs"),
)
