"""What the audit says about one packet: what blocks it, who signed and judged it, what is doubtful, and the row that is
kept of it after its log and its documents were discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from workpacket.audit.tracing import AuditFacts, Trace, TracedCommit, audit_finding, unfinished
from workpacket.documents.document import value_of
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.gates import ACTIVATING, lease_held
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import SETTLED, WAITING, LaneTable
from workpacket.problem import Problem
from workpacket.value import NamedTuple, Value


class LaneMove(NamedTuple):
    """A packet came into a lane."""

    at: str
    packet: str
    lane: str


def moves_of(packet: PacketFacts) -> list[LaneMove]:
    """Return the moves of a packet, in log order."""
    return [LaneMove(event.at, event.packet, event.lane_to or "") for event in packet.state.history if event.moves_lane]


def obstacles(facts: AuditFacts, packet: PacketFacts) -> list[str]:
    """Return every obstacle that the log and the documents show. `why` also lists the requirements of gates."""
    return list(_obstacles(facts, packet))


def _obstacles(facts: AuditFacts, packet: PacketFacts) -> Iterator[str]:
    state = packet.state
    if not packet.lane:
        yield "It has no log, so it cannot pass a gate. Run: workpacket adopt"
        return
    if state.forked:
        moves = " and ".join(f"{move.type} by {move.actor.id} at {move.at}" for move in state.latest_moves)
        yield f"It was moved on two branches: {moves}. A person must resolve this."
    if packet.lane == "BLOCKED" and state.latest_moves:
        move = state.latest_moves[-1]
        yield f"Blocked by {move.actor.id} since {move.at}: {move.text('reason') or 'no reason given'}"
        yield f"Until: {move.text('until') or 'nothing was said'}"
    if not unfinished(packet.lane):
        return
    yield from _waits_for(facts, packet)
    if packet.lane == "IN_PROGRESS" and not lease_held(state, facts.now):
        holder = f", last held by {state.lease.holder}" if state.lease is not None and state.lease.holder else ""
        yield f"It has no holder: the lease has expired or been released{holder}."
    if packet.light and packet.lane == "STUB":
        yield "It has not been started."
    elif packet.lane == "STUB" and packet.refinement is None:
        yield "There is no technical refinement yet."
    elif packet.lane == "STUB" and not any(_yes(facts, packet)):
        yield "Its refinement is not signed."


def _waits_for(facts: AuditFacts, packet: PacketFacts) -> Iterator[str]:
    if packet.lane not in WAITING:
        return
    for name in packet.dependencies():
        lane = facts.lane_of(name)
        if lane not in facts.policy.satisfied_by:
            yield f"It is waiting for {name}, which is {lane or 'unknown'}."


def waits_for(facts: AuditFacts, packet: PacketFacts) -> str:
    """Return one word for what a packet is waiting for, used by the page as a filter; '' if it is done or being worked
    on."""
    lane = packet.lane
    if packet.state.forked:
        return "resolve"
    known = facts.policy.lanes.lane(lane)
    if known is None or known.needs or not known.unfinished:
        return known.needs if known is not None else ""
    if any(_waits_for(facts, packet)):
        return "dependency"
    if lane == "STUB":
        return _stub_waits_for(facts, packet)
    held = lane == "IN_PROGRESS" and lease_held(packet.state, facts.now)
    return "" if held or facts.policy.lanes.is_added(lane) else "coder"


def _stub_waits_for(facts: AuditFacts, packet: PacketFacts) -> str:
    if not packet.light and packet.refinement is None:
        return "refinement"
    asked = not packet.light or facts.policy.packets.approvals == "signed"
    return "approval" if asked and not any(_yes(facts, packet)) else "start"


def who_approved(facts: AuditFacts, packet: PacketFacts) -> str:
    """Return who signed the latest approval of the work, preferably one that counts; '' if there is none."""
    signed = facts.decisions.get(packet.id.text, ())
    approved = [each for each in signed if each.gate in ACTIVATING and each.decision == "approve"]
    latest = max(approved, key=lambda each: (not each.refusals, each.issued_at), default=None)
    return "" if latest is None else latest.approver if not latest.refusals else f"{latest.approver} (does not count)"


def who_judged(facts: AuditFacts, packet: PacketFacts) -> str:
    """Return who gave the latest verdict, marked as claimed if no signature proves it."""
    latest = packet.state.verdicts[-1] if packet.state.verdicts else None
    if latest is None:
        return ""
    return latest.actor.id if latest.id in facts.proven else f"{latest.actor.id} (claimed)"


def _yes(facts: AuditFacts, packet: PacketFacts) -> Iterator[bool]:
    for decision in facts.decisions.get(packet.id.text, ()):
        yield decision.gate in ACTIVATING and decision.decision == "approve" and not decision.refusals


# How far the clocks of two machines may differ.
_SKEW: Final = timedelta(minutes=5)


def submitted_lanes(lanes: LaneTable) -> tuple[str, ...]:
    """Return the lanes in which every criterion must already have been proved."""
    return lanes.way[lanes.way.index("IN_PROGRESS") + 1 :]


def packet_doubts(packet: PacketFacts, traced: Trace, lanes: LaneTable) -> list[Problem]:
    """Return all findings about one packet."""
    if packet.lane in SETTLED:
        return []
    return [
        *_changed_requirements(packet, traced),
        *_unproved(packet, traced, lanes),
        *_containment(traced),
        *_without_requirement(packet, traced),
    ]


def _changed_requirements(packet: PacketFacts, traced: Trace) -> Iterator[Problem]:
    """Report changed requirements. Validated work was correct for the version on which it was based; whether it is
    still correct is a separate question.
    """
    for anchor in traced.anchors if packet.lane != "VALIDATED" else ():
        if anchor.state == "changed":
            message = f"{anchor.name or 'the passage'} has changed since the refinement was written: {anchor.why}"
            path = packet.packet_path if packet.light else packet.refinement_path
            yield audit_finding("requirement_changed", path, anchor.line, message)


def _unproved(packet: PacketFacts, traced: Trace, lanes: LaneTable) -> Iterator[Problem]:
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
        message = f"evidence for {stray.criterion[:100]!r}, which is not listed in DONE_MEANS"
        yield audit_finding("evidence_without_criterion", stray.source, stray.line, message)


def _containment(traced: Trace) -> Iterator[Problem]:
    for commit in traced.commits:
        if commit.role == "target":
            yield from _target_doubts(commit)
        elif commit.role == "merged" and commit.event.text("proof") == "commit":
            yield from _on_target(commit)


def _target_doubts(commit: TracedCommit) -> Iterator[Problem]:
    yield from _on_target(commit)
    if commit.seen is not None and datetime.fromisoformat(commit.seen.at) > _instant(commit.event.at) + _SKEW:
        recorded = f"was recorded at {commit.event.at} as the commit that contains the work"
        message = f"{commit.id[:12]}, committed at {commit.seen.at}, {recorded}"
        yield audit_finding("containment_too_early", commit.event.path, 1, message)


def _on_target(commit: TracedCommit) -> Iterator[Problem]:
    target = commit.event.text("target") or "the target branch"
    if commit.seen is None:
        message = f"{commit.id[:12]}, recorded as merged into {target}, is not a commit in this clone"
        yield audit_finding("commit_not_on_target", commit.event.path, 1, message)
    elif not commit.seen.on_target:
        message = f"{commit.id[:12]}, recorded as merged into {target}, is not on that branch"
        yield audit_finding("commit_not_on_target", commit.event.path, 1, message)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _without_requirement(packet: PacketFacts, traced: Trace) -> Iterator[Problem]:
    if packet.packet is not None and unfinished(packet.lane) and not traced.anchors:
        yield audit_finding("packet_without_requirement", packet.packet_path, 1, f"{packet.id} names no requirement")


def candidates_of(packet: PacketFacts) -> list[str]:
    """Return the passages covered only by stubs without anchors: work that is planned but not refined."""
    stub = packet.stub
    if stub is None or packet.refinement is not None:
        return []
    return [text.value for text in stub.spec_anchor_candidates]


class AuditedPacket(Value):
    """One packet, while its log and its documents are in memory."""

    facts: AuditFacts
    packet: PacketFacts
    trace: Trace
    obstacles: Sequence[str]

    @property
    def name(self) -> str:
        return self.packet.id.text


class Window(NamedTuple):
    """The lines of a specification on which a packet is based. `found`: whether the passage is still there."""

    path: str
    first: int
    last: int
    found: bool


class PacketRow(Value):
    """What the report says about a packet after its log and its documents were discarded.

    `criteria` counts the lines of DONE_MEANS, `proved` those with evidence, and `sound` those whose evidence is not
    suspect. `approvals` counts the signed approvals that count, `decisions` all signed decisions, and `valid` those
    without refusals. `paths` are the files that belong to the packet. `holder` is None without a lease.
    """

    id: WorkPacketId
    lane: str
    title: str
    since: str
    waits_for: str
    holder: str | None
    approved_by: str
    judged_by: str
    heads: tuple[str, ...]
    moves: Sequence[LaneMove]
    anchors: Sequence[Window]
    planned: Sequence[str]
    obstacles: Sequence[str]
    paths: Sequence[str]
    envelopes: Sequence[str]
    commits: Sequence[str]
    superseded_by: str
    has_packet: bool
    criteria: int
    proved: int
    sound: int
    approvals: int
    decisions: int
    valid: int
    events: int
    proven: int


def title_of(packet: PacketFacts) -> str:
    document = packet.packet or packet.stub
    if document is None:
        return ""
    return value_of(document.what) or (packet.packet.title if packet.packet is not None and packet.light else "")


def row_of(audited: AuditedPacket) -> PacketRow:
    facts, packet, traced = audited.facts, audited.packet, audited.trace
    state, signed = packet.state, facts.decisions.get(audited.name, ())
    valid = [each for each in signed if not each.refusals]
    return PacketRow(
        id=packet.id,
        lane=packet.lane,
        title=title_of(packet),
        since=state.latest_moves[-1].at if state.latest_moves else "",
        waits_for=waits_for(facts, packet),
        holder=state.lease.holder if state.lease is not None else None,
        approved_by=who_approved(facts, packet),
        judged_by=who_judged(facts, packet),
        heads=packet.log.heads,
        moves=moves_of(packet),
        anchors=[Window(one.path, one.first, one.last, one.state in {"holds", "moved"}) for one in traced.anchors],
        planned=candidates_of(packet),
        obstacles=audited.obstacles,
        paths=[packet.stub_path, packet.packet_path, packet.refinement_path, *_reports(packet)],
        envelopes=[each.envelope for each in signed],
        commits=[commit.id for commit in traced.commits],
        superseded_by=state.superseded_by,
        has_packet=packet.packet is not None,
        criteria=len(traced.criteria),
        proved=sum(one.proved for one in traced.criteria),
        sound=sum(one.proved and not one.suspect for one in traced.criteria),
        approvals=sum(each.decision == "approve" for each in valid),
        decisions=len(signed),
        valid=len(valid),
        events=len(state.history),
        proven=sum(event.id in facts.proven for event in state.history),
    )


def _reports(packet: PacketFacts) -> Iterator[str]:
    for event in packet.state.verdicts:
        report = event.data.get("report")
        if isinstance(report, Mapping):
            yield str(report["path"])
