"""What `approve` looks at before it asks: whether it was approved already, and what would shut the gate anyway.

Nobody shall read and sign what the gate then refuses for a reason that was there before.
"""

from __future__ import annotations

from workpacket.cli.looking import NOBODY
from workpacket.lifecycle.unmet import Unmet
from workpacket.model.events import ATTESTATIONS_FOLDER
from workpacket.plans.activating import unmet_besides_signature
from workpacket.shell.approvals.approving import Written
from workpacket.shell.approvals.drafts import Wish
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.approvals.matter import ACTIVATION_GATE
from workpacket.shell.governing.gathering import gather


def already_given(approvals: Approvals, wish: Wish, principal: str) -> Written | None:
    """The approval of these very bytes that the person has given and that counts; a no after it undid it."""
    if wish.decision != "approve":
        return None
    verdict = approvals.verdict(wish.packet, wish.gate, terms=wish.terms)
    mine = [voice.envelope for voice in verdict.voices if voice.principal == principal]
    if not mine or any(refusal.code == "approval_rejected" for refusal in verdict.unmet):
        return None
    return Written(f"{ATTESTATIONS_FOLDER}/{mine[0]}.dsse.json", verdict, ())


def unmet_at_the_gate(approvals: Approvals, wish: Wish) -> tuple[Unmet, ...]:
    """The conditions of the activation gate that no signature supplies."""
    if wish.gate != ACTIVATION_GATE or wish.decision != "approve":
        return ()
    facts = gather(approvals.repository, [wish.packet], NOBODY)
    packet = facts.packets.get(wish.packet)
    return unmet_besides_signature(facts, packet) if packet is not None else ()
