"""The requirements of a specification: the sections of its main body that demand something.

A section demands something if its own lines hold one of the words of RFC 2119 that oblige. In a specification that
uses none of them, every section with text of its own counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workpacket.documents.visible_lines import visible_lines
from workpacket.text.source import Source
from workpacket.value import Value

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")
# A window of more lines than this names no passage.
_LONGEST_WINDOW = 10_000
_OBLIGES = re.compile(r"\b(?:MUST|SHALL|REQUIRED)\b")


class Requirement(Value):
    """A section: its title, the line of its heading, and the last line before the next heading."""

    title: str
    first: int
    last: int


@dataclass(slots=True)
class _Section:
    level: int
    title: str
    first: int
    last: int
    planned: bool
    has_text: bool = False
    obliges: bool = False


def requirements(specification: Source, roadmap_headings: Sequence[str]) -> list[Requirement]:
    """Those of the main body, in the order of the text."""
    sections = [section for section in _sections(specification, roadmap_headings) if not section.planned]
    demanding = [section for section in sections if section.obliges] or [one for one in sections if one.has_text]
    return [Requirement(section.title, section.first, section.last) for section in demanding]


def _sections(specification: Source, roadmap_headings: Sequence[str]) -> list[_Section]:
    found: list[_Section] = []
    above: list[_Section] = []
    for line in visible_lines(specification):
        match = _HEADING.match(line.text) if line.text.lstrip(" ").startswith("#") else None
        if match is not None:
            level, title = len(match[1]), match[2]
            while above and above[-1].level >= level:
                above.pop()
            planned = any(word in title.casefold() for word in roadmap_headings) or any(one.planned for one in above)
            found.append(_Section(level, title, line.number, line.number, planned))
            above.append(found[-1])
        elif found and line.text.strip():
            section = found[-1]
            section.last = line.number
            section.has_text = True
            section.obliges = section.obliges or bool(_OBLIGES.search(line.text))
    return found


def uncovered(found: Sequence[Requirement], windows: Iterable[tuple[int, int]]) -> list[Requirement]:
    """The requirements that no window touches: one pass over lines, since there may be thousands of both."""
    touched: set[int] = set()
    for first, last in windows:
        touched.update(range(first, min(last, first + _LONGEST_WINDOW) + 1))
    return [one for one in found if touched.isdisjoint(range(one.first, one.last + 1))]
