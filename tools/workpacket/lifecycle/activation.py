"""Activation turns a stub into a packet if its gate allows it. Evidence decides, never a ticked box. The checklist of a
stub has seven items. Preconditions: 1 the requirement is in the main body of the specification, not only in a roadmap;
2 the technical refinement is complete and was shown; 3 the user has signed; 4 the refinement is approved.
Postconditions, checked in the files that the activation would write, and later in the existing ones: 5 the packet
exists; 6 it contains the scope and acceptance of the stub; 7 the board has its entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from workpacket.digests import sha256
from workpacket.documents.document import heading_key
from workpacket.documents.structured import body_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.contract_drift import terms_of
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ACTIVATION_GATE, approval_unmet, satisfying, standing_until, still_unmet
from workpacket.lifecycle.moves import Answer, Draft, Planned, move, restore_command
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.scope import is_pathlike, names_one, pattern_of
from workpacket.lifecycle.transitions import move_unmet, transition
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.model.lanes import Lane
from workpacket.model.layout import SPEC_POINTER
from workpacket.problem import Edit, Location, Problem
from workpacket.text.source import Source
from workpacket.value import Value

# The gate's modules are loaded immediately, those of the plan only after the gate is passed.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.packet import Packet
    from workpacket.documents.refinement import Refinement
    from workpacket.documents.stub import Stub
    from workpacket.lifecycle.contract import Contract
    from workpacket.model.lanes import Lane


def ticking(stub: Stub, numbers: Collection[int]) -> Iterator[Edit]:
    """Yield the edits that tick these boxes of the stub's checklist, counted from 1. A checklist with other items is
    left alone, because the meaning of its boxes is unknown.
    """
    boxes = stub.boxes
    for number in numbers if len(boxes) == len(ITEMS) else ():
        start, end = boxes[number - 1]
        if stub.source.text[start:end] == " ":
            yield Edit(start, end, "x")


_HEADING = lazy_pattern(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")


def headings_above(specification: Source, line: int) -> tuple[str, ...]:
    """Return the headings whose sections contain `line`, outermost first."""
    from workpacket.documents.register_table import visible_lines

    open_headings: list[tuple[int, str]] = []
    for visible in visible_lines(specification):
        if visible.number > line:
            break
        match = _HEADING.match(visible.text) if visible.text.lstrip(" ").startswith("#") else None
        if match is not None:
            level = len(match[1])
            while open_headings and open_headings[-1][0] >= level:
                open_headings.pop()
            open_headings.append((level, match[2]))
    return tuple(title for _, title in open_headings)


def roadmap_section(specification: Source, line: int, roadmap_headings: Sequence[str]) -> str:
    """Return the heading of the roadmap section that contains `line`; '' if the line is in the main body."""
    for title in headings_above(specification, line):
        if any(word in title.casefold() for word in roadmap_headings):
            return title
    return ""


ITEMS: Final = (
    "requirement_in_main_body",
    "refinement_presented",
    "user_signature",
    "refinement_approved",
    "packet_created",
    "scope_carried_over",
    "board_entry_moved",
)
_EMPTY_SIGNATURES: Final = ("", "PENDING", "<pending>", "TODO")


class ActivationEvidence(Value):
    """The input of the gate. `faults` are the errors found by a check of the refinement and its anchors. Approval is
    not included: the approvals layer judges it (`lifecycle.gates`), and no waiver can lift that requirement.
    """

    packet: str
    refinement_path: str
    refinement: Refinement | None
    faults: Sequence[Problem]
    specification: Source | None
    presented: LogEvent | None
    block_sha256: str
    policy: LifecyclePolicy


def preconditions(evidence: ActivationEvidence) -> tuple[Problem, ...]:
    """Return everything that is still missing before the stub can become a packet."""
    if evidence.refinement is None:
        return tuple(_without_refinement(evidence))
    return (
        *_main_body(evidence, evidence.refinement),
        *_points_open(evidence.refinement),
        *_presented(evidence, evidence.refinement),
        *_added_items(evidence, evidence.refinement),
        *_approved(evidence, evidence.refinement),
    )


def _without_refinement(evidence: ActivationEvidence) -> Iterator[Problem]:
    """Report items 1 to 4: they all depend on the missing refinement."""
    name, path = evidence.packet, evidence.refinement_path
    refine = f"workpacket refine {name}"
    missing = "no technical refinement: write one that anchors the work in the main body of the specification"
    yield Problem("refinement_missing", missing, Location(path), refine)
    yield Problem(
        "refinement_not_presented",
        "no technical refinement block has been shown",
        Location(path),
        f"{refine} --present",
    )
    yield Problem("user_signature_missing", "the user has not signed", Location(path), _approve(name))
    yield Problem("refinement_not_approved", "no approved refinement", Location(path), _approve(name))


def _approve(packet: str) -> str:
    return f"workpacket approve {packet} --gate activation"


def _main_body(evidence: ActivationEvidence, refinement: Refinement) -> Iterator[Problem]:
    if evidence.specification is None:
        named = refinement.spec_path or "(none named)"
        message = f"the specification that the refinement is based on, {named}, cannot be read"
        yield Problem(
            "specification_unreadable", message, Location(refinement.path), f"workpacket refine {evidence.packet}"
        )
        return
    windows = [anchor.get("context_start_line") for anchor in refinement.anchors]
    lines = [int(text) for node in windows if node is not None and (text := node.text or "").isdecimal()]
    sections = {line: roadmap_section(evidence.specification, line, evidence.policy.roadmap_headings) for line in lines}
    if sections and all(sections.values()):
        line, title = next(iter(sections.items()))
        message = (
            f"the requirement appears only in {title!r} ({evidence.specification.path}:{line}), not in the main body"
        )
        hint = f"edit {refinement.path}: anchor the requirement in the main body, or extend the specification first"
        yield Problem("requirement_only_in_roadmap", message, Location(refinement.path), hint)
    needed = refinement.enrichment_needed
    if needed is not None and needed.value.upper().startswith("YES"):
        message = "ENRICHMENT_NEEDED is YES: the specification must be extended first"
        hint = "add the proposed text to the specification, then write the refinement against the new version"
        yield Problem("enrichment_needed", message, _at(refinement, needed.start), hint)


def unmet_of_main_body(facts: Facts, packet: PacketFacts) -> tuple[Problem, ...]:
    """Return why the first checklist item is unmet: the requirement is not found in the main body."""
    evidence = _evidence(facts, packet)
    return tuple(_main_body(evidence, evidence.refinement)) if evidence.refinement is not None else ()


def _points_open(refinement: Refinement) -> Iterator[Problem]:
    """Report checklist points that contradict the checklist's verdict, because the user's signature would cover
    both."""
    for point, text in refinement.open_points:
        place = _at(refinement, text.start)
        message = f"{point!r} says {text.value!r}, so it is not met"
        yield Problem(
            "coverage_point_open", message, place, f"edit {place.path}:{place.line}: tick the point if it is met"
        )


def _presented(evidence: ActivationEvidence, refinement: Refinement) -> Iterator[Problem]:
    for fault in evidence.faults:
        message = f"{fault.message} ({fault.code})"
        yield Problem(
            "refinement_incomplete", message, Location(fault.path, fault.line), f"edit {fault.path}:{fault.line}"
        )
    shown = evidence.presented
    if shown is None or shown.text("block_sha256") != evidence.block_sha256:
        what = "was never presented" if shown is None else f"was changed after it was shown at {shown.at}"
        message = f"the technical refinement block {what}"
        yield Problem(
            "refinement_not_presented",
            message,
            Location(refinement.path),
            f"workpacket refine {evidence.packet} --present",
        )


def _added_items(evidence: ActivationEvidence, refinement: Refinement) -> Iterator[Problem]:
    """Report missing items that the policy adds: each item requires a section in the refinement."""
    sections = {heading_key(section.title): section for section in refinement.outline.walk()}
    for item in evidence.policy.checklist:
        section = sections.get(heading_key(item.section))
        if section is None or not body_of(refinement.source, section):
            message = f"item {item.item} of the policy requires text in the {item.section} section of the refinement"
            yield Problem("checklist_item_unmet", message, Location(refinement.path), f"edit {refinement.path}")


def _approved(evidence: ActivationEvidence, refinement: Refinement) -> Iterator[Problem]:
    approve = _approve(evidence.packet)
    signature, status = refinement.signature, refinement.review_status
    if signature is None or signature.value in _EMPTY_SIGNATURES:
        place = _at(refinement, signature.start if signature is not None else 0)
        yield Problem("user_signature_missing", "the user has not signed", place, approve)
    if status is None or status.value != "APPROVED":
        place = _at(refinement, status.start if status is not None else 0)
        yield Problem("refinement_not_approved", "USER_REVIEW_STATUS is not APPROVED", place, approve)


def _at(refinement: Refinement, offset: int) -> Location:
    return Location(refinement.path, refinement.source.line_and_column(offset)[0])


def carried_over(stub: Stub, packet: Packet) -> Iterator[Problem]:
    """Yield what the packet lacks of what its stub requires."""
    text = _folded(packet.source.text)
    for criterion in (*stub.acceptance_criteria, *stub.in_scope, *stub.out_of_scope):
        if _folded(criterion.value) not in text:
            message = f"the packet lacks {criterion.value[:100]!r}, which its stub requires"
            yield Problem("scope_not_carried_over", message, Location(packet.path), f"edit {packet.path}")


def _folded(text: str) -> str:
    return " ".join(text.split())


# The item of the checklist to which a waived condition belongs.
_ITEM_OF: Mapping[str, str] = {
    "requirement_only_in_roadmap": ITEMS[0],
    "enrichment_needed": ITEMS[0],
    "coverage_point_open": ITEMS[0],
    "specification_unreadable": ITEMS[0],
    "refinement_incomplete": ITEMS[1],
    "refinement_not_presented": ITEMS[1],
    "user_signature_missing": ITEMS[2],
    "scope_not_carried_over": ITEMS[5],
}
# Conditions that the signature itself satisfies.
_SIGNATURE = frozenset({"user_signature_missing", "refinement_not_approved"})


def activation_unmet(facts: Facts, packet: PacketFacts) -> tuple[tuple[Problem, ...], tuple[LogEvent, ...]]:
    """Return everything that prevents activation, and the waivers that lifted other conditions."""
    if packet.light:
        from workpacket.lifecycle.forms import light_activation_unmet, signature_unmet

        left, waived = light_activation_unmet(facts, packet)
        return (*left, *signature_unmet(facts, packet)), waived
    unmet = _not_a_stub(facts, packet)
    if unmet:
        return unmet, ()
    left, waived = _preconditions(facts, packet)
    return (*left, *approval_unmet(facts.approvals[ACTIVATION_GATE], packet.id.text)), waived


def unmet_besides_signature(facts: Facts, packet: PacketFacts) -> tuple[Problem, ...]:
    """Return the conditions that would keep a stub's gate closed even if the user signed now."""
    if packet.lane not in transition("activate").origins:
        return ()
    if packet.light:
        from workpacket.lifecycle.forms import light_activation_unmet

        return light_activation_unmet(facts, packet)[0]
    unmet = _not_a_stub(facts, packet) or _preconditions(facts, packet)[0]
    return tuple(one for one in unmet if one.code not in _SIGNATURE)


def _not_a_stub(facts: Facts, packet: PacketFacts) -> tuple[Problem, ...]:
    unmet = move_unmet(packet.state, transition("activate"), facts.policy.lanes)
    if unmet:
        return unmet
    if packet.packet_source is not None:
        message = f"{packet.packet_path} already exists, although {packet.id} is a stub according to the log"
        return (Problem("packet_exists", message, Location(packet.packet_path), "workpacket board sync --adopt"),)
    if packet.stub is None:
        message = f"the stub {packet.stub_path} is missing"
        return (Problem("stub_missing", message, Location(packet.stub_path), restore_command(packet.stub_path)),)
    return ()


def _preconditions(facts: Facts, packet: PacketFacts) -> tuple[tuple[Problem, ...], tuple[LogEvent, ...]]:
    found = (*preconditions(_evidence(facts, packet)), *_undemanded(facts, packet))
    return still_unmet(found, packet.state, facts.moment.now, facts.approved)


def _undemanded(facts: Facts, packet: PacketFacts) -> Iterator[Problem]:
    """Report criteria for which the contract specifies no proof, if the policy requires one: the proof must be part of
    what is signed."""
    from workpacket.lifecycle.contract import demands_unmet, stated

    contract = stated(packet.stub, packet.refinement) if packet.stub is not None else ""
    if not isinstance(contract, str):
        yield from demands_unmet(contract, facts.policy.evidence, packet.stub_path)


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
    """Plan the packet, the moved board entry, the registry row, the event, and superseded earlier revisions: all or
    nothing.
    """
    if packet.light:
        from workpacket.lifecycle.forms import activate_light

        return activate_light(facts, packet)
    name = packet.id.text
    unmet, waived = activation_unmet(facts, packet)
    stub, refinement = packet.stub, packet.refinement
    if unmet or stub is None or refinement is None:
        return unmet
    from workpacket.documents.packet import Packet
    from workpacket.lifecycle.claims import close_all
    from workpacket.lifecycle.contract import stated
    from workpacket.lifecycle.projections import lane_named, project

    contract = stated(stub, refinement)
    if isinstance(contract, str):
        return (_no_contract(packet, contract),)
    earlier = list(_earlier(facts, packet))
    lane = lane_named("READY_FOR_DEV", facts.policy.lanes)
    text = _packet_text(facts, packet, stub, contract, earlier, lane)
    draft = Draft("activate", facts)
    draft.put(packet.packet_path, None, text)
    if packet.stub_source is not None:
        draft.rests_on(packet.stub_path, packet.stub_source)
        draft.edit(packet.stub_source, ticking(stub, range(1, len(ITEMS) + 1)))
    draft.rests_on(packet.refinement_path, packet.refinement_source)
    source = Source(packet.packet_path, text)
    superseded: list[Json] = [other.id.text for other in earlier]
    checklist = _checklist({event.text("rule") or "": event.text("reason") or "" for event in waived})
    data: dict[str, Json] = {"supersedes": superseded} if superseded else {}
    if facts.specification is not None:
        data["spec"] = {"path": facts.specification.path, "sha256": facts.specification.digest}
    pinned: Json = {"path": refinement.path, "sha256": refinement.source.digest}
    data |= {"refinement": pinned, "checklist": checklist, **terms_in_event(contract)}
    move(draft, packet, "activated", lane.token, data, satisfying(facts.approvals[ACTIVATION_GATE]))
    remarks: list[str] = []
    for other in earlier:
        move(draft, other, "superseded", "SUPERSEDED", {"by": name})
        remarks += close_all(draft, other, "superseded")
    notes = [f"active={name}", f"activated from stub {packet.stub_path}"]
    notes += [f"supersedes: {', '.join(other.id.text for other in earlier)}"] if earlier else []
    lanes = {name: lane.token, **{other.id.text: "SUPERSEDED" for other in earlier}}
    project(draft, lanes, notes=notes, packet_files={name: source})
    missing = (*carried_over(stub, Packet(source)), *_said_otherwise(packet, contract, source))
    if missing:
        return missing
    said = f"{name} is ready for dev: {packet.packet_path}"
    if earlier:
        said += f"; superseded: {', '.join(other.id.text for other in earlier)}"
    then = f"fill in each TODO in {packet.packet_path}, then: workpacket packet prepare {name}"
    data = {"id": name, "path": packet.packet_path, "supersedes": superseded}
    return Planned(draft.plan(), said, then, data, tuple(remarks))


def terms_in_event(contract: Contract) -> dict[str, Json]:
    """Return the terms of the contract that the event records, so that lists and boards need not read the documents."""
    until = standing_until(contract.scope)
    standing: dict[str, Json] = {"standing": until.isoformat()} if until is not None else {}
    return {**terms_of(contract), "contract": contract.digest, **standing}


def light_terms(contract: Contract, packet: PacketFacts) -> dict[str, Json]:
    """Return these terms for a light packet, except parts that its document leaves out or that its `created` event
    already records.
    """
    begun = packet.state.history[0].data if packet.state.history else {}
    return {key: said for key, said in terms_in_event(contract).items() if said and begun.get(key) != said}


def _no_contract(packet: PacketFacts, why: str) -> Problem:
    return Problem("contract_unreadable", why, Location(packet.stub_path), f"edit {packet.stub_path}")


def _said_otherwise(packet: PacketFacts, contract: Contract, source: Source) -> Iterator[Problem]:
    """Report differences between the packet and its stub: the packet must state the stub's contract, which is the
    approved one.
    """
    from workpacket.documents.packet import Packet
    from workpacket.lifecycle.contract import stated
    from workpacket.lifecycle.contract_drift import difference

    said = stated(Packet(source), packet.refinement)
    if isinstance(said, str):
        yield _no_contract(packet, said)
        return
    for part, _, _ in difference(contract, said):
        message = (
            f"the packet cannot represent {part} as written in the stub; write it as a list with one line per item"
        )
        yield _no_contract(packet, message)


def _earlier(facts: Facts, packet: PacketFacts) -> Iterator[PacketFacts]:
    """Yield the earlier revisions that the packet replaces."""
    for other in facts.revisions(packet.id):
        before = (other.id.revision or 1) < (packet.id.revision or 1)
        lane = facts.policy.lanes.lane(other.lane)
        if other is not packet and before and lane is not None and (lane.unfinished or lane.reclaimable):
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
    facts: Facts, packet: PacketFacts, stub: Stub, contract: Contract, earlier: Sequence[PacketFacts], lane: Lane
) -> str:
    from workpacket.documents.packet import PacketText, render_packet

    refinement = packet.refinement
    assert refinement is not None
    signature = refinement.signature
    in_scope = [item.value for item in stub.in_scope]
    dependencies = packet.dependencies()
    anchors = [text.text or "" for anchor in refinement.anchors if (text := anchor.get("spec_anchor")) is not None]
    return render_packet(
        PacketText(
            wp_id=packet.id,
            date=facts.moment.now,
            status=lane.title,
            requestor=facts.actor.id,
            agent=facts.actor.id,
            signature=signature.value if signature is not None else "",
            refinement_file=packet.refinement_path,
            what=contract.what or "TODO",
            why=contract.why or "TODO",
            risk_tier=contract.risk,
            acceptance=_section(stub, "acceptance_criteria")
            or "\n".join(f"- {c.value}" for c in stub.acceptance_criteria),
            spec_baseline=refinement.spec_path,
            spec_target=SPEC_POINTER,
            in_scope_paths=[pattern_of(item) for item in in_scope if is_pathlike(item) or names_one(item)],
            in_scope=stub.markdown_of("scope", "in_scope") or in_scope,
            out_of_scope=stub.markdown_of("scope", "out_of_scope") or [item.value for item in stub.out_of_scope],
            dependencies=dependencies,
            coordination=[
                text for text in stub.markdown_of("dependencies") if text not in (*dependencies, _NONE_KNOWN)
            ],
            anchors=anchors,
            risks=[risk.value for risk in stub.risks],
            files_to_open=[SPEC_POINTER, packet.stub_path],
            lineage=list(_lineage(facts, packet, stub, earlier)),
        )
    )


_NONE_KNOWN: Final = "None known."


def _section(stub: Stub, key: str) -> str:
    placed = stub.placed_section(key)
    return body_of(stub.source, placed.section) if placed is not None else ""


def _lineage(facts: Facts, packet: PacketFacts, stub: Stub, superseded: Sequence[PacketFacts]) -> Iterator[str]:
    """Yield every earlier revision, with what is preserved and what is changed."""
    ours = {" ".join(text.value.split()) for text in (*stub.acceptance_criteria, *stub.in_scope)}
    for other in facts.revisions(packet.id):
        if other is packet or (other.id.revision or 1) > (packet.id.revision or 1):
            continue
        theirs = _demands(other)
        kept = [demand for demand in theirs if demand in ours]
        path = other.packet_path if other.packet_source is not None else other.stub_path
        state = "superseded by this packet" if other in superseded else f"was {other.lane or 'without a log'}"
        yield f"{path} ({state}): {len(kept)} of {len(theirs)} requirements preserved word for word"
        for demand in theirs:
            if demand not in ours:
                yield f"{other.id}, changed or continued elsewhere (TODO: say which): {demand}"


def _demands(other: PacketFacts) -> list[str]:
    if other.packet is not None:
        return [" ".join(text.value.split()) for text in other.packet.done_means]
    if other.stub is not None:
        return [" ".join(text.value.split()) for text in (*other.stub.acceptance_criteria, *other.stub.in_scope)]
    return []


def presented_block(refinement: Refinement) -> str:
    """Return what is shown to the user: the refinement without the fields that contain the user's answers."""
    placed = refinement.placed_section("metadata")
    lines = {
        refinement.source.line_and_column(field.key_span[0])[0]
        for field in (placed.fields if placed is not None else ())
        if field.name in refinement.answers
    }
    kept = (refinement.source.line(n) for n in range(1, refinement.source.line_count + 1) if n not in lines)
    return "\n".join(kept)


def block_digest(refinement: Refinement) -> str:
    return sha256(presented_block(refinement).encode("utf-8", "surrogateescape")).hexdigest()
