"""The sections of a Markdown document, from its headings."""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.text.blocks import Block
from workpacket.text.source import Source


class Section:
    """A heading and all that stands below it, up to the next heading of the same or a higher level.

    `blocks` are the blocks before the first subsection. Only headings on the top level of the document make sections:
    one inside a list or a quotation belongs to that list or quotation.
    """

    __slots__ = ("blocks", "end", "heading", "level", "line", "subsections", "title", "title_span")

    def __init__(self, heading: Block, title: str) -> None:
        self.heading = heading
        self.level = heading.level
        self.line = heading.line
        self.title = title
        self.title_span = heading.spans[0] if heading.spans else (heading.start, heading.start)
        self.end = self.title_span[1]
        self.blocks: list[Block] = []
        self.subsections: list[Section] = []

    def __repr__(self) -> str:
        return f"Section({self.level}, {self.title!r}, line {self.line})"

    @property
    def body_start(self) -> int:
        """Where the text behind the heading begins."""
        return self.title_span[1]

    @property
    def body_span(self) -> tuple[int, int]:
        """All below the heading, subsections included."""
        return self.title_span[1], self.end


class Outline:
    """`preamble` are the blocks before the first heading, `sections` those that no other section contains."""

    __slots__ = ("preamble", "sections")

    def __init__(self, preamble: list[Block], sections: list[Section]) -> None:
        self.preamble = preamble
        self.sections = sections


def read_outline(source: Source, blocks: Sequence[Block]) -> Outline:
    """Arranges blocks below their headings."""
    preamble: list[Block] = []
    sections: list[Section] = []
    open_sections: list[Section] = []
    for block in blocks:
        if block.kind != "heading":
            (open_sections[-1].blocks if open_sections else preamble).append(block)
            continue
        while open_sections and open_sections[-1].level >= block.level:
            open_sections.pop().end = block.start
        start, end = block.spans[0] if block.spans else (block.start, block.start)
        section = Section(block, source.text[start:end])
        (open_sections[-1].subsections if open_sections else sections).append(section)
        open_sections.append(section)
    for section in open_sections:
        section.end = len(source.text)
    return Outline(preamble, sections)
