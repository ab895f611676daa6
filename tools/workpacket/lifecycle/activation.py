"""The activation gate: the seven items of a stub's checklist, derived from evidence and never from a ticked box.

Preconditions: 1 the requirement stands in the main body of the specification; 2 the technical refinement is complete
and was presented; 3 the user's signature; 4 the refinement is approved. Postconditions, looked for in the files that
the activation would write and later in those that are there: 5 the packet; 6 scope and acceptance of the stub in it;
7 the entry on the board.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from workpacket.documents.layout import heading_key
from workpacket.documents.packet import Packet
from workpacket.documents.refinement import Refinement
from workpacket.documents.structured import body_of
from workpacket.documents.stub import Stub
from workpacket.documents.task_board import TaskBoard
from workpacket.lifecycle.main_body import roadmap_section
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.unmet import Unmet
from workpacket.model.events import Event
from workpacket.model.findings import Finding
from workpacket.text.source import Source
from workpacket.value import Value

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
    """What the gate looks at. `faults` are the errors that a check of the refinement finds, anchors included.

    Whether it is approved is not among it: that is a verdict of the approvals layer (`lifecycle.approval`), which no
    waiver can lift.
    """

    packet: str
    refinement_path: str
    refinement: Refinement | None
    faults: Sequence[Finding]
    specification: Source | None
    presented: Event | None
    block_sha256: str
    policy: LifecyclePolicy


def preconditions(evidence: ActivationEvidence) -> tuple[Unmet, ...]:
    """Everything that is missing before the stub may become a packet."""
    if evidence.refinement is None:
        return tuple(_without_refinement(evidence))
    return (
        *_main_body(evidence, evidence.refinement),
        *_presented(evidence, evidence.refinement),
        *_added_items(evidence, evidence.refinement),
        *_approved(evidence, evidence.refinement),
    )


def _without_refinement(evidence: ActivationEvidence) -> Iterator[Unmet]:
    """Items 1 to 4 rest on the refinement; each is named, because each is still to be done."""
    name, path = evidence.packet, evidence.refinement_path
    refine = f"workpacket refine {name}"
    missing = "nobody has shown that the specification requires it in its main body: there is no technical refinement"
    yield Unmet("refinement_missing", missing, refine, path)
    yield Unmet("refinement_not_presented", "no technical refinement block was presented", f"{refine} --present", path)
    yield Unmet("user_signature_missing", "the user has not signed", _approve(name), path)
    yield Unmet("refinement_not_approved", "there is no refinement that is approved", _approve(name), path)


def _approve(packet: str) -> str:
    return f"workpacket approve {packet} --gate activation"


def _main_body(evidence: ActivationEvidence, refinement: Refinement) -> Iterator[Unmet]:
    if evidence.specification is None:
        named = refinement.spec_path or "(none named)"
        message = f"the specification that the refinement rests on, {named}, cannot be read"
        yield Unmet("specification_unreadable", message, f"workpacket refine {evidence.packet}", refinement.path)
        return
    windows = [anchor.get("context_start_line") for anchor in refinement.anchors]
    lines = [int(text) for node in windows if node is not None and (text := node.text or "").isdecimal()]
    sections = {line: roadmap_section(evidence.specification, line, evidence.policy.roadmap_headings) for line in lines}
    if sections and all(sections.values()):
        line, title = next(iter(sections.items()))
        message = (
            f"the requirement stands only in {title!r} ({evidence.specification.path}:{line}), not in the main body"
        )
        hint = f"edit {refinement.path}: anchor the requirement in the main body, or enrich the specification first"
        yield Unmet("requirement_only_in_roadmap", message, hint, refinement.path)
    needed = refinement.enrichment_needed
    if needed is not None and needed.value.upper().startswith("YES"):
        message = "ENRICHMENT_NEEDED is YES: the specification has to be enriched before"
        hint = "add the proposed text to the specification, then refine against the new version"
        yield Unmet("enrichment_needed", message, hint, *_at(refinement, needed.start))


def _presented(evidence: ActivationEvidence, refinement: Refinement) -> Iterator[Unmet]:
    for fault in evidence.faults:
        message = f"{fault.message} ({fault.code})"
        yield Unmet("refinement_incomplete", message, f"edit {fault.path}:{fault.line}", fault.path, fault.line)
    shown = evidence.presented
    if shown is None or shown.text("block_sha256") != evidence.block_sha256:
        what = "was never presented" if shown is None else f"was changed since it was presented at {shown.at}"
        message = f"the technical refinement block {what}"
        yield Unmet(
            "refinement_not_presented", message, f"workpacket refine {evidence.packet} --present", refinement.path
        )


def _added_items(evidence: ActivationEvidence, refinement: Refinement) -> Iterator[Unmet]:
    """The items that the policy adds: each wants a section of the refinement."""
    sections = {heading_key(section.title): section for section in refinement.outline.walk()}
    for item in evidence.policy.checklist:
        section = sections.get(heading_key(item.section))
        if section is None or not body_of(refinement.source, section):
            message = f"the policy's item {item.item} wants the section {item.section} in the refinement, with text"
            yield Unmet("checklist_item_unmet", message, f"edit {refinement.path}", refinement.path)


def _approved(evidence: ActivationEvidence, refinement: Refinement) -> Iterator[Unmet]:
    approve = _approve(evidence.packet)
    signature, status = refinement.signature, refinement.review_status
    if signature is None or signature.value in _EMPTY_SIGNATURES:
        place = _at(refinement, signature.start if signature is not None else 0)
        yield Unmet("user_signature_missing", "the user has not signed", approve, *place)
    if status is None or status.value != "APPROVED":
        place = _at(refinement, status.start if status is not None else 0)
        yield Unmet("refinement_not_approved", "USER_REVIEW_STATUS is not APPROVED", approve, *place)


def _at(refinement: Refinement, offset: int) -> tuple[str, int]:
    return refinement.path, refinement.source.line_and_column(offset)[0]


def postconditions(stub: Stub | None, packet: Packet | None, board: TaskBoard | None, wp_id: str) -> tuple[Unmet, ...]:
    """What an activated packet lacks."""
    return (*carried_over(stub, packet, wp_id), *_board_moved(board, wp_id))


def carried_over(stub: Stub | None, packet: Packet | None, wp_id: str) -> Iterator[Unmet]:
    if packet is None:
        yield Unmet("packet_missing", f"{wp_id} was activated, but there is no packet", f"workpacket activate {wp_id}")
        return
    text = _folded(packet.source.text)
    criteria = (*stub.acceptance_criteria, *stub.in_scope, *stub.out_of_scope) if stub is not None else ()
    for criterion in criteria:
        if _folded(criterion.value) not in text:
            message = f"the stub says {criterion.value[:100]!r}, the packet does not"
            yield Unmet("scope_not_carried_over", message, f"edit {packet.path}", packet.path)


def _board_moved(board: TaskBoard | None, wp_id: str) -> Iterator[Unmet]:
    entries = [] if board is None else [entry for entry in board.entries if entry.wp_id.value == wp_id]
    if not any(entry.lane_token not in {"", "STUB"} for entry in entries):
        yield Unmet("board_entry_not_moved", f"{wp_id} still stands as STUB on the board", "workpacket board sync")


def _folded(text: str) -> str:
    return " ".join(text.split())
