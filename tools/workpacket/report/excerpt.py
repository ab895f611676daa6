"""A line of a document with a caret below it that stands where the finding is.

Columns of a finding count characters; columns of a terminal do not: tabs, wide and combining characters and what the
door makes visible all take another width. So each character is measured in the form in which it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from workpacket.report.door import hidden, visible
from workpacket.report.width import character_widths

TAB = 4
CUT = "..."
WITHOUT_TERMINAL = 160  # a paragraph on one line is cut around the caret even where nothing else is wrapped


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text` to show, and `width` carets to put below it after `start` columns."""

    text: str
    start: int
    width: int


def excerpt(line: str, column: int, end_column: int, room: int) -> Excerpt:
    """The part of `line` that fits into `room` columns and holds [column, end_column), both counted from 1.

    An `end_column` that is not behind `column` means one character. A column behind the end of the line points there.
    """
    begin = min(max(column - 1, 0), len(line))
    end = min(max(end_column - 1, begin + 1), len(line))
    room = max(room, 4 * len(CUT))
    cells, used = _cells(line, 0, room)
    if len(cells) == len(line):
        return _excerpt(cells, begin, end, "", "")
    if end < len(cells) and sum(width for _, width in cells[:end]) <= room - len(CUT):
        return _excerpt(_fitting(cells, room - len(CUT)), begin, end, "", CUT)
    first = max(begin - room // 4, 0)
    cells, used = _cells(line, first, room - len(CUT))
    tail = ""
    if first + len(cells) < len(line):
        cells, tail = _fitting(cells, room - 2 * len(CUT)), CUT
    return _excerpt(cells, begin - first, max(end - first, 0), CUT if first else "", tail)


def _cells(line: str, first: int, room: int) -> tuple[list[tuple[str, int]], int]:
    """Each character from `first` on as it is shown, with its width, as many as fit into `room` columns."""
    pattern = hidden()
    part = line[first : first + room + 1]
    cells: list[tuple[str, int]] = []
    used = 0
    for offset, (character, width) in enumerate(zip(part, character_widths(part), strict=True)):
        shown = character
        if character == "\t":
            shown = " " * (TAB - used % TAB)
            width = len(shown)
        elif pattern.match(line, first + offset):
            shown = visible(character)
            width = len(shown)
        if used + width > room:
            break
        used += width
        cells.append((shown, width))
    return cells, used


def _fitting(cells: list[tuple[str, int]], room: int) -> list[tuple[str, int]]:
    used = 0
    for index, (_, width) in enumerate(cells):
        used += width
        if used > room:
            return cells[:index]
    return cells


def _excerpt(cells: list[tuple[str, int]], begin: int, end: int, head: str, tail: str) -> Excerpt:
    start = len(head) + sum(width for _, width in cells[:begin])
    underlined = sum(width for _, width in cells[begin:end])
    text = head + "".join(shown for shown, _ in cells) + tail
    return Excerpt(text.rstrip(" "), start, max(underlined, 1))
