"""Real Markdown: both ways of reading agree on every file, and no field that stands out is missed.

`WORKPACKET_CORPUS` names a folder of real files; any folder will do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from text.markdown_documents import everything
from text.markdown_oracle import seen_by_markdown_it, seen_by_us
from workpacket.text.blocks import MAX_NODES, Block, Field, Item, outline, read_fields, read_items, walk
from workpacket.text.markdown import fast_blocks, parse_blocks
from workpacket.text.source import Source

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
_PLAIN_FIELD = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(?:\*\*)?[A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\*\*)?:(?:\*\*)?(?:[ \t]|$)")


@pytest.fixture(scope="module")
def sources() -> list[tuple[Source, int]]:
    """Each Markdown file, and where its Markdown begins."""
    folder = os.environ.get("WORKPACKET_CORPUS")
    if not folder:
        pytest.skip("WORKPACKET_CORPUS names no folder")
    found = [Source.from_bytes(path.name, path.read_bytes()) for path in sorted(Path(folder).rglob("*.md"))]
    assert found
    return [(source, match.end() if (match := _FRONT_MATTER.match(source.text)) else 0) for source in found]


@cache
def parsed(source: Source, start: int) -> list[Block]:
    """Once for all tests, none of which changes it."""
    blocks = parse_blocks(source, start)
    assert isinstance(blocks, list), (source.path, blocks)
    return blocks


def test_both_ways_of_reading_give_the_same_blocks(sources: list[tuple[Source, int]]) -> None:
    for source, start in sources:
        fast = fast_blocks(source, start, MAX_NODES)
        assert fast is None or everything(fast) == everything(parsed(source, start)), source.path


def test_most_documents_are_plain(sources: list[tuple[Source, int]]) -> None:
    plain = [fast_blocks(source, start, MAX_NODES) is not None for source, start in sources]

    assert sum(plain) > 0.8 * len(plain)


def test_blocks_and_their_text_are_those_of_markdown_it(sources: list[tuple[Source, int]]) -> None:
    for source, _ in sources:
        assert seen_by_us(source.text, parsed(source, 0)) == seen_by_markdown_it(source.text), source.path


def test_every_field_in_capitals_is_read(sources: list[tuple[Source, int]]) -> None:
    for source, start in sources:
        blocks = parsed(source, start)
        sections = list(outline(source, blocks, start).walk())
        fields = [field for section in sections for field in all_fields(source, section.blocks)]
        read = {source.line_and_column(field.key_span[0])[0] for field in fields}
        opaque = {line for block in walk(blocks) for line in opaque_lines(block)}
        first = source.line_and_column(start)[0]
        for line in range(first, source.line_count + 1):
            if _PLAIN_FIELD.match(source.line(line)) and line not in opaque:
                assert line in read, (source.path, line)


def opaque_lines(block: Block) -> range:
    hides = block.kind in {"fence", "code", "html", "table", "quote", "definition"}
    return range(block.line, block.end_line + 1) if hides else range(0)


def all_fields(source: Source, blocks: list[Block]) -> Iterator[Field]:
    """The fields on every level."""
    for field in read_fields(source, blocks):
        yield field
        yield from fields_of_items(field.children)
    yield from fields_of_items(read_items(source, blocks))


def fields_of_items(items: Iterable[Item]) -> Iterator[Field]:
    for item in items:
        yield from item.fields
        yield from fields_of_items(item.children)
