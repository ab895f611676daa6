"""Work packet stubs: backlog entries from which nobody may start work.

Two families are read. The canonical one has STUB_METADATA; the older one `## Identity`, a status line above it and free
headings. `fmt --upgrade` rewrites the second into the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from workpacket.documents.document import Text, TextAt, TextsAt
from workpacket.documents.layout import FieldSpec, Layout, SectionSpec
from workpacket.documents.work import WorkDocument
from workpacket.text.fields import Field

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
            FieldSpec("STUB_STATUS", required=True),
            FieldSpec("SPEC_TARGET", required=True),
            FieldSpec("ROADMAP_POINTER"),
            FieldSpec("ROADMAP_ADD_COVERAGE"),
            FieldSpec("SPEC_ANCHOR_CANDIDATES", many=True),
        ),
        aliases=("identity",),
    ),
    SectionSpec("intent", "INTENT (DRAFT)", "fields", required=True, fields=(FieldSpec("What"), FieldSpec("Why"))),
    SectionSpec(
        "scope",
        "SCOPE_SKETCH (DRAFT)",
        "fields",
        required=True,
        fields=(FieldSpec("IN_SCOPE", many=True), FieldSpec("OUT_OF_SCOPE", many=True)),
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

    wp_id = TextAt("metadata", "wp_id")
    base_wp_id = TextAt("metadata", "base_wp_id")
    created_at = TextAt("metadata", "created_at")
    spec_target = TextAt("metadata", "spec_target")
    roadmap_pointer = TextAt("metadata", "roadmap_pointer")
    roadmap_add_coverage = TextAt("metadata", "roadmap_add_coverage")
    spec_anchor_candidates = TextsAt("metadata", "spec_anchor_candidates")
    what = TextAt("intent", "what")
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
        """The status above the first section, where the older family has it."""
        return next((field for field in self.preamble_fields if field.name == "status"), None)

    def id_text(self) -> Text | None:
        return self.wp_id

    def base_text(self) -> Text | None:
        return self.base_wp_id

    def status_text(self) -> Text | None:
        if self.is_older:
            field = self.status_line
            return Text(field.value, *field.value_span) if field is not None else self.text_at("metadata", "status")
        return self.text_at("metadata", "stub_status")

    def created_text(self) -> Text | None:
        return self.created_at

    def dependency_texts(self) -> Iterable[Text]:
        return self.dependencies

    def title(self) -> str:
        return self.what.value if self.what is not None else ""
