"""Correct documents that look like faulty ones: nothing is reported, even under the profile `strict`.

`false_alarms.jsonl` has one case a line: what it is, and, for each file of `sound_repository.txt` (or the one that `in`
names), what is replaced by what, once or (`everywhere`) wherever it occurs; a file that does not exist is added. `also`
are the codes that the variant deserves: line ends of Windows are reported, and nothing that follows from them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rules.archive import Case
from rules.test_planted_defects import HERE, HOSTS, judged

CASES: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "false_alarms.jsonl").read_text("utf-8").splitlines()
]


def varied(row: dict[str, Any]) -> Case:
    files = {path: data.decode() for path, data in HOSTS[row.get("in", "sound_repository")].files.items()}
    for path, edits in row["changes"]:
        for old, new in edits:
            assert old in files.get(path, ""), row
            files[path] = files.get(path, "").replace(old, new, -1 if row.get("everywhere") else 1)
    return Case(row["case"], (), {path: text.encode() for path, text in files.items()})


@pytest.mark.share(4)
@pytest.mark.parametrize("row", CASES, ids=[row["case"] for row in CASES])
def test_what_is_correct_is_left_alone(row: dict[str, Any], tmp_path: Path) -> None:
    found = [one for one in judged(varied(row), tmp_path) if one.code not in row.get("also", ())]
    assert [(one.path, one.line, one.code, one.message) for one in found] == []
