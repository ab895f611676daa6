"""What both Markdown parsers must read alike inside one line: the words of a heading, the cells of a table row."""

from __future__ import annotations

from workpacket.lazy_pattern import lazy_pattern

BLANKS = " \t"

# What markdown-it trims from a table row before it looks for the outer pipes.
_ROW_TRIM = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_CELL_BORDER = lazy_pattern(r"(?<!\\)\|")


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """[start, end) without the blanks at both ends; an empty span stays where it starts."""
    body = text[start:end]
    core = body.strip(BLANKS)
    if not core:
        return start, start
    start += len(body) - len(body.lstrip(BLANKS))
    return start, start + len(core)


def heading_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of an ATX heading's words: `start` follows the opening `#`s, a closing run of `#` is left out."""
    body = text[start:end].rstrip(BLANKS)
    words = body.rstrip("#")
    if not words.endswith((" ", "\t")):
        words = body
    return trimmed(text, start, start + len(words))


def row_cells(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The cells of a table row as they stand: as many as the row has, whatever the header says."""
    row = text[start:end]
    start += len(row) - len(row.lstrip(_ROW_TRIM))
    row = row.strip(_ROW_TRIM)
    borders = [match.start() for match in _CELL_BORDER.finditer(row)]
    starts = [0, *(border + 1 for border in borders)]
    ends = [*borders, len(row)]
    cells = [(start + first, start + last) for first, last in zip(starts, ends, strict=True)]
    if cells[0][0] == cells[0][1]:
        del cells[0]
    if cells and cells[-1][0] == cells[-1][1]:
        del cells[-1]
    return [trimmed(text, first, last) for first, last in cells]
