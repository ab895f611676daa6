"""The gates that the policy adds: what they say of a move, and the envelopes that the event of the move names."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.lifecycle.added_gates import added_gates
from workpacket.lifecycle.approval import approval_unmet, satisfying
from workpacket.lifecycle.transitions import Transition
from workpacket.lifecycle.unmet import Unmet
from workpacket.plans.facts import Facts, PacketFacts


def added_unmet(facts: Facts, packet: PacketFacts, row: Transition) -> Iterator[Unmet]:
    """What is missing at the added gates of this move; a gate that nobody has asked about is shut."""
    name = packet.id.text
    for gate in added_gates(facts.policy, row.event, row.choice):
        verdict = facts.approvals.get(gate)
        if verdict is None:
            message = f"{row.typed} asks for an approval at the gate {gate}, which a word on the board does not give"
            yield Unmet("hand_edit_not_adoptable", message, f"workpacket {row.command} {name}")
        else:
            yield from approval_unmet(verdict, name)


def added_envelopes(facts: Facts, event: str, choice: str) -> Iterator[str]:
    for gate in added_gates(facts.policy, event, choice):
        yield from satisfying(facts.approvals[gate])
