"""Why a packet does not go on, in words, and who can do something about it."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.audit.facts import AuditFacts
from workpacket.audit.standing import unfinished
from workpacket.lifecycle.working import lease_held
from workpacket.model.findings import Finding
from workpacket.model.reasons import Family
from workpacket.plans.facts import PacketFacts

_BY_LANE = {
    "STUB": "the orchestrator",
    "READY_FOR_DEV": "whoever claims it",
    "IN_REVIEW": "a validator",
    "MERGE_PENDING": "whoever merges",
}


def obstacles(facts: AuditFacts, packet: PacketFacts) -> list[str]:
    """Everything that the log and the documents tell. What a gate would ask besides, `why` says."""
    return list(_obstacles(facts, packet))


def _obstacles(facts: AuditFacts, packet: PacketFacts) -> Iterator[str]:
    state = packet.state
    if not packet.lane:
        yield "It has no log, so no gate lets it pass: workpacket adopt."
        return
    if state.forked:
        moves = " and ".join(f"{move.type} by {move.actor.id} at {move.at}" for move in state.latest_moves)
        yield f"It was moved on two branches: {moves}. A person has to settle it."
    if packet.lane == "BLOCKED" and state.latest_moves:
        move = state.latest_moves[-1]
        yield f"Blocked by {move.actor.id} since {move.at}: {move.text('reason') or 'no reason given'}"
        yield f"Until: {move.text('until') or 'nothing was said'}"
    if not unfinished(packet.lane):
        return
    yield from _waits_for(facts, packet)
    if packet.lane == "IN_PROGRESS" and not lease_held(state, facts.now):
        holder = f", last held by {state.lease.holder}" if state.lease is not None and state.lease.holder else ""
        yield f"Nobody holds it: the lease has ended or was given back{holder}."
    if packet.lane == "STUB" and packet.refinement is None:
        yield "There is no technical refinement yet."
    elif packet.lane == "STUB" and not any(_yes(facts, packet)):
        yield "Nobody has signed its refinement."


def _waits_for(facts: AuditFacts, packet: PacketFacts) -> Iterator[str]:
    if packet.lane not in {"STUB", "READY_FOR_DEV", "BLOCKED"}:
        return
    for name in packet.dependencies():
        other = facts.packets.get(name)
        lane = other.lane if other is not None else ""
        if lane not in facts.policy.satisfied_by:
            yield f"It waits for {name}, which is {lane or 'known to nobody'}."


def _yes(facts: AuditFacts, packet: PacketFacts) -> Iterator[bool]:
    for decision in facts.decisions.get(packet.id.text, ()):
        yield decision.gate == "activation" and decision.decision == "approve" and not decision.refusals


def who_acts(finding: Finding, family: Family, packet: PacketFacts | None) -> str:
    """Who can put a finding right: for what was forged the maintainer, for an approval its approver, else by lane."""
    if family == "integrity":
        return "the maintainer"
    if family == "approval":
        return "an approver"
    if finding.code in {"spec_moved", "requirement_changed"}:
        return "the orchestrator"
    if packet is None:
        return "the orchestrator"
    if packet.lane in {"IN_PROGRESS", "BLOCKED"} and packet.state.lease is not None:
        return packet.state.lease.holder or "the coder"
    return _BY_LANE.get(packet.lane, "the orchestrator")
