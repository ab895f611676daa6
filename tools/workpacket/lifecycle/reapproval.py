"""`reapprove`: new approvals take the place of ones that were taken back or whose key is revoked.

An event that the base holds is never written again, and it names its envelopes. So another event names new ones for it,
at the same gate and on the same terms.
"""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.approvals.decide import Verdict
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import approval_unmet, satisfying, terms_of
from workpacket.lifecycle.moves import Answer, Draft, Planned, Refused
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.problem import Problem
from workpacket.value import Value


class Withdrawn(Value):
    """A gate that an event passed by approvals that count no more, and the verdict on those that are there now."""

    event: LogEvent
    gate: str
    replaces: tuple[str, ...]
    verdict: Verdict


def reapprove(facts: Facts, packet: PacketFacts, withdrawn: Sequence[Withdrawn], *, reason: str) -> Answer:
    name = packet.id.text
    if not withdrawn:
        message = f"every approval that events of {name} rest on counts"
        return Refused(name, (Problem("reapproval_needless", message, hint=f"workpacket approvals list {name}"),))
    unmet = [each for one in withdrawn for each in approval_unmet(one.verdict, name, terms_of(one.event, one.gate))]
    if unmet:
        return Refused(name, tuple(dict.fromkeys(unmet)))
    draft = Draft("reapprove", facts)
    for one in withdrawn:
        replaces: list[Json] = [*sorted(one.replaces)]
        data: dict[str, Json] = {"gate": one.gate, "event": one.event.id, "replaces": replaces, "reason": reason}
        draft.happened(packet, "reapproved", data, satisfying(one.verdict))
    gates: list[Json] = [*dict.fromkeys(one.gate for one in withdrawn)]
    said = f"{name} rests on new approvals at {', '.join(dict.fromkeys(one.gate for one in withdrawn))}"
    return Planned(draft.plan(), said, "workpacket check", {"id": name, "gates": gates})
