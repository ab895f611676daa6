"""Technical refinements: what was found out before a packet may be activated, and the person's word on it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workpacket.documents.document import TextAt
from workpacket.documents.layout import FieldSpec, Layout, SectionSpec, heading_key
from workpacket.documents.structured import PlacedSection, StructuredDocument, fields_of_section
from workpacket.documents.summary import AnchorSummary, RefinementSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import leading_id
from workpacket.text.node import Node
from workpacket.text.outline import Section
from workpacket.text.source import Source

_FENCE_LINE = lazy_pattern(r"(?:^|(?<=\r)) *(`{3,}|~{3,})[^\r\n]*", re.MULTILINE)
_ANY_LEVEL = (1, 2, 3, 4, 5, 6)

APPROVAL_WORDS = "APPROVE REFINEMENT"
COVERAGE_POINTS = (
    "Appears in Main Body",
    "Explicitly named",
    "Specific",
    "Measurable acceptance criteria",
    "No ambiguity",
)

ANCHOR_FIELDS = (
    FieldSpec("SPEC_ANCHOR", required=True),
    FieldSpec("CONTEXT_START_LINE", required=True),
    FieldSpec("CONTEXT_END_LINE", required=True),
    FieldSpec("CONTEXT_TOKEN", required=True),
    FieldSpec("EXCERPT_ASCII_ESCAPED", required=True),
)

SECTIONS = (
    SectionSpec(
        "metadata",
        "METADATA",
        "fields",
        required=True,
        fields=(
            FieldSpec("WP_ID", required=True),
            FieldSpec("CREATED_AT", required=True),
            FieldSpec("SPEC_TARGET_RESOLVED", required=True),
            FieldSpec("SPEC_TARGET_SHA1", required=True),
            FieldSpec("USER_REVIEW_STATUS", required=True),
            FieldSpec("USER_SIGNATURE", required=True),
            FieldSpec("USER_APPROVAL_EVIDENCE"),
        ),
    ),
    SectionSpec("gaps_identified", "GAPS_IDENTIFIED", "prose", required=True),
    SectionSpec(
        "flight_recorder_interaction",
        "FLIGHT_RECORDER_INTERACTION (event IDs + telemetry triggers)",
        "prose",
        required=True,
    ),
    SectionSpec("red_team_advisory", "RED_TEAM_ADVISORY (security failure modes)", "prose", required=True),
    SectionSpec("primitives", "PRIMITIVES (traits/structs/enums)", "prose", required=True),
    SectionSpec(
        "clearly_covers",
        "CLEARLY_COVERS (5-point checklist)",
        "fields",
        required=True,
        fields=(
            *(FieldSpec(point) for point in COVERAGE_POINTS),
            FieldSpec("CLEARLY_COVERS_VERDICT", required=True, aliases=("verdict",)),
            FieldSpec("CLEARLY_COVERS_REASON", aliases=("reason",)),
            FieldSpec("AMBIGUITY_FOUND"),
            FieldSpec("AMBIGUITY_REASON"),
        ),
    ),
    SectionSpec(
        "enrichment",
        "ENRICHMENT",
        "fields",
        required=True,
        fields=(
            FieldSpec("ENRICHMENT_NEEDED", required=True),
            FieldSpec("REASON_NO_ENRICHMENT"),
            FieldSpec("PROPOSED_SPEC_ENRICHMENT"),
        ),
    ),
    SectionSpec("spec_anchors", "SPEC_ANCHORS (REQUIRED: one or more)", "prose", required=True),
)


class Refinement(StructuredDocument):
    kind = "refinement"
    layout = Layout((3, 2), SECTIONS, frames=frozenset({"technical_refinement"}))

    wp_id = TextAt("metadata", "wp_id")
    created_at = TextAt("metadata", "created_at")
    spec_target = TextAt("metadata", "spec_target_resolved")
    spec_digest = TextAt("metadata", "spec_target_sha1")
    review_status = TextAt("metadata", "user_review_status")
    signature = TextAt("metadata", "user_signature")
    approval_evidence = TextAt("metadata", "user_approval_evidence")
    verdict = TextAt("clearly_covers", "clearly_covers_verdict")
    ambiguity_found = TextAt("clearly_covers", "ambiguity_found")
    enrichment_needed = TextAt("enrichment", "enrichment_needed")
    reason_no_enrichment = TextAt("enrichment", "reason_no_enrichment")

    @property
    def anchors(self) -> list[Node]:
        """One mapping an anchor, its fields in lower case."""
        node = self.at("spec_anchors")
        return node.items if node is not None else []

    @property
    def proposed_enrichment(self) -> str:
        """The text that the specification is to gain."""
        for section in self.sections_at(_ANY_LEVEL):
            if heading_key(section.title) == "proposed_spec_enrichment":
                # The text may hold headings of its own, outside of a fence; it ends where a known section begins.
                start = section.title_span[1]
                later = [known.section.start for known in self.placed if known.section.start > start]
                body = self.source.text[start : min(later, default=len(self.source.text))]
                text = _FENCE_LINE.sub("", body).strip()
                return "" if text.startswith("<") and text.endswith(">") else text
        return ""

    @property
    def own_id(self) -> str:
        return leading_id(self.wp_id.value) if self.wp_id is not None and self.wp_id.value else self.stem

    @property
    def spec_path(self) -> str:
        """The specification that the refinement was made against: what stands behind the arrow."""
        target = self.spec_target
        return target.value.rpartition("->")[2].strip().strip("`") if target is not None else ""

    def section_node(self, placed: PlacedSection) -> Node:
        if placed.spec.key != "spec_anchors":
            return super().section_node(placed)
        anchors = [
            anchor_node(self.source, section)
            for section in placed.section.subsections
            if heading_key(section.title).startswith("anchor")
        ]
        return Node(anchors, *placed.section.title_span)

    def summary(self) -> Mapping[str, object]:
        signature = self.signature
        line, column = self.place(signature)
        summary: RefinementSummary = {
            "id": self.own_id,
            "place": self.place(self.wp_id),
            "approved": self.review_status is not None and self.review_status.value == "APPROVED",
            "signature": (signature.value if signature is not None else "", line, column),
            "spec": self.spec_path,
            "spec_place": self.place(self.spec_target),
            "spec_digest": self.spec_digest.value.lower() if self.spec_digest is not None else "",
            "anchors": [self._anchor_summary(anchor) for anchor in self.anchors],
        }
        return summary

    def _anchor_summary(self, anchor: Node) -> AnchorSummary:
        values = {spec.key: _text_of(anchor, spec.key) for spec in ANCHOR_FIELDS}
        return {
            "place": self.source.line_and_column(anchor.start),
            "start": values["context_start_line"],
            "end": values["context_end_line"],
            "token": values["context_token"],
            "excerpt": values["excerpt_ascii_escaped"],
        }


def anchor_node(source: Source, section: Section) -> Node:
    """One anchor: its fields, the excerpt being what its fence holds."""
    known = {spec.key for spec in ANCHOR_FIELDS}
    entries: dict[str, Node] = {}
    keys: dict[str, tuple[int, int]] = {}
    for field in fields_of_section(source, section):
        if field.name in known and field.name not in entries:
            text = field.value or "\n".join(fence.text(source.text) for fence in field.fences)
            entries[field.name] = Node(text, *(field.value_span if field.value else field.key_span))
            keys[field.name] = field.key_span
    return Node(entries, *section.title_span, keys)


def _text_of(node: Node, key: str) -> str:
    value = node.get(key)
    return value.text or "" if value is not None else ""
