"""The largest document that may be read, in every shape known to make a Markdown parser work beyond its length.

The limits are counted in steps, so that a text is refused at the same line everywhere; here they are held against the
clock. The bound is wide, because machines differ: without the limits, most of these run for minutes.
"""

from __future__ import annotations

import time

import pytest

from text.hostile_markdown import hostile_texts
from workpacket.model.layout import LARGEST_MARKDOWN
from workpacket.text.blocks import MAX_LINES
from workpacket.text.markdown import parse_blocks, read_blocks
from workpacket.text.source import Source

SECONDS = 10
TEXTS = hostile_texts(LARGEST_MARKDOWN)


def largest(name: str) -> Source:
    """The text, cut to the bytes and lines that a document may have."""
    source = Source("file.md", TEXTS[name].encode()[:LARGEST_MARKDOWN].decode(errors="ignore"))
    if source.line_count <= MAX_LINES:
        return source
    return Source("file.md", source.text[: source.line_starts[MAX_LINES - 1]])


@pytest.mark.parametrize("name", TEXTS)
def test_no_document_takes_long_to_read_or_to_refuse(name: str) -> None:
    source = largest(name)

    begin = time.process_time()
    parsed = parse_blocks(source)
    between = time.process_time()
    read = read_blocks(source)
    end = time.process_time()

    assert all(isinstance(result, list) or result.code != "markdown_too_large" for result in (parsed, read))
    assert between - begin < SECONDS
    assert end - between < SECONDS
