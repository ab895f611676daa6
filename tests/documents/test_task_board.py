"""The task board as a value, and the promise that an entry can be moved without touching anything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workpacket.documents.task_board import BoardEntry, BoardSection, TaskBoard
from workpacket.problem import Edit
from workpacket.text.source import Source, apply_edits

BOARD = """# Board

Words of the owner.

## Ready for Dev

Take the first one.
- **[WP-1-A-v1]** - [READY_FOR_DEV]
- **[WP-1-B-v1]** - [READY_FOR_DEV]

---

## In Progress

## Done
- **[WP-1-C-v1]** - [VALIDATED]
"""


def board(text: str) -> TaskBoard:
    return TaskBoard(Source(".GOV/roles_shared/TASK_BOARD.md", text))


def moved(document: TaskBoard, entry: BoardEntry, section: BoardSection) -> Source:
    """What the command that moves an entry will do with the spans that the board gives it."""
    source = document.source
    line = source.text[entry.span[0] : entry.span[1]]
    starts = [*source.line_starts, len(source.text)]
    whole = Edit(entry.span[0], starts[entry.line], "")
    at = section.insert_at
    new_line = at == 0 or source.text[at - 1] in "\r\n"
    added = line + source.eol if new_line else source.eol + line
    return apply_edits(source, [whole, Edit(at, at, added)])


def test_entries_stand_in_their_sections() -> None:
    document = board(BOARD)
    assert [(entry.wp_id.value, entry.section.key, entry.line) for entry in document.entries] == [
        ("WP-1-A-v1", "ready for dev", 8),
        ("WP-1-B-v1", "ready for dev", 9),
        ("WP-1-C-v1", "done", 16),
    ]


def test_a_new_entry_goes_behind_the_last_one_or_behind_the_words_on_the_section() -> None:
    document = board(BOARD)
    places = {section.title: document.source.line_and_column(section.insert_at) for section in document.sections}
    assert places == {"Ready for Dev": (10, 1), "In Progress": (14, 1), "Done": (17, 1)}
    without = board("## Blocked\n---\n\n## Superseded (Archive)\nNo more.\n\n***\n")
    assert [without.source.line_and_column(section.insert_at) for section in without.sections] == [(2, 1), (6, 1)]


def test_headings_group_entries_or_end_a_section() -> None:
    text = "## Done\n### Spring\n- **[WP-1-A-v1]** - [VALIDATED]\n### blocked\n- **[WP-1-B-v1]** - [BLOCKED]\n"
    text += "## Notes\n- **[WP-1-C-v1]** - [STUB]\n#Done\n- **[WP-1-D-v1]** - [FAIL]\n#tag is no heading\n"
    keys = [(entry.wp_id.value, entry.section.key) for entry in board(text).entries]
    assert keys == [("WP-1-A-v1", "done"), ("WP-1-B-v1", "blocked"), ("WP-1-C-v1", ""), ("WP-1-D-v1", "done")]


def test_details_of_active_entries_are_found_in_any_order() -> None:
    text = "## Active\n- **[WP-1-A-v1]** - [ACTIVE] - coder: Mara / m-3; branch: feat/a-b - LAST_SYNC: 2026-01-31"
    entry = board(text).entries[0]
    assert {name: text.value for name, text in entry.details().items()} == {
        "coder": "Mara / m-3",
        "branch": "feat/a-b",
        "last_sync": "2026-01-31",
    }
    for found in entry.details().values():
        assert text[found.start : found.end] == found.value


def test_the_token_is_the_one_meant() -> None:
    written = {"PASS": "VALIDATED", "Ready for Dev": "READY_FOR_DEV", "active": "ACTIVE", "DONE": "", "LATER": ""}
    for token, meant in written.items():
        assert board(f"- **[WP-1-A-v1]** - [{token}]").entries[0].lane_token == meant


def test_the_summary_leaves_out_what_is_no_packet() -> None:
    summary = board("## Done\n- **[WP07]** - [FAIL]\n- **[WP-1-A v1]** - [FAIL]\n* WP-1-B-v2\n").summary()
    assert summary == {
        "entries": [
            {
                "id": "WP-1-B-v2",
                "base": "WP-1-B",
                "token": "",
                "section": "done",
                "place": (4, 3),
                "token_place": (4, 3),
            }
        ],
        "sections": [("done", 1, 4)],
    }


HEADINGS = ["## Ready for Dev", "## In Progress", "## Done", "## Blocked", "## Notes of the owner", "### Spring"]
FENCE = "```\n- **[WP-1-Y-v1]** - [STUB]\n```"
PROSE = ["words", "", "  ", "---", "- a note", "  - WP-1-Z-v1: deeper", FENCE, "<!-- no -->"]
LINES = st.one_of(
    st.sampled_from(HEADINGS),
    st.sampled_from(PROSE),
    st.integers(0, 99).map(lambda n: f"- **[WP-1-E{n}-v1]** - [FAIL]"),
)


@given(st.lists(LINES, max_size=40), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.data())
def test_moving_an_entry_moves_its_line_and_nothing_else(
    lines: list[str], eol: str, ended: bool, data: st.DataObject
) -> None:
    text = eol.join("\n".join(lines).split("\n")) + (eol if ended else "")
    document = board(text)
    if not document.entries or not document.sections:
        return
    entry = data.draw(st.sampled_from(document.entries))
    section = data.draw(st.sampled_from(document.sections))
    if entry.section is section:
        return
    after = TaskBoard(moved(document, entry, section))
    assert sorted(after.source.text.splitlines()) == sorted(text.splitlines())
    rest = [other.wp_id.value for other in document.entries if other is not entry]
    there = [other for heading in after.sections if heading.key == section.key for other in heading.entries]
    assert entry.wp_id.value in [other.wp_id.value for other in there]
    names = [other.wp_id.value for other in after.entries]
    names.remove(entry.wp_id.value)
    assert sorted(names) == sorted(rest)
