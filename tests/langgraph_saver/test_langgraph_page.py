"""docs/runtime/langgraph.md and telemetry.md are what happens: their programs are run, and killed, as the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from git.scratch import bare_bones
from runtime.test_tutorial import BLOCK, play

PAGES = Path(__file__).parents[2] / "docs" / "runtime"


@pytest.mark.parametrize(("page", "commands"), [("langgraph.md", 3), ("telemetry.md", 2)])
def test_the_page_is_what_happens(page: str, commands: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKPACKET_STORE", "runs.db")
    monkeypatch.chdir(tmp_path)
    bare_bones(tmp_path)
    played = 0
    for match in BLOCK.finditer((PAGES / page).read_text("utf-8")):
        named = re.search(r"file=(\S+)", match["info"])
        if named is not None:
            (tmp_path / named[1]).write_text(match["body"], "utf-8")
        elif match["info"].startswith("console"):
            assert play(tmp_path, match["info"], match["body"]) == match["body"].splitlines()[1:]
            played += 1
    assert played == commands
