"""docs/runtime/role.md is what happens: its commands are run and print what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from workpacket.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "runtime" / "role.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_about_roles_is_what_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/auth.md").write_text("Begun.\n")
    played = 0
    for block in BLOCK.findall(PAGE.read_text("utf-8")):
        for typed in block.split("$ ")[1:]:
            words, _, shown = typed.partition("\n")
            if words == "tee -a docs/auth.md":  # what somebody writes in between
                (tmp_path / "docs/auth.md").write_text("More.\n")
                continue
            assert main(shlex.split(words)[1:]) == 0
            assert capsys.readouterr().out == shown
            played += 1
    assert played == 11
