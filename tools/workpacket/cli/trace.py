"""From requirement to commit: `trace`, and `trace impact` for what depends on a file or passage.

Who wrote a change: `trace trailers` for commits, and `trace PATH:LINE`.

`workpacket audit`: report what is wrong, since when, and who must act, as text or in a file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from workpacket.audit.overview import Audit, AuditFinding, Auditor, BaseRow
from workpacket.audit.packet_row import AuditedPacket
from workpacket.audit.tracing import Criterion, Rests, TracedCommit, impact, place_in
from workpacket.cli.checking import source_lines
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import DECLARING, declared
from workpacket.cli.read_only import all_facts, open_for_reading, show_json
from workpacket.cli.workspace import open_workspace, progress_bar
from workpacket.documents.spec_pointer import passages_named
from workpacket.git.objects import is_in_index
from workpacket.git.repository import branch_here
from workpacket.lifecycle.authorship import FIELDS, UNDECLARED, Declared, trailers
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import whose_branch
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.reason_tables.integrity import AUDIT_BY_CODE
from workpacket.model.wording import counted
from workpacket.problem import WorkpacketError
from workpacket.report.audit_data import (
    PacketTexts,
    audit_json,
    bases_json,
    place,
    render_audit_markdown,
    render_audit_text,
    told,
)
from workpacket.report.audit_page import PageFiles, inert, render_audit_page
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import encode_readable, render_envelope
from workpacket.report.outcome import CheckOutcome, exit_status
from workpacket.report.terminal import escape, without_surrogates
from workpacket.rules.packet_evidence import is_inside
from workpacket.shell.audit import AuditInput, gather_audit, page_file
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.execution import here
from workpacket.shell.governing.proof_process import kept_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.git.repository import Repository
    from workpacket.lifecycle.authorship import Assistance
    from workpacket.shell.work_done import LineOrigin


_SHOWN_LINES = 10

_BY_ENDING = {".html": "html", ".htm": "html", ".json": "json", ".sarif": "sarif", ".md": "markdown", ".txt": "text"}
# An earlier report is replaced; any other file of that name stays.
_MARKS = (b"<!doctype html>", b'{"workpacket"', b'{"$schema"', b"# Audit")


def _run_trace(arguments: Arguments) -> int:
    line = asked_line(arguments.words)
    if line is not None:
        return trace_line(arguments, *line)
    chosen = frozenset(arguments.words)
    texts = PacketTexts(encode_readable)
    packets: dict[str, AuditedPacket] = {}
    proofs: dict[str, dict[str, str]] = {}

    def keep(audited: AuditedPacket) -> None:
        if chosen and chosen.isdisjoint((audited.name, audited.packet.id.base)):
            return
        if arguments.flag("json"):
            texts.take(audited)
        elif chosen:
            packets[audited.name] = audited
        every = [one for criterion in audited.trace.criteria for one in criterion.evidence if one.log_sha256]
        proofs[audited.name] = {one.log_sha256: one.log_tail for one in every}

    _, made = examine(keep)
    _require_known(made, arguments.words)
    names = sorted(proofs)
    found = [matter for matter in made.matters if _is_doubt(matter, proofs, everything=not chosen)]
    if arguments.flag("json"):
        logs: dict[str, Json] = {digest: told(end) for digest, end in _logs(proofs).items()}
        envelope = render_envelope("trace", exits.OK, [], {"packets": [], "doubts": _as_json(found), "logs": logs})
        sys.stdout.writelines(texts.spliced(envelope, names, made))
        return exits.OK
    logs_of_named = _logs(proofs) if chosen else {}
    for name in sorted(packets):
        print("\n".join(_traced(packets[name], logs_of_named)))
    for matter in found:
        print(f"{place(matter)}: {matter.finding.severity}: {told(matter.finding.message)} ({matter.finding.code})")
    print(f"{counted(len(names), 'packet')} followed, {counted(len(found), 'doubt')}")
    print(f"next: {f'workpacket explain {found[0].finding.code}' if found else 'workpacket audit'}")
    return exits.OK


def _require_known(made: Audit, words: Sequence[str]) -> None:
    for word in words:
        if not any(word in {name, row.id.base} for name, row in made.packets.items()):
            raise WorkpacketError("packet_unknown", f"packet {word} not found", hint="workpacket list shows all")


def _is_doubt(matter: AuditFinding, names: Container[str], *, everything: bool) -> bool:
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


def _logs(proofs: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the last output of these packets' proofs by digest, if this clone has it."""
    digests = {digest: old for name in sorted(proofs) for digest, old in proofs[name].items()}
    repository = here()
    found = {digest: kept_output(repository, digest, old) for digest, old in digests.items()}
    return {digest: end for digest, end in found.items() if end}


def _traced(audited: AuditedPacket, logs: Mapping[str, str]) -> Iterator[str]:
    traced = audited.trace
    yield f"{audited.name}: {audited.packet.lane or 'without a log'}"
    for line in audited.obstacles:
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
    asked = arguments.words[0]
    rows: list[Rests] = []
    _, made = examine(lambda audited: rows.extend(impact(audited.packet, audited.trace, asked)))
    source = made.facts.specification
    passages = passages_named(source, asked) if source is not None else []
    if not rows and not passages and not _is_there(place_in(asked)[0]):
        what = (
            f"{told(asked)} is not a file in this repository, and no packet depends on a file or anchor with that name"
        )
        raise WorkpacketError(
            "path_not_found", what, hint="give the path relative to the top of the repository, as `trace` shows it"
        )
    if arguments.flag("json"):
        listed: list[Json] = [{"packet": row.packet, "lane": row.lane, "how": told(row.how)} for row in rows]
        sections: list[Json] = [
            {"heading": told(one.heading), "first": one.first, "last": one.last, "text": one.text} for one in passages
        ]
        return show_json(arguments, {"asked": told(asked), "rests": listed, "sections": sections})
    for one in passages:
        print(f"{told(source.path if source is not None else '')}:{one.first}-{one.last}  {told(one.heading)}")
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
        return show_json(arguments, {"bases": bases_json(made)})
    for row in made.bases:
        print("\n".join(_base(row)))
    print(f"{counted(len(made.bases), 'base')}")
    print("next: workpacket trace")
    return exits.OK


def _base(row: BaseRow) -> Iterator[str]:
    yield f"{row.base}: {row.active or 'it is unclear which one is current'} {row.lane}".rstrip()
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


def examine(visit: Callable[[AuditedPacket], None] | None = None) -> tuple[AuditInput, Audit]:
    """Return the facts about this repository, and the audit based on them. `visit` sees each packet while its log and
    its documents are in memory."""
    repository = open_for_reading()
    workspace = open_workspace()
    cache = workspace.open_cache()
    auditor = Auditor(visit)
    try:
        gathered = gather_audit(repository, cache, catalogue(), progress_bar(), auditor.take)
    finally:
        cache.close()
    return gathered, auditor.made(gathered.facts, gathered.governed, catalogue())


def report(arguments: Arguments) -> int:
    target = arguments.value("out")
    form = _form(arguments, target)
    texts = PacketTexts(inert if form == "html" else encode_readable)
    gathered, made = examine(texts.take if form in {"html", "json"} else None)
    outcome = CheckOutcome(
        tuple(matter.finding for matter in made.matters),
        gathered.files,
        source_line=source_lines(str(open_for_reading().root)),
    )
    status = exit_status(outcome, catalogue())
    parts = _rendered(form, made, texts, outcome, status)
    if not target:
        sys.stdout.writelines(parts)
        return status
    _write(target, parts)
    sys.stdout.write(f"{render_audit_text(made, catalogue()).partition(chr(10))[0]}\nwritten: {escape(target)}\n")
    return status


def _form(arguments: Arguments, target: str) -> str:
    """Return the requested format; otherwise the one that the file name implies, or text."""
    if arguments.flag("json"):
        if arguments.flag("format") and arguments.value("format") != "json":
            raise usage(arguments.command, "conflicting_options", "--format and --json cannot be used together")
        return "json"
    ending = os.path.splitext(target)[1].lower()
    if arguments.flag("format"):
        return arguments.value("format")
    if target and ending not in _BY_ENDING:
        known = ", ".join(_BY_ENDING)
        raise usage(
            arguments.command, "invalid_value", f"the file name {target!r} does not end in any of {known}; use --format"
        )
    return _BY_ENDING.get(ending, "text")


def _rendered(form: str, made: Audit, texts: PacketTexts, outcome: CheckOutcome, status: int) -> Iterable[str]:
    if form == "html":
        files = PageFiles(page_file("audit.css"), page_file("audit.js"))
        return render_audit_page(made, texts, catalogue(), files)
    if form == "sarif":
        from workpacket.report.ci import render_sarif

        return [render_sarif(outcome, catalogue(), status)]
    if form == "json":
        envelope = render_envelope("audit", status, outcome.findings, audit_json(made))
        return texts.spliced(envelope, made.packets, made)
    return [render_audit_markdown(made, catalogue()) if form == "markdown" else render_audit_text(made, catalogue())]


def _write(target: str, parts: Iterable[str]) -> None:
    """Write the report to a temporary file first, so that the report is never incomplete."""
    try:
        if os.path.lexists(target) and not _is_report(target):
            raise WorkpacketError(
                "file_unwritable",
                f"{target} exists and is not an audit report, so it was not overwritten",
                path=target,
                hint="choose a different file, or remove the old one",
            )
        beside = f"{target}.{os.getpid()}.new"
        with open(beside, "xb") as file:
            file.writelines(part.encode() for part in parts)
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
        Option("out", "write the report to this file, replacing an existing report", value="FILE"),
    ),
    examples=(
        "workpacket audit",
        "workpacket audit --out audit.html",
        "workpacket audit --format sarif > audit.sarif",
    ),
)


def _run_trailers(arguments: Arguments) -> int:
    repository = open_for_reading()
    said, target = declared(arguments), arguments.value("into")
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", "expected one packet")
    facts = all_facts(repository)
    name = _asked(arguments, str(repository.root), facts, branch_here(repository))
    lines = trailers(name, facts.packets[name].log.events, said or Declared()) if name else []
    if target and lines:
        from workpacket.git.objects import add_trailers

        add_trailers(repository, os.path.abspath(target), lines)
    if arguments.flag("json"):
        return show_json(arguments, {"id": name, "trailers": [*lines], "into": target})
    if not target:
        print("\n".join(map(escape, lines)))
    return exits.OK


def _asked(arguments: Arguments, root: str, facts: Facts, branch: str) -> str:
    """Return the given packet, or the packet of this branch.

    With --into, the packet may be missing, because a hook must not block commits.
    """
    if arguments.words:
        name = packet_called(root, arguments.words[0]).text
        if name not in facts.packets:
            raise WorkpacketError("packet_unknown", f"packet {name} does not exist", hint="workpacket list shows all")
        return name
    name = whose_branch(facts, branch)
    if name not in facts.packets and not arguments.flag("into"):
        raise usage(arguments.command, "missing_argument", "this branch does not belong to a packet: give a WP_ID")
    return name if name in facts.packets else ""


_TRAILERS: Final = Command(
    "trailers",
    _run_trailers,
    arguments="[WP_ID]",
    description="""
Prints `Work-Packet: WP_ID`, and an `Assisted-by: HARNESS:MODEL` for each harness and model that `claim` and `submit`
recorded. Put these lines at the end of a commit message, or of the text of a pull request, so that a squash keeps them;
`trace PATH:LINE` reads them. Without an id, the packet of the current branch is used.

With --into, the lines are added to the file of a commit message. In .git/hooks/prepare-commit-msg:
exec workpacket trace trailers --into "$1"

Undeclared harnesses and models are never guessed.""",
    options=(Option("into", "add the lines to this file if they are missing", value="FILE"), *DECLARING),
    examples=(
        "workpacket trace trailers WP-1-Parser-v1",
        "workpacket trace trailers --harness Codex --model gpt-5-4 --into .git/COMMIT_EDITMSG",
    ),
)


_PLACE: Final = re.compile(r"(?P<path>.+):(?P<line>[1-9][0-9]*)\Z", re.DOTALL)


def asked_line(words: list[str]) -> tuple[str, int] | None:
    """Return the path and the line, if the argument is PATH:LINE."""
    found = _PLACE.match(words[0]) if len(words) == 1 else None
    return (found["path"], int(found["line"])) if found is not None else None


def trace_line(arguments: Arguments, path: str, line: int) -> int:
    """Show who wrote a line: commit, packets, contract, approvers, judges, and harness."""
    from workpacket.lifecycle.authorship import assistance
    from workpacket.shell.work_done import line_origin, packets_of_commit

    repository = open_for_reading()
    origin = line_origin(repository, path, line)
    facts = all_facts(repository)
    said = assistance(origin.author, origin.message)
    known = list(packets_of_commit(repository, facts.packets, origin)) if origin.commit else []
    rows = [_row(repository, facts, name, _how(name, known, said)) for name in dict.fromkeys((*known, *said.packets))]
    if arguments.flag("json"):
        data: dict[str, Json] = {
            "path": path,
            "line": line,
            "commit": origin.commit,
            "author": origin.author,
            "assistants": [*said.assistants],
            "sessions": [*said.sessions],
            "written_for": [*rows],
        }
        return show_json(arguments, data)
    for text in _told(path, line, origin, said, rows):
        print(escape(text))
    return exits.OK


def _how(name: str, known: list[str], said: Assistance) -> str:
    sources = (("log", name in known), ("trailer", name in said.packets))
    return " and ".join(source for source, holds in sources if holds)


def _row(repository: Repository, facts: Facts, name: str, how: str) -> dict[str, Json]:
    """Return what the log and the approvals say about one packet. A trailer may name a packet that does not exist."""
    from workpacket.shell.approvals.facts import open_approvals
    from workpacket.shell.audit import decisions

    packet = facts.packets.get(name)
    with open_approvals(repository, None, facts.moment, name) as approvals:
        signed = decisions(approvals).get(name, ())
    approvers = {
        each.approver
        for each in signed
        if each.decision == "approve" and each.gate in {"activation", "amendment", "standing"} and not each.refusals
    }
    return {
        "packet": name,
        "lane": packet.lane if packet is not None else "",
        "how": how,
        "approvers": sorted(approvers),
        **_of_log(packet),
    }


def _of_log(packet: PacketFacts | None) -> dict[str, Json]:
    from workpacket.lifecycle.authorship import declared_in

    events = packet.log.events if packet is not None else ()
    contract, coder, judges = "", "", []
    said = Declared()
    for event in events:
        contract = event.text("contract") or contract
        if event.type in {"claimed", "submitted"}:
            coder, told = event.actor.id, declared_in(event)
            said = told if told.data() or event.type == "claimed" else said
        if event.type == "verdict.given":
            judges.append(f"{event.text('verdict')} by {event.actor.id}")
    told_of: dict[str, Json] = {key: getattr(said, key) for key in FIELDS}
    return {"contract": contract, "coder": coder, "verdicts": [*judges], **told_of}


def _told(path: str, line: int, origin: LineOrigin, said: Assistance, rows: list[dict[str, Json]]) -> Iterator[str]:
    if not origin.commit:
        yield f"{path}:{line} is not committed"
        return
    author, title = origin.author.partition(" <")[0], origin.message.partition("\n")[0]
    yield f"{path}:{line}  {origin.commit[:12]}  {author}  {title}"
    for row in rows:
        yield from _told_of(row)
    if not rows:
        yield f"  packet      {UNDECLARED}"
    assistants = ", ".join(said.assistants) + " (according to the commit)" if said.assistants else UNDECLARED
    yield f"  assistants  {assistants}"
    yield from (f"  session {each} (according to the commit)" for each in said.sessions)


def _told_of(row: dict[str, Json]) -> Iterator[str]:
    unknown = "" if row["lane"] else ", which has no log here"
    yield f"  packet      {row['packet']} {row['lane']} (by {row['how']}){unknown}"
    yield f"    contract  {row['contract'] or 'not recorded'}"
    approvers, verdicts = row["approvers"], row["verdicts"]
    yield (
        f"    approved  by {', '.join(map(str, approvers))}"
        if isinstance(approvers, list) and approvers
        else "    approved  not signed"
    )
    yield (
        f"    judged    {', '.join(map(str, verdicts))}"
        if isinstance(verdicts, list) and verdicts
        else "    judged    not yet"
    )
    harness = f"{row['harness'] or UNDECLARED} {row['harness_version']}".strip()
    session = f", session {row['session']}" if row["session"] else ""
    marked = " (declared)" if row["harness"] or row["model"] else ""
    yield f"    done by   {row['coder'] or 'not claimed'}"
    yield f"    with      {harness}, model {row['model'] or UNDECLARED}{session}{marked}"


DECLARED: Final = {command.name: command for command in (_TRACE, _IMPACT, _TRAILERS, AUDIT)}
