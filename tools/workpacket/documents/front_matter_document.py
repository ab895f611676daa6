"""What the Markdown kinds with front matter have in common: fields above, text below. The tree of values is the front
matter. In the fields that a kind names, every plain scalar is read as the characters in the file: ids, labels and
titles are always text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from workpacket.documents.document import Document
from workpacket.problem import Problem
from workpacket.text.blocks import Block
from workpacket.text.fields import Section, outline
from workpacket.text.front_matter import read_front_matter
from workpacket.text.markdown import read_blocks
from workpacket.text.node import Node
from workpacket.text.source import Source
from workpacket.text.yaml_scalars import written_as_text


class FrontMatterDocument(Document):
    """A document with front matter. `blocks` and `outline` are those of the text below it."""

    # Top-level fields that hold text, or lists of text.
    text_fields: ClassVar[frozenset[str]]

    def __init__(self, source: Source) -> None:
        front = read_front_matter(source)
        root = front.loaded.root
        super().__init__(source, _texts_of(source, root, self.text_fields) if root is not None else None)
        self.has_front_matter = front.present
        # Where the text below the front matter begins.
        self.body = front.body
        self.faults = front.loaded.faults
        blocks = read_blocks(source, front.body)
        if isinstance(blocks, Problem):
            self.faults += (blocks,)
            blocks = []
        self.blocks: list[Block] = blocks
        self.outline = outline(source, blocks, front.body)

    def sections(self) -> Iterator[Section]:
        """Every section that has a heading."""
        return (section for section in self.outline.walk() if section.heading is not None)


def _texts_of(source: Source, root: Node, names: frozenset[str]) -> Node:
    entries = {
        key: written_as_text(source, node, lambda _: True) if key in names else node
        for key, node in root.mapping.items()
    }
    return Node(entries, root.start, root.end, root.keys)
