"""Writes a stub in its canonical form. `new` makes stubs with it, `fmt --upgrade` rewrites older ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workpacket.documents.stub import CANONICAL_STATUS, SECTIONS
from workpacket.model.ids import WorkPacketId
from workpacket.value import NOTHING, Value

PREAMBLE = """# TASK_PACKET_STUB_TEMPLATE

This is a BACKLOG STUB. It is NOT an executable Task Packet.

Rules:
- No USER_SIGNATURE is requested/required for stubs.
- No refinement file is required for stubs.
- Coder/Validator MUST NOT start work from a stub.
- When activating a stub into a real WP, follow `.GOV/roles/orchestrator/ORCHESTRATOR_PROTOCOL.md` \
(Technical Refinement Block + USER_SIGNATURE + refinement + `just create-task-packet`).
- If a Base WP later gains multiple packets (revisions), record Base WP -> Active Packet in \
`.GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md`.

---
"""

CHECKLIST = (
    "Confirm the requirement exists in Master Spec Main Body (not just Roadmap).",
    "Produce the in-chat Technical Refinement Block (per `.GOV/roles/orchestrator/ORCHESTRATOR_PROTOCOL.md`).",
    "Obtain USER_SIGNATURE for the WP.",
    "Create `.GOV/refinements/{id}.md` (approved/signed).",
    "Create the official task packet via `just create-task-packet {id}` (in `.GOV/task_packets/`).",
    "Copy relevant scope/acceptance notes from this stub into the official packet.",
    "Move `.GOV/roles_shared/TASK_BOARD.md` entry from STUB to Ready for Dev.",
)

SPEC_POINTER = ".GOV/roles_shared/SPEC_CURRENT.md"


class StubText(Value):
    """What a stub says. Lists hold Markdown of one item each; `sections` are extra ones, heading to body."""

    wp_id: WorkPacketId
    created_at: str
    roadmap_pointer: str
    what: str
    why: str
    spec_target: str = SPEC_POINTER
    status: str = CANONICAL_STATUS
    anchors: Sequence[str] = ()
    in_scope: Sequence[str] = ()
    out_of_scope: Sequence[str] = ()
    acceptance_criteria: Sequence[str] = ()
    dependencies: Sequence[str] = ()
    risks: Sequence[str] = ()
    sections: Mapping[str, str] = NOTHING


def render_stub(stub: StubText) -> str:
    """The file, ending with a line feed."""
    body = {
        "metadata": _metadata(stub),
        "intent": [f"- What: {stub.what}", f"- Why: {stub.why}"],
        "scope": [*_listed("IN_SCOPE", stub.in_scope), *_listed("OUT_OF_SCOPE", stub.out_of_scope)],
        "acceptance_criteria": _items(stub.acceptance_criteria),
        "dependencies": _items(stub.dependencies),
        "risks": _items(stub.risks),
        "activation_checklist": [f"- [ ] {item.format(id=stub.wp_id)}" for item in CHECKLIST],
    }
    parts = [PREAMBLE, f"# Work Packet Stub: {stub.wp_id}\n"]
    for spec in SECTIONS:
        if spec.key == "activation_checklist":
            parts += [f"## {heading}\n{text.strip()}\n" for heading, text in stub.sections.items()]
        parts.append("\n".join([f"## {spec.heading}", *body[spec.key]]) + "\n")
    return "\n".join(parts)


def _metadata(stub: StubText) -> list[str]:
    return [
        f"- WP_ID: {stub.wp_id}",
        f"- BASE_WP_ID: {stub.wp_id.base}",
        f"- CREATED_AT: {stub.created_at}",
        f"- STUB_STATUS: {stub.status}",
        f"- SPEC_TARGET: {stub.spec_target}",
        f"- ROADMAP_POINTER: {stub.roadmap_pointer}",
        *_listed("SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap)", stub.anchors),
    ]


def _listed(key: str, items: Sequence[str]) -> list[str]:
    return [f"- {key}:", *(f"  {line}" for line in _items(items))]


def _items(items: Sequence[str]) -> list[str]:
    """A list; an empty one says so, because an empty section looks forgotten."""
    return [f"- {item.strip()}" for item in items] or ["- None known."]
