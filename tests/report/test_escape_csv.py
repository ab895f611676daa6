"""Tables as CSV: any reader of CSV gives back the cells, and no cell is a formula in a spreadsheet."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.report.terminal import csv_text


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize(
    "attack",
    ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", " =1", "\t=1", "\uff1d1+1", '=HYPERLINK("http://x","y")'],
)
def test_text_that_a_spreadsheet_would_run_is_made_text(attack: str) -> None:
    (shown,) = read(csv_text(["a"], [[attack]]))[1]
    assert shown[0] == "'" or shown[0] == "\\"


def test_numbers_stay_numbers_and_other_text_stays_as_it_is() -> None:
    assert read(csv_text(["a", "b", "c"], [[-1, "plain", "5-3"]]))[1] == ["-1", "plain", "5-3"]


@given(st.lists(st.lists(st.text(max_size=20), min_size=2, max_size=2), max_size=5))
def test_every_text_is_one_cell_of_one_line(rows: list[list[str]]) -> None:
    text = csv_text(["a", "b"], rows)
    assert text.count("\r\n") == len(rows) + 1
    found = read(text)
    assert [len(row) for row in found] == [2] * (len(rows) + 1)
    assert not any(cell.lstrip(" ").startswith(("=", "+", "-", "@")) for row in found for cell in row)
