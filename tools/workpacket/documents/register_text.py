"""Writes an empty task board and an empty traceability registry, and single lines of each."""

from __future__ import annotations

from workpacket.model.lanes import BUILT_IN, Lane, LaneTable

BOARD_PATH = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY_PATH = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"


def empty_board(lanes: LaneTable = BUILT_IN) -> str:
    return "\n".join(["# Task Board", *(f"\n## {section.heading}" for section in lanes.sections)]) + "\n"


def empty_registry() -> str:
    return (
        "# Work Packet Traceability Registry\n\n"
        "| Base WP ID | Active Packet | Task Board | Notes |\n"
        "|---|---|---|---|\n"
    )


def entry_line(wp_id: str, token: str, remark: str = "") -> str:
    return f"- **[{wp_id}]** - [{token}]" + (f" - {remark}" if remark else "")


def board_cell(wp_id: str, lane: Lane, lanes: LaneTable) -> str:
    return f"{lanes.section_of(lane).heading}: {wp_id}"


def row_line(base: str, path: str, cell: str, notes: str) -> str:
    return f"| {base} | {path} | {cell} | {notes} |"
