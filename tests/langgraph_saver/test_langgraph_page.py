"""docs/runtime/langgraph.md is what happens: its graph is run, killed and run again, by real processes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runtime.test_tutorial import BLOCK, play

PAGE = Path(__file__).parents[2] / "docs" / "runtime" / "langgraph.md"


def test_the_graph_of_the_page_is_killed_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKPACKET_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    played = 0
    for match in BLOCK.finditer(PAGE.read_text("utf-8")):
        named = re.search(r"file=(\S+)", match["info"])
        if named is not None:
            (tmp_path / named[1]).write_text(match["body"], "utf-8")
        elif match["info"].startswith("console"):
            assert play(tmp_path, match["info"], match["body"]) == match["body"].splitlines()[1:]
            played += 1
    assert played == 3
