"""`workpacket audit`: what is wrong, since when, and who must act; as text, or as a report to keep."""

from __future__ import annotations

import os
import sys

from workpacket.audit.overview import Audit, audit
from workpacket.cli.cached_output import GarbageCollectionOff
from workpacket.cli.checking import source_lines
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.progress import progress_bar
from workpacket.cli.read_only import open_for_reading
from workpacket.cli.workspace import open_workspace
from workpacket.errors import WorkpacketError
from workpacket.report.audit_data import audit_json
from workpacket.report.audit_text import render_audit_markdown, render_audit_text
from workpacket.report.catalogue import catalogue
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.report.outcome import CheckOutcome, exit_status
from workpacket.shell.audit import AuditInput, gather_audit
from workpacket.shell.cache import Cache

_BY_ENDING = {".html": "html", ".htm": "html", ".json": "json", ".sarif": "sarif", ".md": "markdown", ".txt": "text"}
# An earlier report is replaced; anything else that has the name stays.
_MARKS = (b"<!doctype html>", b'{"workpacket"', b'{"$schema"', b"# Audit")


def examine() -> tuple[AuditInput, Audit]:
    """The facts about this repository, and the audit based on them."""
    repository = open_for_reading()
    workspace = open_workspace()
    cache = Cache(workspace.common_dir, workspace.fingerprint)
    try:
        gathered = gather_audit(repository, cache, catalogue(), progress_bar())
    finally:
        cache.close()
    return gathered, audit(gathered.facts, gathered.governed, catalogue())


def report(arguments: Arguments) -> int:
    with GarbageCollectionOff():
        return _report(arguments)


def _report(arguments: Arguments) -> int:
    target = arguments.value("out")
    form = _form(arguments, target)
    gathered, made = examine()
    outcome = CheckOutcome(
        tuple(matter.finding for matter in made.matters),
        gathered.files,
        source_line=source_lines(str(open_for_reading().root)),
    )
    status = exit_status(outcome, catalogue())
    text = _rendered(form, made, outcome, status)
    if not target:
        sys.stdout.write(text)
        return status
    _write(target, text.encode("utf-8"))
    sys.stdout.write(f"{render_audit_text(made, catalogue()).partition(chr(10))[0]}\nwritten: {escape(target)}\n")
    return status


def _form(arguments: Arguments, target: str) -> str:
    """The requested format, otherwise the one of the file name, otherwise text."""
    if arguments.flag("json"):
        if arguments.flag("format") and arguments.value("format") != "json":
            raise usage(arguments.command, "conflicting_options", "--format and --json exclude each other")
        return "json"
    ending = os.path.splitext(target)[1].lower()
    if arguments.flag("format"):
        return arguments.value("format")
    if target and ending not in _BY_ENDING:
        known = ", ".join(_BY_ENDING)
        raise usage(arguments.command, "invalid_value", f"{target!r} does not end in one of {known}; use --format")
    return _BY_ENDING.get(ending, "text")


def _rendered(form: str, made: Audit, outcome: CheckOutcome, status: int) -> str:
    if form == "html":
        from workpacket.report.audit_page import PageFiles, render_audit_page
        from workpacket.shell.audit import page_file

        return render_audit_page(made, catalogue(), PageFiles(page_file("audit.css"), page_file("audit.js")))
    if form == "sarif":
        from workpacket.report.sarif import render_sarif

        return render_sarif(outcome, catalogue(), status)
    if form == "json":
        return render_envelope("audit", status, outcome.findings, audit_json(made))
    return render_audit_markdown(made, catalogue()) if form == "markdown" else render_audit_text(made, catalogue())


def _write(target: str, data: bytes) -> None:
    """Writes a temporary file first, so that the report is never incomplete."""
    try:
        if os.path.lexists(target) and not _is_report(target):
            raise WorkpacketError(
                "file_unwritable",
                f"{target} exists and is not an audit report; it was not overwritten",
                path=target,
                hint="name another file, or remove the old one",
            )
        beside = f"{target}.{os.getpid()}.new"
        with open(beside, "xb") as file:
            file.write(data)
        os.replace(beside, target)
    except OSError as error:
        raise WorkpacketError("file_unwritable", f"{target}: {error.strerror}", path=target) from error


def _is_report(target: str) -> bool:
    if os.path.islink(target) or not os.path.isfile(target):
        return False
    with open(target, "rb") as file:
        return file.read(64).startswith(_MARKS)


FORMATS = ("text", "html", "json", "sarif", "markdown")


def run(arguments: Arguments) -> int:

    return report(arguments)


COMMAND = Command(
    "audit",
    run,
    description="""
Applies every rule, verifies every signature and the log, follows every packet from requirement to commit, and reports
what does not hold. With --out the report is written into a file, in the form that its ending says: .html, .json,
.sarif or .md. The page needs no network and no other file. The clock is not looked at: what expires is judged as of
the head commit, so the same repository gives the same bytes. Exits as `check` does.""",
    options=(
        Option("format", "the format of the report", choices=FORMATS),
        Option("out", "write it to this file, replacing an earlier report", value="FILE"),
    ),
    examples=(
        "workpacket audit",
        "workpacket audit --out audit.html",
        "workpacket audit --format sarif > audit.sarif",
    ),
)
