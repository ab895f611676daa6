"""Writes the scaffold of a technical refinement: complete in form, with every open point marked as a TODO."""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.documents.refinement import COVERAGE_POINTS
from workpacket.model.ids import WorkPacketId
from workpacket.value import Value

UNSIGNED = "<pending>"
OPEN = "<fill in>"


class RefinementText(Value):
    """What is known when a refinement is begun. `anchors` are the candidates of the stub."""

    wp_id: WorkPacketId
    created_at: str
    spec_pointer: str
    spec_path: str
    spec_digest: str
    anchors: Sequence[str] = ()


def render_refinement(text: RefinementText) -> str:
    """The file, ending with a line feed. ASCII, because what is approved is compared byte for byte."""
    anchors = list(text.anchors) or [OPEN]
    parts = [
        "## TECHNICAL_REFINEMENT (MASTER SPEC)\n",
        "\n".join(_metadata(text)),
        "### GAPS_IDENTIFIED\n- <fill in: what the specification leaves open, or NONE>",
        "### FLIGHT_RECORDER_INTERACTION (event IDs + telemetry triggers)\n- <fill in: events, or NONE>",
        "### RED_TEAM_ADVISORY (security failure modes)\n- <fill in: how it can be attacked, or NONE>",
        "### PRIMITIVES (traits/structs/enums)\n- <fill in: the types it needs, or NONE>",
        "\n".join(_coverage()),
        "\n".join(_enrichment()),
        "### SPEC_ANCHORS (REQUIRED: one or more)",
        *("\n".join(_anchor(number, anchor)) for number, anchor in enumerate(anchors, 1)),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _metadata(text: RefinementText) -> list[str]:
    return [
        "### METADATA",
        f"- WP_ID: {text.wp_id}",
        f"- CREATED_AT: {text.created_at}",
        f"- SPEC_TARGET_RESOLVED: {text.spec_pointer} -> {text.spec_path}",
        f"- SPEC_TARGET_SHA1: {text.spec_digest}",
        "- USER_REVIEW_STATUS: PENDING",
        f"- USER_SIGNATURE: {UNSIGNED}",
        f"- USER_APPROVAL_EVIDENCE: {UNSIGNED}",
    ]


def _coverage() -> list[str]:
    return [
        "### CLEARLY_COVERS (5-point checklist)",
        *(f"- {point}: [ ] PASS" for point in COVERAGE_POINTS),
        f"- CLEARLY_COVERS_VERDICT: {OPEN}",
        f"- CLEARLY_COVERS_REASON: {OPEN}",
        f"- AMBIGUITY_FOUND: {OPEN}",
        f"- AMBIGUITY_REASON: {OPEN}",
    ]


def _enrichment() -> list[str]:
    return ["### ENRICHMENT", f"- ENRICHMENT_NEEDED: {OPEN}", f"- REASON_NO_ENRICHMENT: {OPEN}"]


def _anchor(number: int, anchor: str) -> list[str]:
    shown = anchor.encode("ascii", "backslashreplace").decode()
    return [
        f"#### ANCHOR {number}",
        f"- SPEC_ANCHOR: {shown}",
        f"- CONTEXT_START_LINE: {OPEN}",
        f"- CONTEXT_END_LINE: {OPEN}",
        f"- CONTEXT_TOKEN: {OPEN}",
        "- EXCERPT_ASCII_ESCAPED:",
        "  ```text",
        f"  {OPEN}",
        "  ```",
    ]
