"""Task packets: the executable form of a work packet.

Two generations are read. The present one has METADATA and QUALITY_GATE; an older one spreads risk tier, test plan and
the meaning of done over sections of their own. Only METADATA says what a packet is: reports further down quote other
packets and other states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workpacket.documents.document import Text, TextAt, TextsAt
from workpacket.documents.evidence import EvidenceBlock, evidence_blocks
from workpacket.documents.layout import FieldSpec, Layout, SectionSpec
from workpacket.documents.structured import walk_items
from workpacket.documents.work import WorkDocument

METADATA_FIELDS = (
    FieldSpec("TASK_ID"),
    FieldSpec("WP_ID"),
    FieldSpec("BASE_WP_ID"),
    FieldSpec("DATE"),
    FieldSpec("MERGE_BASE_SHA"),
    FieldSpec("REQUESTOR"),
    FieldSpec("AGENT_ID"),
    FieldSpec("ROLE"),
    FieldSpec("AGENTIC_MODE"),
    FieldSpec("ORCHESTRATOR_MODEL"),
    FieldSpec("ORCHESTRATION_STARTED_AT_UTC"),
    FieldSpec("CODER_MODEL"),
    FieldSpec("CODER_REASONING_STRENGTH"),
    FieldSpec("Status", required=True, bold=True),
    FieldSpec("RISK_TIER"),
    FieldSpec("USER_SIGNATURE", required=True),
    FieldSpec("PACKET_FORMAT_VERSION"),
)

SECTIONS = (
    SectionSpec("metadata", "METADATA", "fields", required=True, fields=METADATA_FIELDS),
    SectionSpec("sub_agent_delegation", "SUB_AGENT_DELEGATION", "fields"),
    SectionSpec(
        "technical_refinement", "TECHNICAL_REFINEMENT (MASTER SPEC)", "fields", fields=(FieldSpec("REFINEMENT_FILE"),)
    ),
    SectionSpec(
        "scope",
        "SCOPE",
        "fields",
        required=True,
        fields=(
            FieldSpec("What", required=True),
            FieldSpec("Why"),
            FieldSpec("IN_SCOPE_PATHS", many=True, aliases=("in_scope",)),
            FieldSpec("OUT_OF_SCOPE", many=True),
        ),
    ),
    SectionSpec("waivers_granted", "WAIVERS GRANTED", "items"),
    SectionSpec(
        "quality_gate",
        "QUALITY_GATE",
        "fields",
        required=True,
        fields=(
            FieldSpec("TEST_PLAN"),
            FieldSpec("DONE_MEANS", many=True),
            FieldSpec("ROLLBACK_HINT"),
            FieldSpec("RISK_TIER"),
        ),
    ),
    SectionSpec(
        "authority",
        "AUTHORITY",
        "fields",
        required=True,
        fields=(
            FieldSpec("SPEC_BASELINE"),
            FieldSpec("SPEC_TARGET", aliases=("spec_current",)),
            FieldSpec("SPEC_ANCHOR", many=True),
        ),
    ),
    SectionSpec("lineage_audit", "LINEAGE_AUDIT (ALL VERSIONS)", "items"),
    SectionSpec(
        "bootstrap",
        "BOOTSTRAP",
        "fields",
        required=True,
        fields=(
            FieldSpec("FILES_TO_OPEN", many=True),
            FieldSpec("SEARCH_TERMS", many=True),
            FieldSpec("RUN_COMMANDS"),
            FieldSpec("RISK_MAP", many=True),
        ),
    ),
    SectionSpec("skeleton", "SKELETON", "prose"),
    SectionSpec("end_to_end_closure_plan", "END_TO_END_CLOSURE_PLAN", "prose"),
    SectionSpec("implementation", "IMPLEMENTATION", "prose"),
    SectionSpec("hygiene", "HYGIENE", "prose"),
    SectionSpec("validation", "VALIDATION", "prose"),
    SectionSpec("status_handoff", "STATUS_HANDOFF", "prose"),
    SectionSpec("evidence_mapping", "EVIDENCE_MAPPING", "items"),
    SectionSpec("evidence", "EVIDENCE", "prose"),
    SectionSpec("validation_reports", "VALIDATION_REPORTS", "prose", aliases=("validation_report",), repeatable=True),
)

OLDER_SECTIONS = (
    SectionSpec("risk_tier", "RISK_TIER", "fields"),
    SectionSpec("test_plan", "TEST_PLAN", "prose"),
    SectionSpec("done_means", "DONE_MEANS", "items"),
    SectionSpec("rollback_hint", "ROLLBACK_HINT", "prose"),
    SectionSpec("user_context", "User Context", "prose"),
)

_DEPENDENCY_FIELDS = frozenset({"dependencies", "dependency", "depends_on", "dependencies_blockers"})


class Packet(WorkDocument):
    kind = "packet"
    layout = Layout((2,), SECTIONS, older=OLDER_SECTIONS)

    task_id = TextAt("metadata", "task_id")
    wp_id = TextAt("metadata", "wp_id")
    base_wp_id = TextAt("metadata", "base_wp_id")
    date = TextAt("metadata", "date")
    status = TextAt("metadata", "status")
    user_signature = TextAt("metadata", "user_signature")
    what = TextAt("scope", "what")
    in_scope_paths = TextsAt("scope", "in_scope_paths")
    out_of_scope = TextsAt("scope", "out_of_scope")
    refinement_file = TextAt("technical_refinement", "refinement_file")
    evidence_mapping = TextsAt("evidence_mapping")

    @property
    def done_means(self) -> tuple[Text, ...]:
        return self.texts_at("quality_gate", "done_means") or self.texts_at("done_means")

    @property
    def evidence_blocks(self) -> Sequence[EvidenceBlock]:
        node = self.at("evidence")
        return evidence_blocks(self.source, node.start, node.end) if node is not None else ()

    @property
    def risk_tier(self) -> Text | None:
        return (
            self.text_at("metadata", "risk_tier")
            or self.text_at("quality_gate", "risk_tier")
            or self.text_at("risk_tier", "level")
        )

    def id_text(self) -> Text | None:
        return self.wp_id or self.task_id

    def base_text(self) -> Text | None:
        return self.base_wp_id

    def status_text(self) -> Text | None:
        return self.status

    def created_text(self) -> Text | None:
        return self.date

    def risk_text(self) -> Text | None:
        return self.risk_tier

    def signature_text(self) -> Text | None:
        return self.user_signature

    def refinement_text(self) -> Text | None:
        return self.refinement_file

    def dependency_texts(self) -> Iterable[Text]:
        """What the fields that are called so say, in whichever section they stand."""
        for placed in self.placed:
            for field in placed.fields:
                if field.name in _DEPENDENCY_FIELDS:
                    yield Text(field.value, *field.value_span)
                    yield from (Text(item.text, *item.span) for item in walk_items(field.children))

    def title(self) -> str:
        return self.what.value if self.what is not None else ""
