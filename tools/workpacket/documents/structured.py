"""The reader of all Markdown kinds that consist of sections with fields: stubs, refinements, packets.

It is given a layout and makes a tree of nodes from what stands there, tolerant of the ways in which people write: any
bullet, bold keys, old headings, any letter case. What deviates from the layout is not judged here; sections and fields
stay at hand, with their places, for the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from workpacket.documents.document import Document
from workpacket.documents.layout import FieldSpec, Layout, SectionSpec, heading_key
from workpacket.text.fields import Field, Item, read_fields, read_items
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
        blocks = read_blocks(source)
        self.outline = read_outline(source, blocks.blocks)
        self.placed: list[PlacedSection] = []
        self.unknown: list[Section] = []
        for section in self.sections_at(self.layout.levels):
            spec = self.layout.section(heading_key(section.title))
            if spec is None:
                self.unknown.append(section)
            else:
                self.placed.append(PlacedSection(section, spec, read_fields(source, section)))
        super().__init__(source, self._tree(), blocks.faults)

    @property
    def is_older(self) -> bool:
        """Whether it belongs to an older family; rules about the present layout leave that alone."""
        return False

    def sections_at(self, levels: tuple[int, ...]) -> Iterator[Section]:
        """All sections whose heading has one of these levels, wherever they are nested."""
        waiting = list(reversed(self.outline))
        while waiting:
            section = waiting.pop()
            if section.level in levels:
                yield section
            waiting.extend(reversed(section.subsections))

    def placed_section(self, key: str) -> PlacedSection | None:
        return next((placed for placed in self.placed if placed.spec.key == key), None)

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
        return Node([Node(item.text, *item.span) for item in flattened(items)], *section.title_span)


def flattened(items: list[Item]) -> Iterator[Item]:
    """Items with the items inside them, in reading order."""
    for item in items:
        yield item
        yield from flattened(item.children)


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
        return Node(own + [Node(item.text, *item.span) for item in flattened(field.children)], *field.key_span)
    if field.children:
        texts = [field.value] * bool(field.value) + [item.text for item in flattened(field.children)]
        return Node("\n".join(texts), *field.key_span)
    return Node(field.value, *(field.value_span if field.value else field.key_span))


def _checklist_node(item: Item) -> Node:
    ticked = Node(item.ticked, *item.span)
    return Node({"text": Node(item.text, *item.span), "ticked": ticked}, *item.span)
