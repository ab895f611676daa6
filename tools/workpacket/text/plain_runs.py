"""Fences and tables of plain documents: the blocks whose first line decides what the following lines are.

Both functions get the `lines` of the document and their `starts` as offsets, the `index` of the block's first line and
the column `inside` at which its container begins. They give None when the block is not plain.
"""

from __future__ import annotations

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.line_syntax import row_cells

_BLANKS = " \t\r"
_DELIMITER_ROW = lazy_pattern(r"(?!-(?: |\Z))\|? *:?-+:? *(?:\| *:?-+:? *)*\|?\Z")
_MOST_MISSING_CELLS = 65_536  # markdown-it ends a table for whose short rows it would have to make up more cells


Span = tuple[int, int]
Row = list[Span]


def fenced_lines(
    lines: list[str], starts: list[int], index: int, inside: int, marker: str, column: int
) -> tuple[list[Span], bool] | None:
    """The lines after the opening `marker` at `column`, and whether a closing line follows them."""
    spans: list[Span] = []
    for number in range(index + 1, len(lines)):
        line = lines[number].removesuffix("\r")
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if body[:1] == "\t" and column:
            return None
        if body.strip(_BLANKS):
            if indent < inside:
                break
            closing = indent - inside < 4 and body.startswith(marker)
            if closing and not body.rstrip(_BLANKS).strip(marker[0]):
                return spans, True
        spans.append((starts[number] + min(indent, column), starts[number] + len(line)))
    return spans, False


def table_rows(
    text: str, lines: list[str], starts: list[int], index: int, inside: int, offset: int, most_cells: int
) -> list[Row] | None:
    """The header, which begins at `offset`, and the rows below the delimiter row."""
    header = row_cells(text, offset, starts[index] + len(lines[index]))
    delimiter = lines[index + 1].strip(_BLANKS)
    if not _belongs(lines[index + 1], inside) or not _DELIMITER_ROW.match(delimiter):
        return None
    if len(header) != len(delimiter.strip("|").split("|")):
        return None
    rows = [header]
    missing = 0
    for number in range(index + 2, len(lines)):
        line = lines[number]
        if not line.strip(_BLANKS):
            break
        if not _belongs(line, inside) or line.lstrip(" ")[0] != "|":
            return None  # without its first pipe, a row may be the start of something else
        rows.append(row_cells(text, starts[number], starts[number] + len(line)))
        missing += len(header) - len(rows[-1])
        most_cells -= len(rows[-1])
        if missing > _MOST_MISSING_CELLS or most_cells < 0:
            return None
    return rows


def _belongs(line: str, inside: int) -> bool:
    """Whether the line is indented as far as the container, and not so far that it would be code."""
    body = line.lstrip(" ")
    return 0 <= len(line) - len(body) - inside < 4 and body[0] != "\t"
