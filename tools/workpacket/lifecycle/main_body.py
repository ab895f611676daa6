"""Which part of a specification a line belongs to: its main body, or a section that only says what is planned.

A roadmap lists what somebody wants one day. A requirement that stands nowhere else is none yet, whatever its checkbox
says.
"""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.documents.visible_lines import visible_lines
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.source import Source

_HEADING = lazy_pattern(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")


def headings_above(specification: Source, line: int) -> tuple[str, ...]:
    """The headings whose sections hold `line`, outermost first."""
    open_headings: list[tuple[int, str]] = []
    for visible in visible_lines(specification):
        if visible.number > line:
            break
        match = _HEADING.match(visible.text) if visible.text.lstrip(" ").startswith("#") else None
        if match is not None:
            level = len(match[1])
            while open_headings and open_headings[-1][0] >= level:
                open_headings.pop()
            open_headings.append((level, match[2]))
    return tuple(title for _, title in open_headings)


def roadmap_section(specification: Source, line: int, roadmap_headings: Sequence[str]) -> str:
    """The heading of the roadmap section that holds `line`; '' where it stands in the main body."""
    for title in headings_above(specification, line):
        if any(word in title.casefold() for word in roadmap_headings):
            return title
    return ""
