"""Writes a new task packet from what stub and refinement say. What nobody has said yet is a named TODO."""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.documents.packet import SECTIONS
from workpacket.model.ids import WorkPacketId
from workpacket.value import Value

NOT_YET = "(nothing yet)"


class PacketText(Value):
    """What the packet says. Lists hold Markdown of one item each; `acceptance` is a list as the stub has it."""

    wp_id: WorkPacketId
    date: str
    status: str
    requestor: str
    agent: str
    signature: str
    refinement_file: str
    what: str
    why: str
    acceptance: str
    spec_baseline: str
    spec_target: str
    risk_tier: str = ""
    merge_base: str = ""
    in_scope_paths: Sequence[str] = ()
    in_scope: Sequence[str] = ()
    out_of_scope: Sequence[str] = ()
    dependencies: Sequence[str] = ()
    anchors: Sequence[str] = ()
    risks: Sequence[str] = ()
    files_to_open: Sequence[str] = ()
    lineage: Sequence[str] = ()


def render_packet(packet: PacketText) -> str:
    """The file, ending with a line feed."""
    body = {
        "metadata": _metadata(packet),
        "sub_agent_delegation": ["- SUB_AGENT_DELEGATION: DISALLOWED"],
        "technical_refinement": [f"- REFINEMENT_FILE: {packet.refinement_file}"],
        "scope": _scope(packet),
        "waivers_granted": ["- NONE"],
        "quality_gate": _quality_gate(packet),
        "authority": _authority(packet),
        "lineage_audit": _items(packet.lineage, "N/A: this is the first packet of its base."),
        "bootstrap": _bootstrap(packet),
        "evidence_mapping": [f"- {NOT_YET}"],
    }
    parts = [f"# Task Packet: {packet.wp_id}\n"]
    parts += ["\n".join([f"## {spec.heading}", *body.get(spec.key, [NOT_YET])]) + "\n" for spec in SECTIONS]
    return "\n".join(parts)


def _metadata(packet: PacketText) -> list[str]:
    return [
        f"- TASK_ID: {packet.wp_id}",
        f"- WP_ID: {packet.wp_id}",
        f"- BASE_WP_ID: {packet.wp_id.base}",
        f"- DATE: {packet.date}",
        *([f"- MERGE_BASE_SHA: {packet.merge_base}"] if packet.merge_base else []),
        f"- REQUESTOR: {packet.requestor}",
        f"- AGENT_ID: {packet.agent}",
        "- ROLE: Orchestrator",
        "- AGENTIC_MODE: NO",
        f"- **Status:** {packet.status}",
        f"- RISK_TIER: {packet.risk_tier or 'TODO'}",
        f"- USER_SIGNATURE: {packet.signature}",
        "- PACKET_FORMAT_VERSION: 2026-03-01",
    ]


def _scope(packet: PacketText) -> list[str]:
    paths = [f"`{path}`" for path in packet.in_scope_paths]
    return [
        f"- What: {packet.what}",
        f"- Why: {packet.why}",
        *(["- IN_SCOPE_PATHS:", *(f"  - {path}" for path in paths)] if paths else ["- IN_SCOPE_PATHS: TODO"]),
        *_listed("SCOPE_OF_STUB", packet.in_scope),
        *_listed("OUT_OF_SCOPE", packet.out_of_scope),
        *(_listed("DEPENDENCIES", packet.dependencies) if packet.dependencies else []),
    ]


def _quality_gate(packet: PacketText) -> list[str]:
    return [
        "### TEST_PLAN",
        "```bash",
        f"just pre-work {packet.wp_id}",
        f"just post-work {packet.wp_id}",
        "```",
        "",
        "### DONE_MEANS",
        packet.acceptance.strip() or "- TODO",
        "",
        "### ROLLBACK_HINT",
        "```bash",
        "git revert <commit>",
        "```",
    ]


def _authority(packet: PacketText) -> list[str]:
    return [
        f"- SPEC_BASELINE: {packet.spec_baseline}",
        f"- SPEC_TARGET: {packet.spec_target}",
        *_listed("SPEC_ANCHOR", packet.anchors),
    ]


def _bootstrap(packet: PacketText) -> list[str]:
    return [
        *_listed("FILES_TO_OPEN", [packet.refinement_file, *packet.files_to_open]),
        "- SEARCH_TERMS: TODO",
        *_listed("RISK_MAP", packet.risks),
    ]


def _listed(key: str, items: Sequence[str]) -> list[str]:
    return [f"- {key}:", *(f"  {line}" for line in _items(items, "None known."))]


def _items(items: Sequence[str], empty: str) -> list[str]:
    return [f"- {item.strip()}" for item in items] or [f"- {empty}"]
