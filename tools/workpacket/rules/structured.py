"""Rules about sections and fields, for every kind that has a layout: stubs, refinements, packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from workpacket.documents.layout import SectionSpec
from workpacket.documents.structured import PlacedSection, StructuredDocument, is_empty
from workpacket.model.findings import Edit
from workpacket.rules.rule import DocumentRule
from workpacket.text.fault import Fault
from workpacket.text.fields import Field


class StructuredRule(DocumentRule[StructuredDocument]):
    kinds: ClassVar[tuple[str, ...]] = ("stub", "refinement", "packet")


class SectionMissing(StructuredRule):
    """Required section is missing

    What the section would say is what reviewers, gates and the packet made from this document rely on.

    Remedy: add the section with its heading as the template has it.
    """

    kinds = ("stub", "refinement")

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        if document.is_older:
            return
        yield from _missing_sections(self, document)


class PacketSectionMissing(StructuredRule):
    """Packet lacks a section of the present layout

    Packets written before the present layout lack some; in a new packet, work would start without what it says.

    Remedy: add the section with its heading as the template has it.
    """

    kinds = ("packet",)
    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        yield from _missing_sections(self, document)


def _missing_sections(rule: DocumentRule[StructuredDocument], document: StructuredDocument) -> Iterator[Fault]:
    present = {placed.spec.key for placed in document.placed}
    for spec in document.layout.sections:
        if spec.required and spec.key not in present:
            place = _place_for(document, spec)
            heading = f"{'#' * document.layout.levels[0]} {spec.heading}"
            yield rule.fault(place, f"the section `{heading}` is missing", hint=f"add `{heading}`")


def _place_for(document: StructuredDocument, missing: SectionSpec) -> tuple[int, int]:
    """Where a missing section would stand: the heading it would follow, else the start of the file."""
    before = []
    for spec in document.layout.sections:
        if spec is missing:
            break
        before.append(spec.key)
    last = [placed for placed in document.placed if placed.spec.key in before]
    return last[-1].section.title_span if last else (0, 0)


class SectionDuplicate(StructuredRule):
    """Section stands twice

    Readers see one of the two; nobody can say which one was meant.

    Remedy: merge the two sections.
    """

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        first: dict[str, PlacedSection] = {}
        for placed in document.placed:
            earlier = first.setdefault(placed.spec.key, placed)
            if earlier is not placed and not placed.spec.repeatable:
                message = f"the section {placed.spec.heading} stands already at line {earlier.section.line}"
                yield self.fault(placed.section.title_span, message, hint="merge the two sections")


class SectionOrder(StructuredRule):
    """Sections stand in another order than in the template

    People look for a section where every other document has it.

    Remedy: move the section.
    """

    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        if document.is_older:
            return
        order = {spec.key: index for index, spec in enumerate(document.layout.sections)}
        furthest: PlacedSection | None = None
        for placed in document.placed:
            if placed.spec.key not in order:
                continue
            if furthest is not None and order[placed.spec.key] < order[furthest.spec.key]:
                message = f"{placed.spec.heading} stands behind {furthest.spec.heading}; the template has it before"
                yield self.fault(placed.section.title_span, message)
            else:
                furthest = placed


class SectionUnknown(StructuredRule):
    """Section that the layout does not know

    It is kept and carried along, but no rule looks into it; a misspelt heading ends up here.

    Remedy: rename it if it is one of the known sections; else leave it.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        for section in document.unknown:
            # A heading above sections that are known holds them together and is read through them.
            known = any(document.layout.section(inner.title) is not None for inner in section.subsections)
            if not known:
                yield self.fault(section.title_span, f"the layout knows no section `{section.title}`")


class OldHeading(StructuredRule):
    """Heading in an older spelling

    The section is read all the same; scripts that look for the heading do not find it.

    Remedy: `workpacket fmt` writes the present heading.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        if document.is_older:
            return
        for placed in document.placed:
            if placed.spec in document.layout.older:
                continue
            section = placed.section
            start, end = section.title_span
            name = section.title.partition("(")[0].partition("[")[0].partition(":")[0].rstrip()
            wanted = placed.spec.heading.partition("(")[0].rstrip()
            if name != wanted:
                edits = [Edit(start, start + len(name), wanted)]
                yield self.fault((start, end), f"the heading is now written `{wanted}`", edits=edits)


class FieldDuplicate(StructuredRule):
    """Field stands twice

    One value wins, and which one depends on the reader.

    Remedy: delete one of the two lines.
    """

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        for placed in document.placed:
            if placed.spec.shape != "fields":
                continue
            first: dict[str, Field] = {}
            for field in placed.fields:
                spec = placed.spec.field(field.name)
                if spec is None or (spec.many and not field.value):
                    continue
                earlier = first.setdefault(spec.key, field)
                if earlier is not field:
                    line = document.source.line_and_column(earlier.key_span[0])[0]
                    message = f"the field {field.key} stands already at line {line}"
                    yield self.fault(field.key_span, message, hint="delete one of the two lines")


class FieldEmpty(StructuredRule):
    """Field without a value

    Tools that read line by line take the next line for its value; people take it for forgotten.

    Remedy: fill in the value, or delete the line if the field does not apply.
    """

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        for placed in document.placed:
            for field in placed.fields if placed.spec.shape == "fields" else ():
                spec = placed.spec.field(field.name)
                named = spec is not None and (spec.required or placed.spec.key == "metadata")
                if named and is_empty(field):
                    yield self.fault(field.key_span, f"the field {field.key} has no value", hint="fill it in")


class MetadataFieldUnknown(StructuredRule):
    """Metadata field that the layout does not know

    Nothing reads it; a misspelt field ends up here.

    Remedy: correct its name if it is one of the known fields; else leave it.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        placed = document.placed_section("metadata")
        for field in placed.fields if placed is not None else ():
            if placed is not None and placed.spec.field(field.name) is None:
                yield self.fault(field.key_span, f"the layout knows no field {field.key}")


class FieldSyntax(StructuredRule):
    """Fields written in another way than `- KEY: value`

    They are read all the same; scripts that look for the plain form do not find them.

    Remedy: `workpacket fmt` writes them plainly.
    """

    severity = "info"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Fault]:
        placed = document.placed_section("metadata")
        for field in placed.fields if placed is not None and not document.is_older else ():
            spec = placed.spec.field(field.name) if placed is not None else None
            start, end = syntax_span(document, field)
            shown = document.source.text[start:end]
            # A remark in parentheses may stand behind the name: `SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap):`.
            plain = shown == spec.written or shown.startswith(f"- {spec.label} (") if spec is not None else True
            if spec is not None and not shown.startswith("#") and not plain:
                edits = [Edit(start, end, spec.written)]
                yield self.fault(
                    (start, end), f"the field is written `{shown}` instead of `{spec.written}`", edits=edits
                )


def syntax_span(document: StructuredDocument, field: Field) -> tuple[int, int]:
    """All of a field before its value: bullet, key, bold marks and colon."""
    text = document.source.text
    line = document.source.line_and_column(field.key_span[0])[0]
    start, end = document.source.line_span(line)
    if start <= field.block.start < field.key_span[0]:
        start = field.block.start
    stop = field.value_span[0] if field.value else end
    return start, start + len(text[start:stop].rstrip())
