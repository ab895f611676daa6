"""`workpacket merge-driver`: what git calls to merge board, registry and packets."""

from __future__ import annotations

import sys
from pathlib import Path

from workpacket.cli.options import Arguments, Command, usage
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.governing.execution import here
from workpacket.shell.governing.merge_driver import merge

# What git itself uses where it says nothing else.
_MARKER = 7


def run(arguments: Arguments) -> int:
    words = arguments.words
    if len(words) not in {4, 5} or not (words[4:] or ["7"])[0].isdecimal():
        raise usage(arguments.command, "missing_argument", "git gives it the words %O %A %B %P %L")
    base, ours, theirs, path = words[:4]
    versions = (Path(base).read_bytes(), Path(ours).read_bytes(), Path(theirs).read_bytes())
    merged = merge(here(), path, versions, int(words[4]) if words[4:] else _MARKER)
    # Git has made this file for us alone, and takes from it what the merge came to.
    Path(ours).write_bytes(merged.data)
    status = exits.FINDINGS if merged.contradicts else exits.OK
    if arguments.flag("json"):
        data: dict[str, Json] = {"path": path, "contradicts": merged.contradicts, "doubt": merged.doubt or ""}
        sys.stdout.write(render_envelope("merge-driver", status, [], data))
        return status
    if merged.doubt:
        sys.stderr.write(f"workpacket: {escape(path)}: merged without the log: {escape(merged.doubt)}\n")
        sys.stderr.write("next: workpacket board sync\n")
    return status


COMMAND = Command(
    "merge-driver",
    "merge two versions of board, registry or packet for git, from the log of both sides",
    run,
    arguments="BASE OURS THEIRS PATH [MARKER_SIZE]",
    description="""
Git calls it, when `.GOV/.gitattributes` says `merge=workpacket` and the clone has once been told what that is:

    git config merge.workpacket.driver 'workpacket merge-driver %O %A %B %P %L'

Where entries stand comes from the log of both sides; the words of both owners are kept. Without it git merges these
files like any other, and `workpacket board sync` settles what came of that.""",
    examples=("git config merge.workpacket.driver 'workpacket merge-driver %O %A %B %P %L'",),
)
