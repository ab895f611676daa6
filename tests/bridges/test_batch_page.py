"""docs/runtime/batch.md is what happens: its commands are run and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridges.scopes import TASKS, scoped

PAGE = Path(__file__).parents[2] / "docs" / "runtime" / "batch.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_about_batches_is_what_happens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scope = scoped(tmp_path, capsys)
    first = TASKS.partition("  - id: T002")[0]
    scope.write("tasks.yaml", f"{first}  - id: T002\n    content: Next\n    depends_on: [T001]\n")
    played = 0
    for block in BLOCK.findall(PAGE.read_text("utf-8")):
        for command in block.split("$ workpacket runtime batch ")[1:]:
            words, _, shown = command.partition("\n")
            scope.done(*words.split())
            assert scope.said == shown
            played += 1
    assert played == 3
