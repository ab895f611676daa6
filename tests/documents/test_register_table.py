"""Tables of registers: found among others, and read whole even where Markdown sees them torn."""

from __future__ import annotations

import re

import pytest

from workpacket.documents.document import Text
from workpacket.documents.register_table import Table, plain, read_tables
from workpacket.text.source import Source

COLUMNS = (("name", "title"), ("value",))
HEADER = "| Name | Value |\n|---|---|\n"


def tables(text: str) -> list[Table]:
    return read_tables(Source("register.md", text), COLUMNS, re.compile(r"key"))


def rows(text: str) -> list[tuple[str, str]]:
    return [(row.cells[0].value, row.torn) for table in tables(text) for row in table.rows]


FOUND = [
    (HEADER + "| key1 | a |", [("key1", "")]),
    ("Name | Value\n---|---\nkey1 | a\n", [("key1", "")]),
    ("| **Title** (short) | `Value` | More |\n|---|---|---|\n| key1 | a | b |\n", [("key1", "")]),
    ("| Other | Table |\n|---|---|\n| key1 | a |\n\n" + HEADER + "| key2 | b |\n", [("key2", "")]),
    (HEADER + "| key1 | a |\n\n| key2 | b |\n| key3 | c |\n", [("key1", ""), ("key2", "blank"), ("key3", "")]),
    (HEADER + "| key1 | a |\n## More\n| key2 | b |\n", [("key1", ""), ("key2", "text")]),
    (HEADER + "| key1 | a |\n\n| Other | Table |\n|---|---|\n| key2 | b |\n", [("key1", "")]),
    (HEADER + "| key1 | a |\n\nwords | with | bars\n", [("key1", "")]),
    (HEADER + "| key1 | a |\nwords\n- item | x\n", [("key1", ""), ("words", "")]),
    ("```\n" + HEADER + "| key1 | a |\n```\n", []),
    ("<!--\n" + HEADER + "-->\n", []),
    ("| Name | Value |\n| key1 | a |\n", [("key1", "")]),
    (HEADER + "| key1 | a |\n\n# Phase 2\n\n" + HEADER + "| key2 | b |\n", [("key1", ""), ("key2", "")]),
]


@pytest.mark.parametrize(("text", "expected"), FOUND)
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_the_rows_of_the_right_table_are_read(text: str, expected: list[tuple[str, str]], eol: str) -> None:
    assert rows(text.replace("\n", eol)) == expected


def test_the_line_of_dashes_belongs_to_its_table() -> None:
    assert [table.has_dashes for table in tables(HEADER + "\n" + HEADER)] == [True, True]
    assert [table.has_dashes for table in tables("| Name | Value |\n| key1 | a |\n|---|---|\n")] == [False]


def test_cells_know_where_they_stand() -> None:
    text = HEADER + "  |  key1 | a \\| b |  |\n"
    row = tables(text)[0].rows[0]
    assert [cell.value for cell in row.cells] == ["key1", "a \\| b", ""]
    assert all(text[cell.start : cell.end] == cell.value for cell in row.cells)
    assert row.cell(2) is not None
    assert row.cell(3) is None
    assert row.cell(-1) is None


PLAIN = [
    ("value", "value"),
    ("`value`", "value"),
    ("**value**", "value"),
    ("**`value`**", "value"),
    ("[text](path/file.md)", "path/file.md"),
    ("[`text`](https://example.org)", "text"),
    ("`", "`"),
    ("``", ""),
    ("[x]", "[x]"),
    ("a [b](c.md)", "a [b](c.md)"),
    ("", ""),
]


@pytest.mark.parametrize(("cell", "value"), PLAIN)
def test_marks_around_a_value_are_not_part_of_it(cell: str, value: str) -> None:
    found = plain(Text(cell, 10, 10 + len(cell)))
    assert found.value == value
    assert cell[found.start - 10 : found.end - 10] == value
