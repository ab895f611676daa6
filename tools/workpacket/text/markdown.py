"""Markdown to blocks: the door.

`read_blocks` takes the fast way where a document is plain and the full parser where it is not. Where both give blocks,
they are the same. Limits of bytes, lines, blocks and depth hold for both; only the full parser also has to refuse what
would take it too many steps.
"""

from __future__ import annotations

from workpacket.problem import Location
from workpacket.text.blocks import MAX_BYTES, MAX_LINES, MAX_NODES, Block
from workpacket.text.markdown_fast import fast_blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.problem import Problem
    from workpacket.text.source import Source


def read_blocks(
    source: Source, start: int = 0, *, most_bytes: int = MAX_BYTES, most_nodes: int = MAX_NODES
) -> list[Block] | Problem:
    """The blocks of `source`, or the one fault for which it has none.

    `start` is where the Markdown begins: behind the front matter, at the beginning of a line.
    """
    refusal = _refusal(source, most_bytes, most_nodes)
    if refusal is not None:
        return refusal
    blocks = fast_blocks(source, start, most_nodes)
    return parse_blocks(source, start, most_bytes=most_bytes, most_nodes=most_nodes) if blocks is None else blocks


def parse_blocks(
    source: Source, start: int = 0, *, most_bytes: int = MAX_BYTES, most_nodes: int = MAX_NODES
) -> list[Block] | Problem:
    """The same, always by the full parser: what the fast way is measured against."""
    refusal = _refusal(source, most_bytes, most_nodes)
    if refusal is not None:
        return refusal
    from workpacket.text.markdown_full import full_blocks

    return full_blocks(source, start, most_nodes)


def _refusal(source: Source, most_bytes: int, most_nodes: int) -> Problem | None:
    most_lines = max(MAX_LINES, most_nodes)
    too_many_bytes = _has_more_bytes(source, most_bytes)
    if not too_many_bytes and source.line_count <= most_lines:
        return None
    from workpacket.problem import Problem

    if too_many_bytes:
        return Problem("markdown_too_large", f"the file has more than {most_bytes:,} bytes", Location.span(0, 0))
    place = source.line_starts[most_lines]
    return Problem("markdown_too_large", f"the file has more than {most_lines:,} lines", Location.span(place, place))


def _has_more_bytes(source: Source, most_bytes: int) -> bool:
    characters = len(source.text)
    return characters * 4 > most_bytes and (characters > most_bytes or len(source.encode()) > most_bytes)
