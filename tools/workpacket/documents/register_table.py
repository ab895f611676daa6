"""The table of a register, found by the names of its columns and read row by row.

A register may contain other tables, and its own table can be broken by a blank line between two rows, a missing
separator line, or text in between. Markdown then shows only part of the table. Here all rows are still read, and each
records what separates it from the previous one.

An excerpt is a register without most of its lines, for a command that moves one packet out of ten thousand: nine tenths
of the time for a move used to be spent on lines about other packets. Irrelevant lines are left out before reading: of a
long run of canonical entries or rows, only the first, the last, and those that contain one of the names in question are
kept. Such lines do not begin or end a section or table, so the excerpt has the same sections, tables and insertion
points, the same entries for the packets in question, and all prose. The edits are then mapped back to the whole text.

In doubtful cases the excerpt is the whole register: if it has a fence or a comment, which may hide lines, a carriage
return, entries in a different form, or a table with a different header. Tests prove that both ways result in the same
edits. This module also writes empty task boards and registries, and single lines of each.

Board, registry and audit are read line by line, as every tool that edits them does: an entry or a row is one line, and
ten thousand of them are read quickly. Only visible lines count: lines in a fence or an HTML comment are examples or
notes, not entries. A fence or comment that is never closed hides nothing, because one forgotten mark must not empty a
board.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import ClassVar, Literal, TypeVar

from workpacket.documents.document import Document, Text, heading_key
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import BUILT_IN, Lane, LaneTable
from workpacket.problem import Edit
from workpacket.text.blocks import row_cells
from workpacket.text.source import Node, Source
from workpacket.value import NamedTuple

_FENCE = lazy_pattern(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\r\n]*)")
_COMMENT_START = "<!--"
_COMMENT_END = "-->"
_HIDING = ("```", "~~~", _COMMENT_START)


class SourceLine(NamedTuple):
    """One line without its line ending. `number` starts at 1; `start` is the line's offset."""

    number: int
    start: int
    text: str


def visible_lines(source: Source) -> Iterator[SourceLine]:
    """Yield the visible lines in order, including blank ones."""
    hidden: set[int] = set()
    if any(mark in source.text for mark in _HIDING):
        hidden.update(*_hidden_spans(source))
    text = source.text
    starts = source.line_starts
    ends = [*starts[1:], len(text)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if number not in hidden:
            yield SourceLine(number, start, text[start:end].rstrip("\r\n"))


def one_line_comments(source: Source) -> Iterator[SourceLine]:
    """Yield the lines that consist only of a comment, in order."""
    for span in _hidden_spans(source):
        text = source.line(span.start).rstrip("\r\n") if len(span) == 1 else ""
        if text.lstrip(" ").startswith(_COMMENT_START):
            yield SourceLine(span.start, source.line_starts[span.start - 1], text)


def _hidden_spans(source: Source) -> Iterator[range]:
    """Yield the numbers of the lines that each fence and each comment hides."""
    lines = [source.line(number) for number in range(1, source.line_count + 1)]
    fence_ends = _fence_ends(lines)
    # No comment is closed after this point, so there is no need to look for one.
    last_comment_end = max((index for index, line in enumerate(lines) if _COMMENT_END in line), default=-1)
    index = 0
    while index < len(lines):
        end = fence_ends.get(index)
        if end is None and index <= last_comment_end:
            end = _comment_end(lines, index)
        if end is None:
            index += 1
            continue
        first = index if lines[index].lstrip(" ").startswith((_COMMENT_START, "`", "~")) else index + 1
        yield range(first + 1, end + 2)
        index = end + 1


def _fence_ends(lines: list[str]) -> dict[int, int]:
    """Map the index of each line that may open a fence to the index of the line that would close it. It works
    backwards, so that a file full of unclosed fences is read in one pass: `closing` contains the lines that may close a
    fence, nearest last, and only those longer than all nearer ones.
    """
    marks = [(index, match) for index, line in enumerate(lines) if (match := _FENCE.match(line))]
    ends: dict[int, int] = {}
    closing: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}
    for index, match in reversed(marks):
        character, length, info = match["marks"][0], len(match["marks"]), match["info"]
        if character != "`" or "`" not in info:
            nearest = next((at for at, size in reversed(closing[character]) if size >= length), None)
            if nearest is not None:
                ends[index] = nearest
        if not info.strip():
            while closing[character] and closing[character][-1][1] <= length:
                closing[character].pop()
            closing[character].append((index, length))
    return ends


def _comment_end(lines: list[str], index: int) -> int | None:
    """Return the index of the line that closes a comment opened on line `index`."""
    line = lines[index]
    start = line.rfind(_COMMENT_START)
    if start < 0:
        return None
    if _COMMENT_END in line[start:]:
        return index if line.strip().startswith(_COMMENT_START) and line.rstrip().endswith(_COMMENT_END) else None
    return next((later for later in range(index + 1, len(lines)) if _COMMENT_END in lines[later]), None)


_DASHES = lazy_pattern(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
# Matches lines that end a table without a blank line before them.
_OTHER_BLOCK = lazy_pattern(
    r"[ \t]*(?:#{1,6}[ \t]|>|[-*+][ \t]|[0-9]{1,9}[.)][ \t]|`{3}|~{3}|<|([-*_])[ \t]*(?:\1[ \t]*){2,}\Z)"
)
_LINK = lazy_pattern(r"\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]*)\)\Z")
_EMPHASIS = "`*_"
_MARKS = frozenset("`*_[")

Torn = Literal["", "blank", "text"]
R = TypeVar("R")


class Row(NamedTuple):
    """One row. `torn` is what separates it from the previous row. `cells` are the cells that it actually contains."""

    line: int
    span: tuple[int, int]
    cells: Sequence[Text]
    torn: Torn

    def cell(self, index: int) -> Text | None:
        """Return the cell of a column; None if the row is too short or the table lacks the column."""
        return self.cells[index] if 0 <= index < len(self.cells) else None


class Table:
    """One table. `columns` are the keys of the header cells, and `has_dashes` says whether the separator line follows.
    `spacers` are the lines of empty rows, which only separate other rows.
    """

    __slots__ = ("columns", "end", "has_dashes", "header", "rows", "spacers")

    def __init__(self, header: Row) -> None:
        self.header = header
        self.columns = [heading_key(cell.value) for cell in header.cells]
        self.has_dashes = False
        self.rows: list[Row] = []
        self.spacers: list[int] = []
        self.end = header.line

    def column(self, *names: str) -> int:
        """Return the index of the column with one of these keys; -1 if there is none."""
        return next((index for index, key in enumerate(self.columns) if key in names), -1)


class RegisterDocument(Document):
    """A document that consists of one table. `columns` are the expected headings, as they are written."""

    columns: ClassVar[tuple[str, ...]]

    def __init__(self, source: Source) -> None:
        super().__init__(source, None)
        self.tables: list[Table] = []

    def values_of(self, rows: Sequence[Node]) -> Node:
        """Return the tree of a register, which is a list of rows."""
        listed = Node(list(rows), 0, len(self.source.text))
        return Node({"rows": listed}, 0, len(self.source.text), {"rows": (0, 0)})


def rows_of(
    tables: Sequence[Table], keys: Sequence[Sequence[str]], make: Callable[[Row, Table, tuple[int, ...]], R]
) -> list[R]:
    """Return the result of `make` for each row, given the indexes of the columns with these keys."""
    return [
        make(row, table, indexes)
        for table in tables
        for indexes in [tuple(table.column(*names) for names in keys)]
        for row in table.rows
    ]


def read_tables(source: Source, required: Sequence[Sequence[str]], row_start: re.Pattern[str]) -> list[Table]:
    """Return the tables whose header has all `required` columns, each given as its possible keys. A separated row is
    recognized by its first cell, which must match `row_start`.
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


def _continues(line: SourceLine, table: Table) -> bool:
    """Read the next line after a row, and return whether it still belongs to the table."""
    if not line.text.strip() or _OTHER_BLOCK.match(line.text):
        return False
    if not table.rows and not table.has_dashes and line.number == table.header.line + 1 and _DASHES.match(line.text):
        table.has_dashes = True
    elif line.text.count("|") > 1 and not line.text.strip("| \t"):
        table.spacers.append(line.number)
    else:
        table.rows.append(_row(line, ""))
    table.end = line.number
    return True


def _row(line: SourceLine, torn: Torn) -> Row:
    cells = [
        Text(line.text[start:end], line.start + start, line.start + end)
        for start, end in row_cells(line.text, 0, len(line.text))
    ]
    start = line.start + len(line.text) - len(line.text.lstrip())
    return Row(line.number, (start, line.start + len(line.text.rstrip())), cells, torn)


def plain(cell: Text) -> Text:
    """Return the text of a cell without code and emphasis marks; for a link to a file, return its target."""
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


def empty_board(lanes: LaneTable = BUILT_IN) -> str:
    return "\n".join(["# Task Board", *(f"\n## {section.heading}" for section in lanes.sections)]) + "\n"


def empty_registry() -> str:
    return (
        "# Work Packet Traceability Registry\n\n"
        "| Base WP ID | Active Packet | Task Board | Notes |\n"
        "|---|---|---|---|\n"
    )


def entry_line(wp_id: str, token: str, remark: str = "") -> str:
    return f"- **[{wp_id}]** - [{token}]" + (f" - {remark}" if remark else "")


def board_cell(wp_id: str, lane: Lane, lanes: LaneTable) -> str:
    return f"{lanes.section_of(lane).heading}: {wp_id}"


def row_line(base: str, path: str, cell: str, notes: str) -> str:
    return f"| {base} | {path} | {cell} | {notes} |"


# Below this size, reading a whole register takes no longer than deciding what to leave out.
_MUCH = 16 * 1024


class Excerpt:
    """A shortened register. `source` is the text to read. `whole_edits` maps its edits to the whole text."""

    def __init__(self, whole: Source, spans: Sequence[tuple[int, int]]) -> None:
        self.source = whole
        # For each piece, where it begins in the excerpt, and its distance from there in the whole text.
        self._starts = [0]
        self._shifts = [0]
        if len(spans) > 1:
            text = whole.text
            self.source = Source(whole.path, "".join([text[start:end] for start, end in spans]), bom=whole.bom)
            for (_, end), (start, _) in pairwise(spans):
                self._shifts.append(self._shifts[-1] + start - end)
                self._starts.append(start - self._shifts[-1])

    def whole_edits(self, edits: Iterable[Edit]) -> list[Edit]:
        """Return the edits for the whole text. No edit is split: only whole lines were left out, none of them next to a
        deleted line.
        """
        moved = []
        for edit in edits:
            shift = self._shifts[bisect_right(self._starts, edit.start) - 1]
            moved.append(Edit(edit.start + shift, edit.end + shift, edit.text))
        return moved


def board_excerpt(board: Source, names: Iterable[str]) -> Excerpt:
    """Return the part of the board that concerns the packets with these ids."""
    return _excerpt(board, _ENTRIES, names)


def registry_excerpt(registry: Source, bases: Iterable[str]) -> Excerpt:
    """Return the part of the registry that concerns these bases."""
    return _excerpt(registry, _ROWS, bases)


# An entry counts in whatever section it is. Quantifiers are possessive, so each line is scanned once.
_ENTRIES = lazy_pattern(
    r"^(?P<run>(?:- \*\*\[WP-[A-Za-z0-9.-]*+(?<=[A-Za-z0-9])\]\*\* - \[[A-Z_]++\](?![(\[])[^\n]*+\n){4,}+)",
    re.MULTILINE,
)
# Below this header, every directly following line that begins with a pipe is a row of the registry.
_ROWS = lazy_pattern(
    r"^\| *+Base WP ID *+\| *+Active Packet *+\| *+Task Board *+\| *+Notes *+\|\n\|[-:]{3,}+\|[-:|]++\n"
    r"(?P<run>(?:\|[^\n]*+\n){4,}+)",
    re.MULTILINE,
)


def _excerpt(source: Source, runs: re.Pattern[str], names: Iterable[str]) -> Excerpt:
    """Return the excerpt. The group `run` of `runs` matches whole lines; those between the first and the last may be
    left out.
    """
    text = source.text
    if len(text) < _MUCH or "\r" in text or any(mark in text for mark in _HIDING):
        return Excerpt(source, [(0, len(text))])
    wanted = tuple(names)
    spans: list[tuple[int, int]] = []
    begin = 0
    for start, end in (match.span("run") for match in runs.finditer(text)):
        position, last = text.index("\n", start) + 1, text.rindex("\n", start, end - 1) + 1
        named = {line for name in wanted for line in _lines_with(text, name, position, last)}
        for first, behind in (*sorted(named), (last, end)):
            if first > position:
                spans.append((begin, position))
                begin = first
            position = behind
    return Excerpt(source, [*spans, (begin, len(text))])


def _lines_with(text: str, name: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the lines between two offsets that contain the name, even as part of a longer word."""
    at = text.find(name, start, end)
    while at >= 0:
        line_end = text.index("\n", at) + 1
        yield text.rindex("\n", 0, at) + 1, line_end
        at = text.find(name, line_end, end)
