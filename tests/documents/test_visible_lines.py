"""Which lines of a register count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.documents.register_table import visible_lines
from workpacket.text.markdown import parse_blocks
from workpacket.text.source import Source

HIDING = [
    ("```\nexample\n```\nline", ["line"]),
    ("~~~ text\nexample\n```\nexample\n~~~~\nline", ["line"]),
    ("````\nexample\n```\nexample\n````\nline", ["line"]),
    ("<!-- note -->\nline", ["line"]),
    ("<!--\nnote\n\nnote\n-->\nline", ["line"]),
    ("line <!-- begins here\nnote -->\nline", ["line <!-- begins here", "line"]),
    ("line <!-- note --> line", ["line <!-- note --> line"]),
]
HIDING_NOTHING = [
    "```\nnever closed\nline",
    "```\nclosed by nothing shorter\n``\n~~~",
    "<!-- never closed\nline",
    "--> closed but never begun",
    "``` no `fence` here\nline\n```",
    "    ```\nindented too far\n    ```",
]


@pytest.mark.parametrize(("text", "visible"), HIDING)
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_fences_and_comments_hide_lines(text: str, visible: list[str], eol: str) -> None:
    source = Source("board.md", text.replace("\n", eol))
    assert [line.text for line in visible_lines(source)] == visible


@pytest.mark.parametrize("text", HIDING_NOTHING)
def test_what_is_not_closed_hides_nothing(text: str) -> None:
    assert [line.text for line in visible_lines(Source("board.md", text))] == text.split("\n")


@given(st.lists(st.sampled_from(["```", "~~~", "````", "```x", "<!--", "-->", "a", "", "- a", "~~~~ "]), max_size=30))
def test_every_line_keeps_its_number_and_its_place(lines: list[str]) -> None:
    source = Source("board.md", "\n".join(lines))
    for line in visible_lines(source):
        assert source.line(line.number) == line.text
        assert source.line_and_column(line.start) == (line.number, 1)


ITEM = "- **[WP-1-A-v1]** - [STUB]"
PIECES = ["## Done", "words", "", ITEM, f"```\n{ITEM}\n```", f"~~~ text\n{ITEM}\n\n~~~", f"\n<!--\n{ITEM}\n-->\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_the_items_that_markdown_shows_are_the_visible_ones(pieces: list[str]) -> None:
    source = Source("board.md", "\n".join(pieces))
    blocks = parse_blocks(source)
    assert isinstance(blocks, list)
    shown = [item.line for block in blocks if block.kind == "bullet_list" for item in block.children]
    assert [line.number for line in visible_lines(source) if line.text == ITEM] == shown
