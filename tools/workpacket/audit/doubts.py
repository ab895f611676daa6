"""What an audit finds in the traces: suspect links, containment that cannot be, and orphans in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from workpacket.audit.anchors import Anchor
from workpacket.audit.facts import AuditFacts
from workpacket.audit.requirements import Requirement, requirements, uncovered
from workpacket.audit.standing import audit_finding, unfinished
from workpacket.audit.tracing import Trace, TracedCommit, same
from workpacket.model.findings import Finding
from workpacket.model.lanes import LaneTable
from workpacket.plans.facts import PacketFacts

_SETTLED: Final = frozenset({"SUPERSEDED", "ABANDONED", "OUTDATED_ONLY", "FAIL"})
# How far the clocks of two machines may be apart.
_SKEW: Final = timedelta(minutes=5)


def submitted_lanes(lanes: LaneTable) -> tuple[str, ...]:
    """Lanes in which every criterion has been proved, or the work should not have come so far."""
    return lanes.way[lanes.way.index("IN_PROGRESS") + 1 :]


def packet_doubts(packet: PacketFacts, traced: Trace, lanes: LaneTable) -> list[Finding]:
    """Everything that is doubtful about one packet."""
    if packet.lane in _SETTLED:
        return []
    return [
        *_changed_requirements(packet, traced),
        *_unproved(packet, traced, lanes),
        *_containment(traced),
        *_without_requirement(packet, traced),
    ]


def _changed_requirements(packet: PacketFacts, traced: Trace) -> Iterator[Finding]:
    """Once the work is validated, it was right for its version: that the specification moved on is another question."""
    for anchor in traced.anchors if packet.lane != "VALIDATED" else ():
        if anchor.state == "changed":
            message = f"{anchor.name or 'the passage'} is not what was refined: {anchor.why}"
            yield audit_finding("requirement_changed", packet.refinement_path, anchor.line, message)


def _unproved(packet: PacketFacts, traced: Trace, lanes: LaneTable) -> Iterator[Finding]:
    for criterion in traced.criteria if packet.lane in submitted_lanes(lanes) else ():
        if not criterion.proved:
            where = "in the log or in EVIDENCE_MAPPING"
            message = f"DONE_MEANS {criterion.number}, {criterion.text[:100]!r}, has no evidence {where}"
            yield audit_finding("criterion_without_evidence", packet.packet_path, criterion.line, message)
        for each in criterion.evidence:
            if each.suspect:
                message = f"DONE_MEANS {criterion.number}, {criterion.text[:100]!r}: {each.suspect}"
                yield audit_finding("proof_changed", packet.packet_path, criterion.line, message)
    for stray in traced.strays:
        message = f"evidence for {stray.criterion[:100]!r}, which is no line of DONE_MEANS"
        yield audit_finding("evidence_without_criterion", stray.source, stray.line, message)


def _containment(traced: Trace) -> Iterator[Finding]:
    for commit in traced.commits:
        if commit.role == "target":
            yield from _target_doubts(commit)
        elif commit.role == "merged" and commit.event.text("proof") == "commit":
            yield from _on_target(commit)


def _target_doubts(commit: TracedCommit) -> Iterator[Finding]:
    yield from _on_target(commit)
    if commit.seen is not None and datetime.fromisoformat(commit.seen.at) > _instant(commit.event.at) + _SKEW:
        message = f"it was recorded at {commit.event.at} that {commit.id[:12]} holds it, a commit of {commit.seen.at}"
        yield audit_finding("containment_too_early", commit.event.path, 1, message)


def _on_target(commit: TracedCommit) -> Iterator[Finding]:
    target = commit.event.text("target") or "the target branch"
    if commit.seen is None:
        message = f"{commit.id[:12]}, recorded as merged into {target}, is no commit of this clone"
        yield audit_finding("commit_not_on_target", commit.event.path, 1, message)
    elif not commit.seen.on_target:
        message = f"{commit.id[:12]}, recorded as merged into {target}, is not on it"
        yield audit_finding("commit_not_on_target", commit.event.path, 1, message)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _without_requirement(packet: PacketFacts, traced: Trace) -> Iterator[Finding]:
    if packet.packet is not None and unfinished(packet.lane) and not traced.anchors:
        yield audit_finding("packet_without_requirement", packet.packet_path, 1, f"{packet.id} names no requirement")


def coverage(facts: AuditFacts, traces: Mapping[str, Trace]) -> tuple[Sequence[Requirement], Sequence[Requirement]]:
    """All requirements of the specification in force, and those on which no live packet rests."""
    if facts.specification is None:
        return (), ()
    path = facts.specification.path
    found = requirements(facts.specification, facts.policy.roadmap_headings)
    live = [name for name in traces if facts.packets[name].lane not in {"SUPERSEDED", "ABANDONED"}]
    anchors = [anchor for name in live for anchor in traces[name].anchors]
    left = uncovered(found, [(one.first, one.last) for one in anchors if _stands(one, path)])
    planned = [same(words) for name in live for words in candidates_of(facts.packets[name])]
    return found, [one for one in left if not any(words.endswith(same(one.title)) for words in planned)]


def candidates_of(packet: PacketFacts) -> list[str]:
    """The passages that a stub without anchors yet wants to rest on: the work is planned, if not refined."""
    stub = packet.stub
    if stub is None or packet.refinement is not None:
        return []
    return [text.value for text in stub.spec_anchor_candidates]


def _stands(anchor: Anchor, path: str) -> bool:
    return anchor.path == path and anchor.first > 0


def uncovered_findings(facts: AuditFacts, left: Sequence[Requirement]) -> list[Finding]:
    if facts.specification is None:
        return []
    path = facts.specification.path
    return [
        audit_finding("requirement_without_packet", path, one.first, f"no packet rests on {one.title!r}")
        for one in left
    ]
