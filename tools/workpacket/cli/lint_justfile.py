"""`workpacket lint-justfile`: parameters that a justfile pastes into a command line."""

from __future__ import annotations

import os
import sys

from workpacket.cli.options import Arguments, Command
from workpacket.errors import WorkpacketError
from workpacket.model import exits
from workpacket.report.door import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.checking.examining import as_finding
from workpacket.text.justfile import pasted_parameters
from workpacket.text.limits import MARKDOWN
from workpacket.text.source import Source


def run(arguments: Arguments) -> int:
    findings = []
    for path in arguments.words or ["justfile"]:
        source = _read(path)
        findings += [as_finding(source, fault) for fault in pasted_parameters(source)]
    status = exits.FINDINGS if findings else exits.OK
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("lint-justfile", status, findings, {}))
        return status
    for one in findings:
        print(f"{escape(one.path)}:{one.line}:{one.column}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint)}")
    print(f"{len(findings)} parameters are pasted")
    print(f"next: {'workpacket explain just_parameter_pasted' if findings else 'just --list'}")
    return status


def _read(path: str) -> Source:
    try:
        with open(path, "rb") as stream:
            data = stream.read(MARKDOWN.size + 1)
    except OSError as error:
        raise WorkpacketError("path_not_found", f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MARKDOWN.size:
        raise WorkpacketError("limit_size", f"{path} is larger than {MARKDOWN.size:,} bytes")
    return Source.from_bytes(path.replace(os.sep, "/"), data)


COMMAND = Command(
    "lint-justfile",
    "find parameters that a justfile pastes into a command line",
    run,
    arguments="[FILE...]",
    description="Without a file, the justfile of the current folder.",
    examples=("workpacket lint-justfile", "workpacket lint-justfile .GOV/gov.just"),
)
