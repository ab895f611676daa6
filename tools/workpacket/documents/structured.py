"""The reader of all Markdown kinds that consist of sections with fields: stubs, refinements, packets.

It is given a layout and makes a tree of nodes from what stands there, tolerant of the ways in which people write: any
bullet, bold keys, old headings, any letter case. What deviates from the layout is not judged here; sections and fields
stay at hand, with their places, for the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from workpacket.documents.document import Document
from workpacket.documents.layout import FieldSpec, Layout, SectionSpec
from workpacket.text.blocks import Block
from workpacket.text.fault import Fault
from workpacket.text.fields import Field, Item, fields_of_blocks, read_fields, read_items, walk_items
from workpacket.text.markdown import read_blocks
from workpacket.text.node import Node
from workpacket.text.outline import Section, read_outline
from workpacket.text.source import Source


class PlacedSection:
    """A section of the document, with what the layout says of it and the fields that were read in it."""

    __slots__ = ("fields", "section", "spec")

    def __init__(self, section: Section, spec: SectionSpec, fields: list[Field]) -> None:
        self.section = section
        self.spec = spec
        self.fields = fields


class StructuredDocument(Document):
    """A document read by a layout. `placed` are the sections that the layout knows, `unknown` the others."""

    layout: ClassVar[Layout]

    def __init__(self, source: Source) -> None:
        super().__init__(source, None)
        blocks = read_blocks(source)
        if isinstance(blocks, Fault):
            self.faults = (blocks,)
            blocks = []
        self.outline = read_outline(source, blocks)
        # Fields above the first section, where older documents have their status.
        self.preamble_fields = fields_of_blocks(source, list(self._preamble()))
        self.placed: list[PlacedSection] = []
        self.unknown: list[Section] = []
        for section in self.sections_at(self.layout.levels):
            spec = self.layout.section(section.title)
            if spec is None:
                self.unknown.append(section)
            else:
                self.placed.append(PlacedSection(section, spec, read_fields(source, section)))
        if not self.faults:
            self.root = self._tree()

    @property
    def is_older(self) -> bool:
        """Whether it belongs to an older family; rules about the present layout leave that alone."""
        return False

    def sections_at(self, levels: tuple[int, ...]) -> Iterator[Section]:
        """All sections whose heading has one of these levels, wherever they are nested."""
        waiting = list(reversed(self.outline.sections))
        while waiting:
            section = waiting.pop()
            if section.level in levels:
                yield section
            waiting.extend(reversed(section.subsections))

    def placed_section(self, key: str) -> PlacedSection | None:
        return next((placed for placed in self.placed if placed.spec.key == key), None)

    def _preamble(self) -> Iterator[Block]:
        yield from self.outline.preamble
        for section in self.outline.sections:
            if section.level < min(self.layout.levels):
                yield from section.blocks

    def _tree(self) -> Node:
        entries: dict[str, Node] = {}
        keys: dict[str, tuple[int, int]] = {}
        for placed in self.placed:
            # Of a section that stands twice, the first counts; a rule reports the second.
            if placed.spec.key not in entries:
                entries[placed.spec.key] = self.section_node(placed)
                keys[placed.spec.key] = placed.section.title_span
        return Node(entries, 0, len(self.source.text), keys)

    def section_node(self, placed: PlacedSection) -> Node:
        """The value of one section, in the shape that its layout gives it."""
        section = placed.section
        if placed.spec.shape == "fields":
            return _fields_node(placed)
        if placed.spec.shape == "prose":
            start, end = section.body_span
            return Node(self.source.text[start:end].strip(), *section.title_span)
        items = read_items(self.source, section)
        if placed.spec.shape == "checklist":
            return Node([_checklist_node(item) for item in items], *section.title_span)
        return Node([Node(item.text, *item.span) for item in walk_items(items)], *section.title_span)


def _fields_node(placed: PlacedSection) -> Node:
    entries: dict[str, Node] = {}
    keys: dict[str, tuple[int, int]] = {}
    for field in placed.fields:
        spec = placed.spec.field(field.name) or FieldSpec(field.key)
        if spec.key not in entries:
            entries[spec.key] = _value_node(field, spec)
            keys[spec.key] = field.key_span
    return Node(entries, *placed.section.title_span, keys)


def _value_node(field: Field, spec: FieldSpec) -> Node:
    if spec.many:
        own = [Node(field.value, *field.value_span)] if field.value else []
        return Node(own + [Node(item.text, *item.span) for item in walk_items(field.children)], *field.key_span)
    if field.children:
        texts = [field.value] * bool(field.value) + [item.text for item in walk_items(field.children)]
        return Node("\n".join(texts), *field.key_span)
    return Node(field.value, *(field.value_span if field.value else field.key_span))


def _checklist_node(item: Item) -> Node:
    ticked = Node(item.ticked, *item.span)
    return Node({"text": Node(item.text, *item.span), "ticked": ticked}, *item.span)
