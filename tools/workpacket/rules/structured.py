"""Rules about sections, for every kind that has a layout: stubs, refinements, packets."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import SectionSpec
from workpacket.documents.structured import StructuredDocument, body_of
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule, out_of_order, repeated
from workpacket.text.edits import Run
from workpacket.text.fields import Section

# A demand on every document that is read by a layout.
StructuredRule = DocumentRule[StructuredDocument]


class SectionMissing(StructuredRule):
    """Missing required section

    Reviewers, gates and the packet made from this document rely on the section.

    Remedy: add the section with the heading from the template.
    """

    # Packets lack sections for longer: PacketSectionMissing.
    except_kinds = ("packet",)

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        if document.is_older:
            return
        yield from _missing_sections(self, document)


class PacketSectionMissing(StructuredRule):
    """Section missing from a packet

    Older packets may lack it; in a new packet, work would start without this information.

    Remedy: add the section with the heading from the template.
    """

    kinds = ("packet",)
    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        yield from _missing_sections(self, document)


def _missing_sections(rule: DocumentRule[StructuredDocument], document: StructuredDocument) -> Iterator[Problem]:
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


class SectionEmpty(StructuredRule):
    """Empty required section

    Because the heading exists, the missing text is easy to overlook.

    Remedy: fill it in, or write `- None.` if there is nothing to say.
    """

    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for placed in document.placed:
            if placed.spec.required and not body_of(document.source, placed.section):
                yield self.fault(placed.section.title_span, f"the section {placed.spec.heading} is empty")


class FenceUnclosed(StructuredRule):
    """Unclosed code fence

    Everything that follows is read as code: headings, fields and lists below it are lost.

    Remedy: close the fence with a line of the same marks.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        # One inside a list ends with its item at the latest; the others end with the file.
        for block in (block for section in document.outline.walk() for block in section.blocks):
            if block.kind == "fence" and not block.closed:
                span = (block.start, block.start + len(block.marker))
                yield self.fault(span, f"never closed: everything up to line {block.end_line} is read as code")


class SectionDuplicate(StructuredRule):
    """Section stands twice

    Tools may read only one of them, and it is unclear which one is right.

    Remedy: merge the sections.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        single = (placed for placed in document.placed if not placed.spec.repeatable)
        for placed, earlier in repeated(single, lambda placed: placed.spec.key):
            message = f"the section {placed.spec.heading} is already on line {earlier.section.line}"
            yield self.fault(placed.section.title_span, message, hint="merge the sections")


class SectionOrder(StructuredRule):
    """Sections in the wrong order

    People expect sections in the same order in every document.

    Remedy: move the section.
    """

    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        if document.is_older:
            return
        order = {spec.key: index for index, spec in enumerate(document.layout.sections)}
        known = (placed for placed in document.placed if placed.spec.key in order)
        for placed, furthest in out_of_order(known, lambda placed: order[placed.spec.key]):
            message = f"{placed.spec.heading} comes after {furthest.spec.heading}; in the template it comes before"
            yield self.fault(placed.section.title_span, message)


class SectionUnknown(StructuredRule):
    """Unknown section

    It is kept, but no rule checks it; the heading may be misspelled.

    Remedy: correct the heading if it is misspelled; otherwise leave it.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for section in document.unknown:
            # A heading above sections that are known holds them together and is read through them.
            known = any(document.layout.section(inner.title) is not None for inner in section.subsections)
            if not known:
                yield self.fault(section.title_span, f"unknown section `{section.title}`")


class OldHeading(StructuredRule):
    """Outdated heading

    The section is still read, but scripts that look for the heading do not find it.

    Remedy: `workpacket fmt` writes the current heading.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
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
                run = Run.quoting(document.source.text, start, name)
                edits = [run.replaced_by(wanted)] if run is not None else []
                yield self.fault((start, end), f"the heading is now written `{wanted}`", edits=edits)


class HeadingLevel(StructuredRule):
    """Heading with the wrong level

    It is still read, but other tools look for the heading with its level and do not find the section.

    Remedy: `workpacket fmt` writes the level of the template.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        wanted = "#" * document.layout.levels[0]
        for section in document.misplaced if not document.is_older else ():
            heading = section.heading
            if heading is None:
                continue
            marks = (heading.start, heading.start + len(heading.marker))
            # Of a heading that is underlined, the marks stand below it: that is left to its author.
            can_move = heading.marker.startswith("#") and not _would_swallow(document, section)
            edits = [Run(document.source.text, *marks).replaced_by(wanted)] if can_move else []
            message = f"{section.title} has a heading of level {section.level} instead of {len(wanted)}"
            yield self.fault(section.title_span, message, hint=f"write `{wanted} {section.title}`", edits=edits)


def _would_swallow(document: StructuredDocument, section: Section) -> bool:
    """Whether other sections of its level would become a part of it if it were raised alone."""
    level = section.level
    others = (other for other in document.outline.walk() if other.level == level and other not in document.misplaced)
    return level > document.layout.levels[0] and next(others, None) is not None
