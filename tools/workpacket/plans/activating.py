"""Activation: a stub becomes a packet, if the gate lets it; what the user signed goes into the packet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workpacket.documents.packet import Packet
from workpacket.documents.packet_text import PacketText, render_packet
from workpacket.documents.register_text import BOARD_PATH
from workpacket.documents.structured import body_of
from workpacket.documents.stub import Stub
from workpacket.documents.stub_text import SPEC_POINTER
from workpacket.documents.task_board import TaskBoard
from workpacket.lifecycle.activation import ITEMS, ActivationEvidence, postconditions, preconditions
from workpacket.lifecycle.approval import ACTIVATION_GATE, approval_unmet, satisfying
from workpacket.lifecycle.moving import move_unmet
from workpacket.lifecycle.scope import is_pathlike, pattern_of
from workpacket.lifecycle.transitions import transition
from workpacket.lifecycle.unmet import Unmet
from workpacket.lifecycle.waivers import still_unmet
from workpacket.model.canonical import Json
from workpacket.model.events import Event
from workpacket.model.lanes import Lane
from workpacket.plans.backlog import block_digest
from workpacket.plans.drafting import Answer, Draft, Planned, Refused
from workpacket.plans.facts import Facts, PacketFacts
from workpacket.plans.linking import close_all
from workpacket.plans.moving import move, project
from workpacket.plans.projections import lane_named
from workpacket.text.source import Source

# Which item of the checklist a waived condition belongs to.
_ITEM_OF: Mapping[str, str] = {
    "requirement_only_in_roadmap": ITEMS[0],
    "enrichment_needed": ITEMS[0],
    "specification_unreadable": ITEMS[0],
    "refinement_incomplete": ITEMS[1],
    "refinement_not_presented": ITEMS[1],
    "user_signature_missing": ITEMS[2],
    "scope_not_carried_over": ITEMS[5],
}
# What the signature itself supplies.
_SIGNATURE = frozenset({"user_signature_missing", "refinement_not_approved"})
_LIVE_BEFORE = ("STUB", "READY_FOR_DEV", "IN_PROGRESS", "IN_REVIEW", "MERGE_PENDING", "BLOCKED", "FAIL")


def activation_unmet(facts: Facts, packet: PacketFacts) -> tuple[tuple[Unmet, ...], tuple[Event, ...]]:
    """Everything that stands between the stub and its packet, and the waivers that lifted other conditions."""
    unmet = _not_a_stub(facts, packet)
    if unmet:
        return unmet, ()
    left, waived = _preconditions(facts, packet)
    return (*left, *approval_unmet(facts.approvals[ACTIVATION_GATE], packet.id.text)), waived


def unmet_besides_signature(facts: Facts, packet: PacketFacts) -> tuple[Unmet, ...]:
    """What would keep the gate of a stub shut although the user signed now."""
    if packet.lane not in transition("activate").origins:
        return ()
    unmet = _not_a_stub(facts, packet) or _preconditions(facts, packet)[0]
    return tuple(one for one in unmet if one.code not in _SIGNATURE)


def _not_a_stub(facts: Facts, packet: PacketFacts) -> tuple[Unmet, ...]:
    unmet = move_unmet(packet.state, transition("activate"), facts.policy.lanes)
    if unmet:
        return unmet
    if packet.packet_source is not None:
        message = f"{packet.packet_path} is there already, though the log has {packet.id} as a stub"
        return (Unmet("packet_exists", message, "workpacket board sync --adopt", packet.packet_path),)
    if packet.stub is None:
        message = f"the stub {packet.stub_path} is missing"
        return (Unmet("stub_missing", message, f"git restore {packet.stub_path}", packet.stub_path),)
    return ()


def _preconditions(facts: Facts, packet: PacketFacts) -> tuple[tuple[Unmet, ...], tuple[Event, ...]]:
    return still_unmet(preconditions(_evidence(facts, packet)), packet.state, facts.moment.now, facts.approved)


def _evidence(facts: Facts, packet: PacketFacts) -> ActivationEvidence:
    refinement = packet.refinement
    return ActivationEvidence(
        packet=packet.id.text,
        refinement_path=packet.refinement_path,
        refinement=refinement,
        faults=facts.refinement_faults.get(packet.id.text, ()),
        specification=facts.specification,
        presented=packet.state.presented,
        block_sha256=block_digest(refinement) if refinement is not None else "",
        policy=facts.policy,
    )


def activate(facts: Facts, packet: PacketFacts) -> Answer:
    """The packet, the moved entry, the row, the event, and earlier revisions superseded: all of it or nothing."""
    name = packet.id.text
    unmet, waived = activation_unmet(facts, packet)
    stub, refinement = packet.stub, packet.refinement
    if unmet or stub is None or refinement is None:
        return Refused(name, unmet)
    earlier = list(_earlier(facts, packet))
    lane = lane_named("READY_FOR_DEV", facts.policy.lanes)
    text = render_packet(_packet_text(facts, packet, stub, earlier, lane))
    draft = Draft("activate", facts)
    draft.put(packet.packet_path, None, text)
    draft.rests_on(packet.stub_path, packet.stub_source)
    draft.rests_on(packet.refinement_path, packet.refinement_source)
    source = Source(packet.packet_path, text)
    superseded: list[Json] = [other.id.text for other in earlier]
    checklist = _checklist({event.text("rule") or "": event.text("reason") or "" for event in waived})
    data: dict[str, Json] = {"supersedes": superseded} if superseded else {}
    if facts.specification is not None:
        data["spec"] = {"path": facts.specification.path, "sha256": facts.specification.digest}
    pinned: Json = {"path": refinement.path, "sha256": refinement.source.digest}
    data |= {"refinement": pinned, "checklist": checklist}
    move(draft, packet, "activated", lane.token, data, satisfying(facts.approvals[ACTIVATION_GATE]))
    remarks: list[str] = []
    for other in earlier:
        move(draft, other, "superseded", "SUPERSEDED", {"by": name})
        remarks += close_all(draft, other, "superseded")
    notes = [f"active={name}", f"activated from stub {packet.stub_path}"]
    notes += [f"supersedes: {', '.join(other.id.text for other in earlier)}"] if earlier else []
    lanes = {name: lane.token, **{other.id.text: "SUPERSEDED" for other in earlier}}
    project(draft, lanes, notes=notes, packet_files={name: source})
    missing = _after(draft, stub, source, name)
    if missing:
        return Refused(name, missing)
    said = f"{name} is ready for dev: {packet.packet_path}"
    if earlier:
        said += f"; superseded: {', '.join(other.id.text for other in earlier)}"
    then = f"edit what is TODO in {packet.packet_path}, then: workpacket prepare {name}"
    data = {"id": name, "path": packet.packet_path, "supersedes": superseded}
    return Planned(draft.plan(), said, then, data, tuple(remarks))


def _after(draft: Draft, stub: Stub, source: Source, name: str) -> tuple[Unmet, ...]:
    """The postconditions, looked for in the files as the plan would leave them."""
    board = draft.file(BOARD_PATH, draft.facts.board)
    return postconditions(
        stub, Packet(source), TaskBoard(board, draft.facts.policy.lanes) if board is not None else None, name
    )


def _earlier(facts: Facts, packet: PacketFacts) -> Iterator[PacketFacts]:
    """The earlier revisions whose place the packet takes."""
    for other in facts.revisions(packet.id):
        before = (other.id.revision or 1) < (packet.id.revision or 1)
        live = other.lane in _LIVE_BEFORE or facts.policy.lanes.is_added(other.lane)
        if other is not packet and before and live:
            yield other


def _checklist(waived: Mapping[str, str]) -> list[Json]:
    reasons = {_ITEM_OF.get(rule, ITEMS[3]): reason for rule, reason in waived.items()}
    return [
        {"item": item, "result": "waived", "reason": reasons[item]}
        if item in reasons
        else {"item": item, "result": "met"}
        for item in ITEMS
    ]


def _packet_text(
    facts: Facts, packet: PacketFacts, stub: Stub, earlier: Sequence[PacketFacts], lane: Lane
) -> PacketText:
    refinement = packet.refinement
    assert refinement is not None
    signature = refinement.signature
    in_scope = [item.value for item in stub.in_scope]
    dependencies = packet.dependencies()
    anchors = [text.text or "" for anchor in refinement.anchors if (text := anchor.get("spec_anchor")) is not None]
    why = stub.text_at("intent", "why")
    return PacketText(
        wp_id=packet.id,
        date=facts.moment.now,
        status=lane.title,
        requestor=facts.actor.id,
        agent=facts.actor.id,
        signature=signature.value if signature is not None else "",
        refinement_file=packet.refinement_path,
        what=stub.what.value if stub.what is not None else "TODO",
        why=why.value if why is not None else "TODO",
        acceptance=_section(stub, "acceptance_criteria") or "\n".join(f"- {c.value}" for c in stub.acceptance_criteria),
        spec_baseline=refinement.spec_path,
        spec_target=SPEC_POINTER,
        in_scope_paths=[pattern_of(item) for item in in_scope if is_pathlike(item)],
        in_scope=in_scope,
        out_of_scope=[item.value for item in stub.out_of_scope],
        dependencies=dependencies,
        anchors=anchors,
        risks=[risk.value for risk in stub.risks],
        files_to_open=[SPEC_POINTER, packet.stub_path],
        lineage=list(_lineage(facts, packet, stub, earlier)),
    )


def _section(stub: Stub, key: str) -> str:
    placed = stub.placed_section(key)
    return body_of(stub.source, placed.section) if placed is not None else ""


def _lineage(facts: Facts, packet: PacketFacts, stub: Stub, superseded: Sequence[PacketFacts]) -> Iterator[str]:
    """Every earlier revision: what of it is preserved, what is changed."""
    ours = {" ".join(text.value.split()) for text in (*stub.acceptance_criteria, *stub.in_scope)}
    for other in facts.revisions(packet.id):
        if other is packet or (other.id.revision or 1) > (packet.id.revision or 1):
            continue
        theirs = _demands(other)
        kept = [demand for demand in theirs if demand in ours]
        path = other.packet_path if other.packet_source is not None else other.stub_path
        state = "superseded by this packet" if other in superseded else f"was {other.lane or 'without a log'}"
        yield f"{path} ({state}): {len(kept)} of {len(theirs)} demands preserved word for word"
        for demand in theirs:
            if demand not in ours:
                yield f"{other.id}, changed or carried on elsewhere (TODO: say which): {demand}"


def _demands(other: PacketFacts) -> list[str]:
    if other.packet is not None:
        return [" ".join(text.value.split()) for text in other.packet.done_means]
    if other.stub is not None:
        return [" ".join(text.value.split()) for text in (*other.stub.acceptance_criteria, *other.stub.in_scope)]
    return []
