"""A document as sections, each begun by a heading.

Only headings that stand on their own count: one inside a quote or a list belongs to that quote or list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workpacket.text.blocks import Block
from workpacket.text.fields import normal_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.text.source import Source


class Section:
    """What stands below one heading, up to the next heading of the same or a higher level.

    `blocks` are those before the first subsection, without the heading itself. [start, end) is the whole section in
    the source, from the line of its heading to the line of the next section, blank lines included. `end_line` is the
    last line of that. The section of level 0 is the document: its `blocks` stand before the first heading.
    """

    __slots__ = ("blocks", "end", "end_line", "heading", "level", "line", "name", "start", "subsections", "title")

    def __init__(self, level: int, line: int, start: int, title: str, heading: Block | None) -> None:
        self.level = level
        self.line = line
        self.start = start
        self.title = title
        self.name = normal_key(title)
        self.heading = heading
        self.blocks: list[Block] = []
        self.subsections: list[Section] = []
        self.end = start
        self.end_line = line

    def __repr__(self) -> str:
        return f"Section({self.level}, {self.title!r}, lines {self.line}..{self.end_line})"

    @property
    def title_span(self) -> tuple[int, int]:
        """Where the words of the title stand; of the document as a whole, its beginning."""
        if self.heading is None:
            return self.start, self.start
        return self.heading.spans[0][0], self.heading.spans[-1][1]

    def walk(self) -> Iterator[Section]:
        """This section and all below it, in the order of the document."""
        stack = [self]
        while stack:
            section = stack.pop()
            yield section
            stack.extend(reversed(section.subsections))

    def find(self, name: str) -> Section | None:
        """The first section at or below this one whose title comes down to `name` (see `normal_key`)."""
        return next((section for section in self.walk() if section.name == name), None)

    def find_all(self, name: str) -> list[Section]:
        return [section for section in self.walk() if section.name == name]


def outline(source: Source, blocks: Sequence[Block], start: int = 0) -> Section:
    """The document, whose Markdown begins at `start`, as a tree of sections."""
    document = Section(0, source.line_and_column(start)[0], start, "", None)
    open_sections = [document]
    for block in blocks:
        if block.kind != "heading":
            open_sections[-1].blocks.append(block)
            continue
        line_start = source.line_starts[block.line - 1]
        while open_sections[-1].level >= block.level:
            _close(open_sections.pop(), line_start, block.line - 1)
        title = " ".join(source.text[first:last] for first, last in block.spans)
        section = Section(block.level, block.line, line_start, title, block)
        open_sections[-1].subsections.append(section)
        open_sections.append(section)
    ends_with_line_end = source.line_starts[-1] == len(source.text)
    for section in open_sections:
        _close(section, len(source.text), max(section.line, source.line_count - ends_with_line_end))
    return document


def _close(section: Section, end: int, end_line: int) -> None:
    section.end = end
    section.end_line = end_line
