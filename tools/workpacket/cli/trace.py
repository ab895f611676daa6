"""From requirement to commit: `trace`, and `impact`: what depends on a file or passage.

`workpacket audit`: report what is wrong, since when, and who must act, as text or as a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from workpacket.audit.overview import Audit, AuditFinding, BaseRow, audit
from workpacket.audit.tracing import Criterion, Trace, TracedCommit, impact, place_in
from workpacket.cli.cached_output import GarbageCollectionOff
from workpacket.cli.checking import source_lines
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.read_only import open_for_reading, show_json
from workpacket.cli.workspace import open_workspace, progress_bar
from workpacket.errors import WorkpacketError
from workpacket.git.objects import is_in_index
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.reason_tables.integrity import AUDIT_BY_CODE
from workpacket.model.wording import counted
from workpacket.report.audit_data import audit_json, packet_json, place, render_audit_markdown, render_audit_text, told
from workpacket.report.catalogue import catalogue
from workpacket.report.escape import escape, without_surrogates
from workpacket.report.json_report import render_envelope
from workpacket.report.outcome import CheckOutcome, exit_status
from workpacket.rules.packet import is_inside
from workpacket.shell.audit import AuditInput, gather_audit
from workpacket.shell.cache import Cache
from workpacket.shell.governing.execution import here
from workpacket.shell.governing.proof_process import kept_output

_SHOWN_LINES = 10

_BY_ENDING = {".html": "html", ".htm": "html", ".json": "json", ".sarif": "sarif", ".md": "markdown", ".txt": "text"}
# An earlier report is replaced; any other file of that name stays.
_MARKS = (b"<!doctype html>", b'{"workpacket"', b'{"$schema"', b"# Audit")


def _run_trace(arguments: Arguments) -> int:
    from workpacket.cli.authorship import asked_line, trace_line

    line = asked_line(arguments.words)
    if line is not None:
        return trace_line(arguments, *line)
    _, made = examine()
    names = _named(made, arguments.words)
    found = [matter for matter in made.matters if _is_doubt(matter, names, everything=not arguments.words)]
    if arguments.flag("json"):
        packets: list[Json] = [packet_json(made, name) for name in names]
        logs: dict[str, Json] = {digest: told(end) for digest, end in _logs(made, names).items()}
        return show_json(arguments, {"packets": packets, "doubts": _as_json(found), "logs": logs})
    logs_of_named = _logs(made, names if arguments.words else ())
    for name in names if arguments.words else ():
        print("\n".join(_traced(name, made, logs_of_named)))
    for matter in found:
        print(f"{place(matter)}: {matter.finding.severity}: {told(matter.finding.message)} ({matter.finding.code})")
    print(f"{counted(len(names), 'packet')} followed, {counted(len(found), 'doubt')}")
    print(f"next: {f'workpacket explain {found[0].finding.code}' if found else 'workpacket audit'}")
    return exits.OK


def _named(made: Audit, words: Sequence[str]) -> list[str]:
    """Return the given packets, with all revisions of a base; all packets if none is given."""
    packets = made.facts.packets
    for word in words:
        if not any(word in {name, packet.id.base} for name, packet in packets.items()):
            raise WorkpacketError("packet_unknown", f"packet {word} not found", hint="workpacket list shows all")
    return sorted(name for name, one in packets.items() if not words or {name, one.id.base} & set(words))


def _is_doubt(matter: AuditFinding, names: Sequence[str], *, everything: bool) -> bool:
    return matter.finding.code in AUDIT_BY_CODE and (matter.packet in names or (everything and not matter.packet))


def _as_json(matters: Sequence[AuditFinding]) -> list[Json]:
    return [
        {
            "code": one.finding.code,
            "path": without_surrogates(one.finding.path),
            "line": one.finding.line,
            "packet": one.packet,
            "message": told(one.finding.message),
        }
        for one in matters
    ]


def _logs(made: Audit, names: Sequence[str]) -> dict[str, str]:
    """Return the last output of these packets' proofs by digest, if this clone has it."""
    every = [one for name in names for criterion in made.traces[name].criteria for one in criterion.evidence]
    digests = {one.log_sha256: one.log_tail for one in every if one.log_sha256}
    repository = here()
    found = {digest: kept_output(repository, digest, old) for digest, old in digests.items()}
    return {digest: end for digest, end in found.items() if end}


def _traced(name: str, made: Audit, logs: Mapping[str, str]) -> Iterator[str]:
    traced: Trace = made.traces[name]
    yield f"{name}: {made.facts.packets[name].lane or 'without a log'}"
    for line in made.obstacles[name]:
        yield f"  ! {told(line)}"
    for anchor in traced.anchors:
        said = f" ({told(anchor.why)})" if anchor.why else ""
        lines = f"{told(anchor.path)}:{anchor.first}-{anchor.last}"
        yield f"  requirement  {told(anchor.name)} {lines}  {anchor.state}{said}"
    for criterion in traced.criteria:
        yield from _criterion(criterion, logs)
    for stray in traced.strays:
        yield f"  stray        {told(stray.what)} for {told(stray.criterion)}"
    for commit in traced.commits:
        yield f"  commit       {commit.id[:12]} {commit.role}, {_where(commit)}"


def _where(commit: TracedCommit) -> str:
    if commit.seen is None:
        return "not in this clone"
    return "on the target branch" if commit.seen.on_target else "not on the target branch"


def _criterion(criterion: Criterion, logs: Mapping[str, str]) -> Iterator[str]:
    yield f"  criterion {criterion.number}  {told(criterion.text)}"
    for each in criterion.evidence:
        doubt = f"  suspect: {told(each.suspect)}" if each.suspect else ""
        stopped = "  stopped at its time limit" if each.limit == "time" else ""
        yield f"    evidence   {each.result}: {told(each.what)}{stopped}{doubt}"
        yield from (f"      | {told(line)}" for line in _last_lines(logs.get(each.log_sha256, "")))
    if not criterion.evidence:
        yield "    evidence   none"


def _last_lines(log: str) -> list[str]:
    lines = log.rstrip("\n").split("\n") if log else []
    more = len(lines) - _SHOWN_LINES
    return [f"... {counted(more, 'line')} before", *lines[-_SHOWN_LINES:]] if more > 0 else lines


def _run_impact(arguments: Arguments) -> int:
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "expected one path or one anchor")
    _, made = examine()
    asked = arguments.words[0]
    rows = impact(made.facts, made.traces, asked)
    if not rows and not _is_there(place_in(asked)[0]):
        what = f"{told(asked)} is not a file in this repository, and no packet depends on a file or anchor of that name"
        raise WorkpacketError(
            "path_not_found", what, hint="give the path from the top of the repository, as `trace` shows it"
        )
    if arguments.flag("json"):
        listed: list[Json] = [{"packet": row.packet, "lane": row.lane, "how": told(row.how)} for row in rows]
        return show_json(arguments, {"asked": told(asked), "rests": listed})
    for row in rows:
        print(f"{row.packet}  {row.lane or '-'}  {told(row.how)}")
    names = sorted({row.packet for row in rows})
    verb = "rests" if len(names) == 1 else "rest"
    print(f"{counted(len(names), 'packet')} {verb} on {told(asked)}")
    print(f"next: {f'workpacket trace {names[0]}' if names else 'workpacket trace'}")
    return exits.OK


def _is_there(path: str) -> bool:
    """Whether the path is in the work tree or in the index."""
    repository = here()
    return is_inside(path) and (os.path.lexists(repository.root / path) or is_in_index(repository, path))


def audit_registry(arguments: Arguments) -> int:
    _, made = examine()
    if arguments.flag("json"):
        return show_json(arguments, {"bases": audit_json(made)["bases"]})
    for row in made.bases:
        print("\n".join(_base(row)))
    print(f"{counted(len(made.bases), 'base')}")
    print("next: workpacket trace")
    return exits.OK


def _base(row: BaseRow) -> Iterator[str]:
    yield f"{row.base}: {row.active or 'it is unclear which is in force'} {row.lane}".rstrip()
    if len(row.revisions) > 1:
        yield f"  revisions  {', '.join(f'{name} ({lane or chr(45)})' for name, lane in row.revisions)}"
    for later, earlier in row.lineage:
        yield f"  lineage {told(later)} replaced {earlier}"
    yield f"  approvals  {row.approvals}; criteria proved {row.proved} of {row.criteria}"
    if row.commits:
        yield f"  commits    {', '.join(commit[:12] for commit in row.commits)}"


_TRACE = Command(
    "trace",
    _run_trace,
    arguments="[WP_ID|BASE...|PATH:LINE]",
    description="""
Without an id, traces all packets, and lists missing links: requirements without a packet, packets without a
requirement, criteria without evidence, evidence without a criterion. A link is suspect if its target has changed since.
The end of a proof's output is shown only in the clone in which it was run.

With PATH:LINE, shows the commit that wrote the line, its packets (by their logs and by its trailers), their contract,
who approved and judged it, and the declared harness and model. If nothing is declared, the answer is `undeclared`.""",
    examples=("workpacket trace", "workpacket trace WP-1-Parser-v1", "workpacket trace src/parser.py:40"),
)


_IMPACT = Command(
    "impact",
    _run_impact,
    arguments="PATH|PATH:LINE|ANCHOR",
    examples=(
        "workpacket trace impact src/parser.py",
        "workpacket trace impact Spec_v1.md:120",
        "workpacket trace impact 'Spec_v1.md 4.2 Parser'",
    ),
)


def examine() -> tuple[AuditInput, Audit]:
    """Return the facts about this repository, and the audit based on them."""
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
    """Return the requested format, or else the one that the file name implies, or else text."""
    if arguments.flag("json"):
        if arguments.flag("format") and arguments.value("format") != "json":
            raise usage(arguments.command, "conflicting_options", "--format and --json exclude each other")
        return "json"
    ending = os.path.splitext(target)[1].lower()
    if arguments.flag("format"):
        return arguments.value("format")
    if target and ending not in _BY_ENDING:
        known = ", ".join(_BY_ENDING)
        raise usage(
            arguments.command, "invalid_value", f"the name {target!r} does not end in one of {known}; use --format"
        )
    return _BY_ENDING.get(ending, "text")


def _rendered(form: str, made: Audit, outcome: CheckOutcome, status: int) -> str:
    if form == "html":
        from workpacket.report.audit_page import PageFiles, render_audit_page
        from workpacket.shell.audit import page_file

        return render_audit_page(made, catalogue(), PageFiles(page_file("audit.css"), page_file("audit.js")))
    if form == "sarif":
        from workpacket.report.ci import render_sarif

        return render_sarif(outcome, catalogue(), status)
    if form == "json":
        return render_envelope("audit", status, outcome.findings, audit_json(made))
    return render_audit_markdown(made, catalogue()) if form == "markdown" else render_audit_text(made, catalogue())


def _write(target: str, data: bytes) -> None:
    """Write the report to a temporary file first, so that it is never incomplete."""
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


AUDIT = Command(
    "audit",
    run,
    description="""
Applies every rule, verifies every signature and the log, traces every packet from requirement to commit, and reports
every problem. With --out the report is written to a file, in the format of its extension: .html, .json, .sarif or .md.
The HTML page needs neither a network nor other files. The clock is ignored: expiry is judged as of the head commit, so
the same repository always produces the same bytes. The exit statuses are those of `check`.""",
    options=(
        Option("format", "the format of the report", choices=FORMATS),
        Option("out", "write the report to this file, replacing an earlier one", value="FILE"),
    ),
    examples=(
        "workpacket audit",
        "workpacket audit --out audit.html",
        "workpacket audit --format sarif > audit.sarif",
    ),
)

DECLARED: Final = {command.name: command for command in (_TRACE, _IMPACT, AUDIT)}
