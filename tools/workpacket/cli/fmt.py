"""`workpacket fmt`: brings documents to their canonical form and changes nothing that they say."""

from __future__ import annotations

import sys

from workpacket.cli.check import chosen_files
from workpacket.cli.checking import style_of
from workpacket.cli.fixing import repaired, whole_change
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.workspace import open_workspace
from workpacket.documents.reading import kind_named
from workpacket.model import exits
from workpacket.report.catalogue import catalogue
from workpacket.report.diff import render_diff
from workpacket.report.text import counted
from workpacket.rules.upgrade import upgraded
from workpacket.shell.examining import examine_bytes
from workpacket.shell.rows import load_findings
from workpacket.shell.tree import read_bytes
from workpacket.shell.writing import rewrite
from workpacket.text.source import Source


def run(arguments: Arguments) -> int:
    workspace = open_workspace()
    codes = frozenset(catalogue())
    writes = not (arguments.flag("check") or arguments.flag("diff"))
    changed: list[tuple[Source, Source]] = []
    files = [found for found in chosen_files(arguments, workspace) if not found.problem]
    for found in files:
        kind = found.kind
        before = Source.from_bytes(found.path, read_bytes(workspace.root, found.path, kind_named(kind).limits.size))
        after = formatted(before, kind, codes, upgrade=arguments.flag("upgrade"))
        if after.encode() == before.encode():
            continue
        changed.append((before, after))
        if arguments.flag("diff"):
            sys.stdout.write(render_diff(before, whole_change(before, after), style_of(arguments)))
    if writes:
        rewrite(workspace.root, "fmt", changed)
    return _report(arguments, [before.path for before, _ in changed], len(files), writes=writes)


def formatted(source: Source, kind: str, codes: frozenset[str], *, upgrade: bool) -> Source:
    """The canonical form of a document. Formatting what is formatted changes nothing."""
    if upgrade and kind == "stub":
        source = upgraded(source) or source
    row = examine_bytes(source.path, kind, source.encode())
    return repaired(source, kind, load_findings(source.path, row.findings), codes, unsafe=False)


def _report(arguments: Arguments, changed: list[str], files: int, *, writes: bool) -> int:
    if not files:
        sys.stderr.write("error: no governance document found (nothing_to_check)\n")
        return exits.ENVIRONMENT
    if arguments.flag("diff"):
        return exits.FINDINGS if changed else exits.OK
    for path in changed:
        sys.stdout.write(f"{'formatted' if writes else 'would format'} {path}\n")
    verb = "formatted" if writes else "to be formatted"
    sys.stdout.write(f"{counted(len(changed), 'file')} {verb}, {counted(files - len(changed), 'file')} unchanged\n")
    return exits.OK if writes or not changed else exits.FINDINGS


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
