"""Replace the approved contract with another one that is approved in the same way.

`reapprove` replaces approvals that were revoked or whose keys were revoked.

An event on the base is never rewritten, and it names its envelopes. Therefore another event names the new envelopes,
for the same gate and on the same terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workpacket.approvals.facts import Verdict
from workpacket.ledger.fold import in_force
from workpacket.lifecycle.activation import terms_in_event
from workpacket.lifecycle.contract import Contract, demands_unmet, stated
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import AMENDMENT_GATE, approval_asked, approval_unmet, satisfying, terms_of
from workpacket.lifecycle.moves import Answer, Draft, Planned
from workpacket.lifecycle.transitions import AMENDABLE, Transition, forward_command, move_unmet
from workpacket.model.canonical import Json
from workpacket.model.event_types import FULL_FORM, LIGHT_FORM
from workpacket.model.events import LogEvent
from workpacket.problem import Location, Problem
from workpacket.value import Value


def amend(facts: Facts, packet: PacketFacts, show: Callable[[Contract], str], *, reason: str) -> Answer:
    """Plan the amendment. `show` prints the differences from the contract in force, which may exist only in git."""
    name = packet.id.text
    row = Transition("amend", "amended", AMENDABLE, packet.lane)
    unmet = move_unmet(packet.state, row, facts.policy.lanes) or _judged_before(packet)
    if unmet:
        return unmet
    contract = _amended(packet)
    if isinstance(contract, Problem):
        return (contract,)
    asked = approval_asked(facts.policy, light=contract.form == LIGHT_FORM)
    given = facts.approvals[AMENDMENT_GATE] if asked else None
    signed = approval_unmet(given, name) if given is not None else ()
    unmet = (*demands_unmet(contract, facts.policy.evidence, packet.packet_path), *signed)
    if unmet:
        return unmet
    draft = Draft("amend", facts)
    for path, source in ((packet.stub_path, packet.stub_source), (packet.refinement_path, packet.refinement_source)):
        draft.rests_on(path, source)
    if packet.packet_source is not None:
        draft.is_about(packet.packet_source)
    held = sorted(in_force(packet.log))
    data: dict[str, Json] = {"previous": held[0] if held else None, "reason": reason, **terms_in_event(contract)}
    data |= {"form": contract.form} if contract.form != FULL_FORM else {}
    if packet.refinement_source is not None:
        data["refinement"] = {"path": packet.refinement_path, "sha256": packet.refinement_source.digest}
    if facts.specification is not None:
        data["spec"] = {"path": facts.specification.path, "sha256": facts.specification.digest}
    draft.happened(packet, "amended", data, satisfying(given) if given is not None else ())
    said = f"{name} now has the contract {contract.digest[:12]}"
    told: dict[str, Json] = {"id": name, "contract": contract.digest, "previous": held[0] if held else None}
    then = forward_command(name, packet.lane, facts.policy.lanes)
    return Planned(draft.plan(), said, then, told, shown=show(contract))


def _judged_before(packet: PacketFacts) -> tuple[Problem, ...]:
    """Refuse to amend a packet that was blocked in review or later: it would return to review with a verdict on another
    contract.
    """
    origin = packet.state.came_from
    if origin is None or origin in AMENDABLE:
        return ()
    message = f"{packet.id} was blocked in {origin}, a lane in which its contract is being judged"
    hint = f"workpacket unblock {packet.id}, then have it sent back, or: workpacket reopen {packet.id} --reason TEXT"
    return (Problem("wrong_lane", message, hint=hint),)


def _amended(packet: PacketFacts) -> Contract | Problem:
    """Return the contract that both packet and stub state, if it differs from the one in force."""
    document = packet.packet
    if document is None:
        command = f"git restore {packet.packet_path}"
        return Problem("packet_missing", f"{packet.packet_path} is missing", Location(packet.packet_path), command)
    contract = stated(document, packet.refinement)
    other = stated(packet.stub, packet.refinement) if packet.stub is not None else contract
    for said in (contract, other):
        if isinstance(said, str):
            return Problem("contract_unreadable", said, Location(packet.packet_path), f"edit {packet.packet_path}")
    if contract != other:
        message = "stub and packet state different contracts"
        hint = f"write the same contract into {packet.stub_path} and {packet.packet_path}"
        return Problem("contract_changed", message, Location(packet.packet_path), hint)
    assert isinstance(contract, Contract)
    if in_force(packet.log) == {contract.digest}:
        message = f"the files still state the contract in force, {contract.digest[:12]}"
        return Problem("contract_unchanged", message, hint=f"workpacket contract {packet.id}")
    return contract


class Withdrawn(Value):
    """A gate that an event passed with approvals that no longer count, and its verdict on the current approvals."""

    event: LogEvent
    gate: str
    replaces: tuple[str, ...]
    verdict: Verdict


def reapprove(facts: Facts, packet: PacketFacts, withdrawn: Sequence[Withdrawn], *, reason: str) -> Answer:
    name = packet.id.text
    if not withdrawn:
        message = f"every approval used by events of {name} is still valid"
        return (Problem("reapproval_needless", message, hint=f"workpacket approvals list {name}"),)
    unmet = [each for one in withdrawn for each in approval_unmet(one.verdict, name, terms_of(one.event, one.gate))]
    if unmet:
        return tuple(dict.fromkeys(unmet))
    draft = Draft("reapprove", facts)
    for one in withdrawn:
        replaces: list[Json] = [*sorted(one.replaces)]
        data: dict[str, Json] = {"gate": one.gate, "event": one.event.id, "replaces": replaces, "reason": reason}
        draft.happened(packet, "reapproved", data, satisfying(one.verdict))
    gates: list[Json] = [*dict.fromkeys(one.gate for one in withdrawn)]
    said = f"{name} has new approvals at {', '.join(dict.fromkeys(one.gate for one in withdrawn))}"
    return Planned(draft.plan(), said, "workpacket check", {"id": name, "gates": gates})
