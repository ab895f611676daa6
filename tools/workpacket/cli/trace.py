"""From requirement to commit: `trace`, and `impact` for what depends on a file or passage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from workpacket.audit.overview import Audit, AuditFinding, BaseRow
from workpacket.audit.tracing import Criterion, Trace, TracedCommit, impact, place_in
from workpacket.cli.audit import examine
from workpacket.cli.options import Arguments, Command, usage
from workpacket.cli.read_only import show_json
from workpacket.errors import WorkpacketError
from workpacket.git.history import is_in_index
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.reason_tables.integrity import AUDIT_BY_CODE
from workpacket.model.wording import counted
from workpacket.report.audit_data import audit_json, packet_json, told
from workpacket.report.audit_text import place
from workpacket.report.escape import without_surrogates
from workpacket.rules.packet import is_inside
from workpacket.shell.governing.execution import here
from workpacket.shell.governing.proof_process import kept_output

_SHOWN_LINES = 10


def _run_trace(arguments: Arguments) -> int:
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
    """The given packets, for a base all revisions; all packets if none is given."""
    packets = made.facts.packets
    for word in words:
        if not any(word in {name, packet.id.base} for name, packet in packets.items()):
            raise WorkpacketError("packet_unknown", f"there is no packet {word}", hint="workpacket list shows all")
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
    """The last output of these packets' proofs by digest, as far as it is in this clone."""
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
        raise usage(arguments.command, "missing_argument", "name one path or one anchor")
    _, made = examine()
    asked = arguments.words[0]
    rows = impact(made.facts, made.traces, asked)
    if not rows and not _is_there(place_in(asked)[0]):
        what = (
            f"{told(asked)} is not a file in this repository, and no packet depends on a file or an anchor with "
            "that name"
        )
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
    """In the work tree or in the index."""
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
    arguments="[WP_ID|BASE...]",
    description="""
Without an id all packets are followed, and what stands alone is listed: requirements without a packet, packets without
a requirement, criteria without evidence, evidence without a criterion. A link is suspect when what it leads to was
changed since. The end of what a proof printed is shown in the clone where it was run.""",
    examples=("workpacket trace", "workpacket trace WP-1-Parser-v1", "workpacket trace --json"),
)


_IMPACT = Command(
    "impact",
    _run_impact,
    arguments="PATH|PATH:LINE|ANCHOR",
    examples=(
        "workpacket impact src/parser.py",
        "workpacket impact Spec_v1.md:120",
        "workpacket impact 'Spec_v1.md 4.2 Parser'",
    ),
)


DECLARED: Final = {command.name: command for command in (_TRACE, _IMPACT)}
