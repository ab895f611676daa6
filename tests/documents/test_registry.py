"""The traceability registry as a value."""

from __future__ import annotations

from workpacket.documents.registry import RegistryRow, TraceabilityRegistry
from workpacket.text.source import Source

HEADER = "| Base WP ID | Active Packet | Task Board | Notes |\n|---|---|---|---|\n"


def registry(*rows: str, header: str = HEADER) -> TraceabilityRegistry:
    return TraceabilityRegistry(Source("registry.md", header + "".join(f"{row}\n" for row in rows)))


def row_of(active: str = "", board: str = "", notes: str = "") -> RegistryRow:
    return registry(f"| WP-1-A | {active} | {board} | {notes} |").rows[0]


def test_the_active_packet_is_named_by_its_path() -> None:
    paths = {
        ".GOV/task_packets/WP-1-A-v2.md": "WP-1-A-v2",
        "`./.GOV/task_packets/stubs/WP-1-A.md`": "WP-1-A",
        "[A](.GOV/task_packets/WP-1-A-v2/packet.md)": "WP-1-A-v2",
        "WP-1-A-v2.md": "WP-1-A-v2",
        "WP-1-A-v2": None,
        ".GOV/task_packets/notes.md": None,
        ".GOV/task_packets/WP07.md": None,
        "": None,
    }
    for path, name in paths.items():
        found = row_of(active=path).active_id
        assert (found.text if found is not None else None) == name, path


def test_the_board_cell_says_a_section_and_a_packet() -> None:
    cells = {
        "Stub Backlog (Not Activated): WP-1-A-v1": ("stub backlog", "WP-1-A-v1"),
        "**in progress**: `WP-1-A-v1` (since Monday)": ("in progress", "WP-1-A-v1"),
        "Done": ("done", ""),
        "WP-1-A-v1": (None, "WP-1-A-v1"),
        "Soon: WP-1-A-v1": (None, "WP-1-A-v1"),
        "": (None, ""),
    }
    for cell, expected in cells.items():
        section, name = row_of(board=cell).board_place
        assert (section.key if section is not None else None, name) == expected, cell


def test_notes_are_tokens_and_each_value_knows_where_it_stands() -> None:
    notes = "stub; Active = WP-1-A-v2 (no other);  supersedes: WP-1-A, the old WP-1-A-v1 (never built); "
    document = registry(f"| WP-1-A | x | y | {notes}activated from stub `stubs/WP-1-A-v2.md` |")
    row = document.rows[0]
    assert [token.kind for token in row.tokens] == ["", "active", "supersedes", "from_stub"]
    for kind, names in (
        ("active", ["WP-1-A-v2"]),
        ("supersedes", ["WP-1-A", "WP-1-A-v1"]),
        ("from_stub", ["WP-1-A-v2"]),
    ):
        values = [value for _, value in row.noted(kind)]
        assert [value.value for value in values] == names
        assert [document.source.text[value.start : value.end] for value in values] == names


def test_columns_are_found_by_name() -> None:
    header = "| Notes | Active Packet | Base WP ID |\n|---|---|---|\n"
    row = registry("| active=WP-1-A-v1 | WP-1-A-v1.md | `WP-1-A` |", header=header).rows[0]
    base, active = row.base_id, row.active_id
    assert base is not None
    assert active is not None
    assert (base.text, active.text, row.board) == ("WP-1-A", "WP-1-A-v1", None)


def test_the_summary_has_the_place_of_every_cell() -> None:
    document = registry(
        "| WP-1-A | .GOV/task_packets/WP-1-A-v2.md | Done: WP-1-A-v2 | supersedes: WP-1-A-v1 |", "| x |"
    )
    assert document.summary() == {
        "rows": [
            {
                "base": "WP-1-A",
                "active_path": ".GOV/task_packets/WP-1-A-v2.md",
                "active": "WP-1-A-v2",
                "board_section": "done",
                "board_id": "WP-1-A-v2",
                "supersedes": ["WP-1-A-v1"],
                "from_stub": [],
                "place": (3, 3),
                "active_place": (3, 12),
                "board_place": (3, 45),
                "notes_place": (3, 63),
            },
            {
                "base": "",
                "active_path": "",
                "active": "",
                "board_section": "",
                "board_id": "",
                "supersedes": [],
                "from_stub": [],
                "place": (4, 3),
                "active_place": (4, 1),
                "board_place": (4, 1),
                "notes_place": (4, 1),
            },
        ],
        "end_place": (4, 1),
    }
