"""The recipes are true: their programs are saved and run, and say what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.pages import PAGES, play
from runtime.test_shell_tutorial import BLOCK


def test_every_program_of_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play("recipes.md", tmp_path, monkeypatch) == 18


def test_no_program_of_the_page_is_long() -> None:
    blocks = BLOCK.finditer((PAGES / "recipes.md").read_text("utf-8"))
    programs = [block["body"] for block in blocks if "file=" in block["info"]]
    assert len(programs) == 10
    assert max(program.count("\n") for program in programs) <= 40
