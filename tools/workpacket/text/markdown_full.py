"""The blocks of any document, through markdown-it-py.

HTML blocks are recognised, which is not the same as allowing HTML: nothing here renders, and what stands inside
`<!-- ... -->` must not be taken for a field or a heading, as it would be if comments were read as paragraphs. Link
reference definitions are blocks too, so that each line of the source that is not blank belongs to a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workpacket.text.blocks import MAX_DEPTH, Block, node_count
from workpacket.text.fault import Fault
from workpacket.text.markdown_places import Exhausted, Place, TooManyBlocks, placed_tokens

if TYPE_CHECKING:
    from markdown_it.token import Token

    from workpacket.text.source import Source

_CONTAINERS = {
    "bullet_list_open": "bullet_list",
    "ordered_list_open": "ordered_list",
    "list_item_open": "item",
    "blockquote_open": "quote",
}
_CLOSINGS = frozenset({"bullet_list_close", "ordered_list_close", "list_item_close", "blockquote_close"})
_LEAVES = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "table_open": "table",
    "hr": "rule",
    "definition": "definition",
}


def full_blocks(source: Source, start: int, most_nodes: int) -> list[Block] | Fault:
    """The blocks of `source` from the line that begins at `start`, or why there are none."""
    origin = _Origin(source, start)
    try:
        tokens = placed_tokens(source.text[start:], most_nodes)
    except TooManyBlocks as stop:
        return _too_many_blocks(source, origin.first_line + stop.line, most_nodes)
    except Exhausted as stop:
        span = source.line_span(origin.first_line + stop.line)
        return Fault("markdown_too_costly", *span, "reading these blocks takes more steps than a document may cost")
    for token in tokens:
        # Below this level markdown-it leaves out the rest of the container, without a word.
        if token.type in _CONTAINERS and token.level >= MAX_DEPTH - 1:
            span = source.line_span(origin.first_line + (token.map or [0])[0])
            return Fault("markdown_too_deep", *span, f"lists and quotes stand in each other more than {MAX_DEPTH} deep")
    blocks = _fold(tokens, origin)
    if node_count(blocks) > most_nodes:
        return _too_many_blocks(source, blocks[-1].line, most_nodes)
    return blocks


def _too_many_blocks(source: Source, line: int, most_nodes: int) -> Fault:
    return Fault("markdown_too_many_blocks", *source.line_span(line), f"there are more than {most_nodes:,} blocks")


class _Origin:
    """Leads from offsets in the text that markdown-it saw back to the source, where a line may end in CRLF."""

    def __init__(self, source: Source, start: int) -> None:
        self.first_line = source.line_and_column(start)[0]
        self.source = source
        self._start = start
        self._shifts: list[int] = []
        if "\r\n" in source.text:
            shift = start
            starts = source.line_starts
            for number in range(self.first_line, len(starts) + 1):
                self._shifts.append(shift)
                shift += number < len(starts) and source.text.endswith("\r\n", 0, starts[number])

    def offset(self, line: int, position: int) -> int:
        return position + (self._shifts[line] if self._shifts else self._start)

    def span(self, place: Place) -> tuple[int, int]:
        line, first, last = place
        return self.offset(line, first), self.offset(line, last)


def _fold(tokens: list[Token], origin: _Origin) -> list[Block]:
    """The tree that the sequence of opening and closing tokens describes."""
    levels: list[list[Block]] = [[]]
    for token in tokens:
        if token.type in _CONTAINERS:
            container = _block(_CONTAINERS[token.type], token, origin)
            levels[-1].append(container)
            levels.append(container.children)
        elif token.type in _LEAVES:
            levels[-1].append(_block(_LEAVES[token.type], token, origin))
        elif token.type in _CLOSINGS:
            children = levels.pop()
            container = levels[-1][-1]
            if container.kind != "quote":  # markdown-it counts the blank lines after a list as part of it
                container.end_line = children[-1].end_line if children else container.line
    return levels[0]


def _block(kind: str, token: Token, origin: _Origin) -> Block:
    first, last = token.map or (0, 0)
    seen = token.meta
    block = Block(
        kind,
        origin.first_line + first,
        origin.first_line + last - 1,
        origin.offset(*seen["start"]),
        [origin.span(place) for place in seen.get("places", ())],
        seen.get("marker", "" if kind == "rule" else token.markup),
    )
    if kind == "item":
        block.content_start = origin.offset(*seen["content"])
    elif kind == "fence":
        start, end = origin.span(seen["info"])
        block.info = origin.source.text[start:end]
    elif kind == "heading":
        block.level = int(token.tag[1:])
    block.rows = [[origin.span(cell) for cell in row] for row in seen.get("rows", ())]
    return block
