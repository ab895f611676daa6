"""Work packet stubs: backlog entries from which work must not start.

Two families are read. The canonical one has STUB_METADATA; the older one has `## Identity`, a status line above it and
free headings. `fmt --upgrade` rewrites the second into the first.

Also writes stubs in canonical form, for `new` and `fmt --upgrade`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from workpacket.documents.document import FieldSpec, Layout, SectionSpec, Text, TextAt, TextsAt, fields
from workpacket.documents.structured import WorkDocument, awaited, items_of_section
from workpacket.model.ids import WorkPacketId
from workpacket.model.layout import SPEC_POINTER
from workpacket.text.blocks import Field, Item
from workpacket.value import NOTHING, Value

CANONICAL_STATUS = "STUB (NOT READY FOR DEV)"
CHECKLIST_LENGTH = 7

SECTIONS = (
    SectionSpec(
        "metadata",
        "STUB_METADATA",
        "fields",
        required=True,
        fields=(
            FieldSpec("WP_ID", required=True),
            FieldSpec("BASE_WP_ID"),
            FieldSpec("CREATED_AT", required=True, aliases=("created",)),
            *fields("STUB_STATUS", "SPEC_TARGET", required=True),
            *fields("ROADMAP_POINTER", "ROADMAP_ADD_COVERAGE"),
            FieldSpec("RISK_TIER"),
            FieldSpec("SPEC_ANCHOR_CANDIDATES", many=True),
        ),
        aliases=("identity",),
    ),
    SectionSpec("intent", "INTENT (DRAFT)", "fields", required=True, fields=fields("What", "Why")),
    SectionSpec(
        "scope",
        "SCOPE_SKETCH (DRAFT)",
        "fields",
        required=True,
        fields=fields("IN_SCOPE", "OUT_OF_SCOPE", many=True),
    ),
    SectionSpec("acceptance_criteria", "ACCEPTANCE_CRITERIA (DRAFT)", "items", required=True),
    SectionSpec("dependencies", "DEPENDENCIES / BLOCKERS (DRAFT)", "items", required=True),
    SectionSpec("risks", "RISKS / UNKNOWNs (DRAFT)", "items", required=True),
    SectionSpec(
        "activation_checklist", "ACTIVATION_CHECKLIST (REQUIRED BEFORE ANY CODING)", "checklist", required=True
    ),
)

EXTRA_SECTIONS = (
    SectionSpec("problem_statement", "PROBLEM_STATEMENT (DRAFT)", "prose"),
    SectionSpec("design_sketch", "DESIGN_SKETCH (DRAFT)", "prose"),
    SectionSpec("validation_plan", "VALIDATION_PLAN (DRAFT)", "prose"),
    SectionSpec("red_team", "RED_TEAM / ABUSE_CASES (DRAFT)", "prose"),
    SectionSpec("validator_rubric_hooks", "VALIDATOR_RUBRIC_HOOKS (DRAFT)", "prose"),
    SectionSpec("proposed_spec_enrichment", "PROPOSED_SPEC_ENRICHMENT_SKELETON (DRAFT)", "prose"),
)

OLDER_SECTIONS = (
    SectionSpec("why", "Why this stub exists", "prose"),
    SectionSpec("roadmap_pointer", "Roadmap pointer (non-authoritative)", "prose"),
    SectionSpec("anchors", "SPEC_ANCHOR_CANDIDATES (Main Body, authoritative)", "items"),
    SectionSpec("prior_packet", "Prior packet", "fields"),
    SectionSpec("known_gaps", "Known gaps (Task Board summary)", "items"),
)


class Stub(WorkDocument):
    kind = "stub"
    layout = Layout((2,), SECTIONS, EXTRA_SECTIONS, OLDER_SECTIONS)

    spec_target = TextAt("metadata", "spec_target")
    roadmap_pointer = TextAt("metadata", "roadmap_pointer")
    roadmap_add_coverage = TextAt("metadata", "roadmap_add_coverage")
    spec_anchor_candidates = TextsAt("metadata", "spec_anchor_candidates")
    what = TextAt("intent", "what")
    why = TextAt("intent", "why")
    in_scope = TextsAt("scope", "in_scope")
    out_of_scope = TextsAt("scope", "out_of_scope")
    acceptance_criteria = TextsAt("acceptance_criteria")
    dependencies = TextsAt("dependencies")
    risks = TextsAt("risks")

    @property
    def schema(self) -> str:
        return "stub_identity" if self.is_older else "stub"

    @property
    def is_older(self) -> bool:
        """Whether the stub belongs to the older family."""
        placed = self.placed_section("metadata")
        return placed is not None and placed.section.title.casefold().startswith("identity")

    @cached_property
    def status_line(self) -> Field | None:
        """Return the status above the first section, where the older family has it."""
        return next((field for field in self.preamble_fields if field.name == "status"), None)

    def status_text(self) -> Text | None:
        if self.is_older:
            field = self.status_line
            return Text(field.value, *field.value_span) if field is not None else self.text_at("metadata", "status")
        return self.text_at("metadata", "stub_status")

    def anchor_texts(self) -> Iterable[Text]:
        return self.spec_anchor_candidates

    def dependency_texts(self) -> Iterable[Text]:
        placed = self.placed_section("dependencies")
        return awaited(items_of_section(self.source, placed.section)) if placed is not None else ()

    def markdown_of(self, section: str, key: str = "") -> tuple[str, ...]:
        """Return each item of a section, or of a field in it, with the items below it on separate lines."""
        placed = self.placed_section(section)
        if placed is None:
            return ()
        if not key:
            return tuple(_nested(item) for item in items_of_section(self.source, placed.section))
        fields = [field for field in placed.fields if field.name == key]
        return tuple(_nested(item) for field in fields for item in field.children)

    @cached_property
    def boxes(self) -> list[tuple[int, int]]:
        """Return the positions of the characters inside the checklist's boxes."""
        placed = self.placed_section("activation_checklist")
        items = items_of_section(self.source, placed.section) if placed is not None else ()
        return [item.box for item in items if item.box is not None]


def _nested(item: Item) -> str:
    lines = [item.text]
    for child in item.children:
        first, *more = _nested(child).split("\n")
        lines += [f"- {first}", *(f"  {line}" for line in more)]
    return "\n".join(lines)


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


class StubText(Value):
    """The content of a stub. Lists contain the Markdown of one item each; `sections` are extra ones, mapping heading to
    body."""

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
    risk_tier: str = ""
    sections: Mapping[str, str] = NOTHING


def render_stub(stub: StubText) -> str:
    """Return the file, ending with a newline."""
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
        *([f"- RISK_TIER: {stub.risk_tier}"] if stub.risk_tier else []),
        f"- ROADMAP_POINTER: {stub.roadmap_pointer}",
        *_listed("SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap)", stub.anchors),
    ]


def _listed(key: str, items: Sequence[str]) -> list[str]:
    return [f"- {key}:", *(f"  {line}" for line in _items(items))]


def _items(items: Sequence[str]) -> list[str]:
    """Return a list. An empty one says so explicitly, because an empty section looks as if it had been forgotten."""
    return [f"- {item.strip()}" for item in items] or ["- None known."]
