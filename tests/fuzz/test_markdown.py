"""Any text at all: it is read or refused, and the fast way gives what the full parser gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from text.markdown_documents import DOCUMENTS, IN_ONE_LINE_END, everything
from workpacket.text.blocks import MAX_NODES, outline, read_fields, read_items
from workpacket.text.markdown import fast_blocks, parse_blocks, read_blocks
from workpacket.text.source import Source


@given(st.one_of(DOCUMENTS, IN_ONE_LINE_END))
def test_both_ways_of_reading_give_the_same_blocks(text: str) -> None:
    source = Source("file.md", text)
    full = parse_blocks(source)
    fast = fast_blocks(source, 0, MAX_NODES)

    assert isinstance(full, list)
    assert fast is None or everything(fast) == everything(full)


@given(st.one_of(st.binary(max_size=200), DOCUMENTS.map(lambda text: text.encode("utf-8", "surrogateescape"))))
def test_any_bytes_are_read(data: bytes) -> None:
    source = Source.from_bytes("file.md", data)
    blocks = read_blocks(source)

    assert isinstance(blocks, list)
    for section in outline(source, blocks).walk():
        for item in read_items(source, section.blocks):
            assert len(item.text) <= len(source.text)
        for field in read_fields(source, section.blocks):
            assert field.key
            assert len(field.children) <= len(source.text)
