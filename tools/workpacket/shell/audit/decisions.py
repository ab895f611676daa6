"""Every signed decision of a repository with what verifying it comes to: of one that was used, as of its use."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.approvals.instants import write_instant
from workpacket.approvals.verify import Judged
from workpacket.audit.facts import Decision
from workpacket.lifecycle.approval_terms import CONSUMING
from workpacket.model.events import Event
from workpacket.shell.approvals.facts import Approvals


def decisions(approvals: Approvals) -> dict[str, list[Decision]]:
    """By packet; within one in the order in which they were issued."""
    found: dict[str, dict[str, Decision]] = {}
    for packet, gate in sorted({(said.packet, said.gate) for said in approvals.claims.values()}):
        here = found.setdefault(packet, {})
        for consumer in (*_consumers(approvals, packet, gate), None):
            for judged in approvals.verdict(packet, gate, consumer).judged:
                # As of the event that rests on it; only if none does, as of now.
                if judged.opened is not None and judged.name not in here and _is_about(judged, consumer):
                    here[judged.name] = _decision(judged, consumer)
    ordered = {packet: sorted(known.values(), key=_order) for packet, known in found.items()}
    return {packet: known for packet, known in ordered.items() if known}


def _order(decision: Decision) -> tuple[str, str]:
    return decision.issued_at, decision.envelope


def _consumers(approvals: Approvals, packet: str, gate: str) -> Iterator[Event]:
    for event in approvals.log(packet).events:
        if CONSUMING.get(event.type) == gate:
            yield event


def _is_about(judged: Judged, consumer: Event | None) -> bool:
    return consumer is None or judged.name.partition(".")[0] in consumer.attest


def _decision(judged: Judged, consumer: Event | None) -> Decision:
    assert judged.opened is not None
    said = judged.opened.statement
    return Decision(
        gate=said.gate,
        decision=said.decision,
        approver=said.approver,
        role=said.role,
        key=judged.opened.signature.key.fingerprint,
        issued_at=write_instant(said.issued_at),
        expires_at=write_instant(said.expires_at),
        envelope=judged.name.partition(".")[0],
        used_by=consumer.id if consumer is not None else "",
        refusals=tuple((refusal.code, refusal.message) for refusal in judged.refusals),
    )
