"""A line of a document with a caret below it that stands where the finding is.

Columns of a finding count characters; columns of a terminal do not: tabs, wide and combining characters and what the
door makes visible all take another width. So each character is measured in the form in which it is shown.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from workpacket.report.door import hidden, visible
from workpacket.report.width import character_widths

TAB = 4
CUT = "..."
WITHOUT_TERMINAL = 160  # a paragraph on one line is cut around the caret even where nothing else is wrapped


_Cell: TypeAlias = tuple[str, int]
"""One character as it is shown, and how many columns that takes."""


class Excerpt(NamedTuple):
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
    cells = _cells(line, 0, room)
    if len(cells) == len(line):
        return _excerpt(cells, begin, end, "", "")
    if end < len(cells) and _columns(cells[:end]) <= room - len(CUT):
        return _excerpt(_fitting(cells, room - len(CUT)), begin, end, "", CUT)
    first = max(begin - room // 4, 0)
    cells, tail = _cells(line, first, room - len(CUT)), ""
    if first + len(cells) < len(line):
        cells, tail = _fitting(cells, room - 2 * len(CUT)), CUT
    return _excerpt(cells, begin - first, max(end - first, 0), CUT if first else "", tail)


def _cells(line: str, first: int, room: int) -> list[_Cell]:
    """The characters from `first` on, as many as fit into `room` columns."""
    part = line[first : first + room + 1]
    cells: list[_Cell] = []
    used = 0
    for offset, (character, width) in enumerate(zip(part, character_widths(part), strict=True)):
        if character == "\t":
            cell = _shown(" " * (TAB - used % TAB))
        elif hidden().match(part, offset):
            cell = _shown(visible(character))
        else:
            cell = (character, width)
        used += cell[1]
        if used > room:
            break
        cells.append(cell)
    return cells


def _shown(text: str) -> _Cell:
    return text, len(text)


def _fitting(cells: list[_Cell], room: int) -> list[_Cell]:
    used = 0
    for index, (_, width) in enumerate(cells):
        used += width
        if used > room:
            return cells[:index]
    return cells


def _columns(cells: list[_Cell]) -> int:
    return sum(width for _, width in cells)


def _excerpt(cells: list[_Cell], begin: int, end: int, head: str, tail: str) -> Excerpt:
    start = len(head) + _columns(cells[:begin])
    text = head + "".join(shown for shown, _ in cells) + tail
    return Excerpt(text.rstrip(" "), start, max(_columns(cells[begin:end]), 1))
