"""The audit of a repository as one value: what every form of the report renders."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from workpacket.audit.bases import BaseRow, base_rows
from workpacket.audit.board_history import Point, board_history, lane_order
from workpacket.audit.doubts import coverage, packet_doubts, submitted_lanes, uncovered_findings
from workpacket.audit.facts import AuditFacts
from workpacket.audit.obstacles import obstacles, who_acts
from workpacket.audit.requirements import Requirement
from workpacket.audit.tracing import Trace, trace
from workpacket.documents.document import stem_of
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.events import LOG_FOLDER
from workpacket.model.findings import Finding
from workpacket.model.reasons import SEVERITIES, Reason
from workpacket.plans.facts import Facts
from workpacket.value import Value


class Matter(Value):
    """A finding, with the packet that it is about ('' for none), since when it stands, and who has to act.

    `since` is '' where nobody knows; `pending` says that the file was changed since the last commit.
    """

    finding: Finding
    packet: str
    since: str
    who: str
    pending: bool = False


class Gap(Value):
    """How much of something is as it should be."""

    name: str
    done: int
    of: int


class Audit(Value):
    """`lane_order` is that of the counts in `history`.

    `root` is one digest for all heads of all logs: two repositories with the same have the same history.
    """

    facts: AuditFacts
    traces: Mapping[str, Trace]
    matters: Sequence[Matter]
    obstacles: Mapping[str, Sequence[str]]
    bases: Sequence[BaseRow]
    history: Sequence[Point]
    lane_order: Sequence[str]
    gaps: Sequence[Gap]
    requirements: Sequence[Requirement]
    uncovered: Sequence[Requirement]
    root: str


def audit(facts: AuditFacts, governed: Facts, reasons: Mapping[str, Reason]) -> Audit:
    """`governed` are the same packets with the registers; `reasons` says the family of each code."""
    order = lane_order(facts.packets.values(), facts.policy.lanes)
    traces = {name: trace(facts, packet) for name, packet in sorted(facts.packets.items())}
    required, left = coverage(facts, traces)
    found = [*facts.findings, *uncovered_findings(facts, left)]
    for name, traced in traces.items():
        found += packet_doubts(facts.packets[name], traced, facts.policy.lanes)
    return Audit(
        facts=facts,
        traces=traces,
        matters=_matters(facts, found, reasons),
        obstacles={name: obstacles(facts, packet) for name, packet in facts.packets.items()},
        bases=base_rows(facts, governed, traces),
        history=board_history(facts.packets.values(), order),
        lane_order=order,
        gaps=_gaps(facts, traces, required, left),
        requirements=required,
        uncovered=left,
        root=log_root(facts),
    )


def log_root(facts: AuditFacts) -> str:
    """The digest of the heads of every log."""
    heads: dict[str, Json] = {name: list(packet.log.heads) for name, packet in facts.packets.items()}
    return hashlib.sha256(canonical_bytes(heads)).hexdigest()


def _matters(facts: AuditFacts, found: Sequence[Finding], reasons: Mapping[str, Reason]) -> list[Matter]:
    """The gravest first, each once."""
    owner = owner_of(facts)
    ordered = sorted(dict.fromkeys(found), key=lambda one: (SEVERITIES.index(one.severity), one.order))
    return [_matter(facts, finding, owner(finding.path), reasons) for finding in ordered]


def _matter(facts: AuditFacts, finding: Finding, name: str, reasons: Mapping[str, Reason]) -> Matter:
    packet = facts.packets.get(name)
    change = facts.changes.get(finding.path)
    event = packet.log.by_id.get(stem_of(finding.path)) if packet is not None else None
    pending = finding.path in facts.uncommitted
    since = event.at if event is not None else change.at if change is not None and not pending else ""
    return Matter(finding, name, since, who_acts(finding, reasons[finding.code].family, packet), pending)


def owner_of(facts: AuditFacts) -> Callable[[str], str]:
    """Gives the packet that a path belongs to: by its log, its own files, its envelopes or the files it rests on."""
    known: dict[str, str] = {}
    for name, packet in facts.packets.items():
        for path in (packet.stub_path, packet.packet_path, packet.refinement_path):
            known[path] = name
        for decision in facts.decisions.get(name, ()):
            known[f".GOV/attestations/{decision.envelope}.dsse.json"] = name
        for event in packet.state.verdicts:
            report = event.data.get("report")
            if isinstance(report, Mapping):
                known[str(report["path"])] = name

    def owner(path: str) -> str:
        if path.startswith(f"{LOG_FOLDER}/"):
            name = path.split("/")[2]
            return name if name in facts.packets else ""
        return known.get(path, "")

    return owner


def _gaps(
    facts: AuditFacts, traces: Mapping[str, Trace], required: Sequence[Requirement], left: Sequence[Requirement]
) -> list[Gap]:
    live = [name for name, packet in facts.packets.items() if packet.lane not in {"SUPERSEDED", "ABANDONED"}]
    working = [name for name in live if facts.packets[name].packet is not None]
    criteria = [criterion for name in working for criterion in traces[name].criteria]
    finished = [name for name in working if facts.packets[name].lane in submitted_lanes(facts.policy.lanes)]
    asked = [criterion for name in finished for criterion in traces[name].criteria]
    decisions = [decision for name in facts.packets for decision in facts.decisions.get(name, ())]
    anchors = [anchor for name in live for anchor in traces[name].anchors]
    return [
        Gap("Requirements on which a packet rests", len(required) - len(left), len(required)),
        Gap("Packets that rest on a requirement", sum(bool(traces[name].anchors) for name in working), len(working)),
        Gap("Anchors that say what was refined", sum(one.state in {"holds", "moved"} for one in anchors), len(anchors)),
        Gap("Criteria of all packets with evidence", sum(one.proved for one in criteria), len(criteria)),
        Gap("Criteria of finished work with evidence", sum(one.proved for one in asked), len(asked)),
        Gap("Signed decisions that hold", sum(not one.refusals for one in decisions), len(decisions)),
        Gap("Packets with a log", sum(bool(packet.lane) for packet in facts.packets.values()), len(facts.packets)),
    ]
