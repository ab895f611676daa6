"""The table of a register, found by the names of its columns and read row by row.

A register has other tables in its prose, and its own one gets torn: a blank line falls between two rows, the line of
dashes is lost, text gets in between. Markdown then shows half of the table. All rows are read here all the same, and
each says what tore it off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import ClassVar, Literal, NamedTuple, TypeVar

from workpacket.documents.document import Document, Text
from workpacket.documents.layout import heading_key
from workpacket.documents.visible_lines import Line, visible_lines
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.line_syntax import row_cells
from workpacket.text.node import Node
from workpacket.text.source import Source

_DASHES = lazy_pattern(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
# What ends a table although no blank line comes before it.
_OTHER_BLOCK = lazy_pattern(
    r"[ \t]*(?:#{1,6}[ \t]|>|[-*+][ \t]|[0-9]{1,9}[.)][ \t]|`{3}|~{3}|<|([-*_])[ \t]*(?:\1[ \t]*){2,}\Z)"
)
_LINK = lazy_pattern(r"\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]*)\)\Z")
_EMPHASIS = "`*_"
_MARKS = frozenset("`*_[")

Torn = Literal["", "blank", "text"]
R = TypeVar("R")


class Row(NamedTuple):
    """One row. `torn`: what stands between it and the row before that should not. `cells` are as many as it has."""

    line: int
    span: tuple[int, int]
    cells: Sequence[Text]
    torn: Torn

    def cell(self, index: int) -> Text | None:
        """The cell of a column; None where the row is too short, or the table has no such column."""
        return self.cells[index] if 0 <= index < len(self.cells) else None


class Table:
    """`columns` are the keys of the header cells, `has_dashes` says whether the line of dashes follows them."""

    __slots__ = ("columns", "end", "has_dashes", "header", "rows")

    def __init__(self, header: Row) -> None:
        self.header = header
        self.columns = [heading_key(cell.value) for cell in header.cells]
        self.has_dashes = False
        self.rows: list[Row] = []
        self.end = header.line

    def column(self, *names: str) -> int:
        """The index of the column with one of these keys, -1 if there is none."""
        return next((index for index, key in enumerate(self.columns) if key in names), -1)


class RegisterDocument(Document):
    """A document that is one table. `columns` are the agreed ones, as they are written."""

    columns: ClassVar[tuple[str, ...]]

    def __init__(self, source: Source) -> None:
        super().__init__(source, None)
        self.tables: list[Table] = []

    def values_of(self, rows: Sequence[Node]) -> Node:
        """The tree of a register: its rows, in the order in which they stand."""
        listed = Node(list(rows), 0, len(self.source.text))
        return Node({"rows": listed}, 0, len(self.source.text), {"rows": (0, 0)})


def rows_of(
    tables: Sequence[Table], keys: Sequence[Sequence[str]], make: Callable[[Row, Table, tuple[int, ...]], R]
) -> list[R]:
    """What `make` makes of each row, given the indexes of the columns with these keys."""
    return [
        make(row, table, indexes)
        for table in tables
        for indexes in [tuple(table.column(*names) for names in keys)]
        for row in table.rows
    ]


def read_tables(source: Source, required: Sequence[Sequence[str]], row_start: re.Pattern[str]) -> list[Table]:
    """The tables whose header has every column of `required`, each given by the keys it may have.

    Rows torn off are known by `row_start`, which their first cell matches.
    """
    tables: list[Table] = []
    current: Table | None = None
    torn: Torn = ""
    lines = list(visible_lines(source))
    for line, following in zip_longest(lines, lines[1:]):
        if current is not None and not torn and _continues(line, current):
            continue
        if not line.text.strip():
            torn = "blank" if current is not None and not torn else torn
            continue
        row = _row(line, torn) if "|" in line.text else None
        if row is not None and all(set(names) & set(_keys(row)) for names in required):
            current, torn = Table(row), ""
            tables.append(current)
        elif row is not None and following is not None and "|" in following.text and _DASHES.match(following.text):
            current = None  # another table begins
        elif row is not None and current is not None and row.cells and row_start.match(row.cells[0].value):
            current.rows.append(row)
            current.end = line.number
            torn = ""
        elif current is not None:
            torn = "text"
    return tables


def _keys(row: Row) -> Iterator[str]:
    return (heading_key(cell.value) for cell in row.cells)


def _continues(line: Line, table: Table) -> bool:
    """Reads the line that follows a row of the table directly, if it still belongs to the table."""
    if not line.text.strip() or _OTHER_BLOCK.match(line.text):
        return False
    if not table.rows and not table.has_dashes and line.number == table.header.line + 1 and _DASHES.match(line.text):
        table.has_dashes = True
    else:
        table.rows.append(_row(line, ""))
    table.end = line.number
    return True


def _row(line: Line, torn: Torn) -> Row:
    cells = [
        Text(line.text[start:end], line.start + start, line.start + end)
        for start, end in row_cells(line.text, 0, len(line.text))
    ]
    start = line.start + len(line.text) - len(line.text.lstrip())
    return Row(line.number, (start, line.start + len(line.text.rstrip())), cells, torn)


def plain(cell: Text) -> Text:
    """What a cell says, without the marks of code and emphasis around it; of a link, its target if that is a file."""
    value, start, end = cell.value, cell.start, cell.end
    if value[:1] not in _MARKS:
        return cell
    while len(value) > 1 and value[0] in _EMPHASIS and value[0] == value[-1]:
        value, start, end = value[1:-1], start + 1, end - 1
    link = _LINK.match(value)
    if link is None:
        return Text(value, start, end)
    group = "target" if link["target"].endswith(".md") else "text"
    inner = Text(link[group], start + link.start(group), start + link.end(group))
    return plain(inner) if group == "text" else inner
