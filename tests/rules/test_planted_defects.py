"""Defects planted into documents without a fault: each is found, by the right code, on the right line.

`planted_defects.jsonl` has one defect a line: what it is, the kind of document, what is replaced by what, the code that
must be reported under the profile `strict`, and a text on the line where (null: anywhere).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rules.canonical import CANONICAL
from rules.test_dirty_documents import findings_in

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("planted_defects.jsonl").read_text("utf-8").splitlines()
]


def planted(row: dict[str, Any]) -> str:
    text = CANONICAL[row["kind"]][1]
    for old, new in row["edits"]:
        assert old in text, row
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_planted_defect_is_found(number: int) -> None:
    row = ROWS[number]
    text = planted(row)
    found = [(one.code, one.line) for one in findings_in(row["kind"], text.encode(), "strict")]
    lines = [line for code, line in found if code == row["code"]]
    assert lines, (row, found)
    if row["at"] is not None:
        assert any(row["at"] in text.splitlines()[line - 1] for line in lines), (row, found)


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in ROWS}))
def test_the_documents_themselves_have_no_fault(kind: str) -> None:
    assert [one.code for one in findings_in(kind, CANONICAL[kind][1].encode(), "strict")] == []


def test_there_are_defects_of_many_kinds() -> None:
    assert len({row["defect"] for row in ROWS}) >= 40
