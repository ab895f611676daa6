"""The page about checkpoint commits is true: its script is saved and run, and says what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from git.scratch import commit, make_repository
from runtime.test_shell_tutorial import BLOCK, CONSOLE

PAGE = Path(__file__).parents[2] / "docs" / "runtime" / "commit.md"


def test_the_page_about_checkpoint_commits_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    place = tmp_path / "place"
    make_repository(place)
    commit(place, "base", **{".gitignore": "/.runr/\n"})
    programs = tmp_path / "bin"
    programs.mkdir()
    command = programs / "workpacket"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{CONSOLE}' \"$@\"\n")
    command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }  # fmt: skip
    played = 0
    for match in BLOCK.finditer(PAGE.read_text("utf-8")):
        info, body = match["info"], match["body"]
        named = re.search(r"file=(\S+)", info)
        if named is not None:
            (place / named[1]).write_text(body, "utf-8")
            continue
        words = body.splitlines()[0].removeprefix("$ ").split()
        said = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, check=True).stdout
        said = re.sub(r"Checkpoint-Id: [0-9a-f]{16}", "Checkpoint-Id: ...", said).rstrip("\n")
        assert said.splitlines() == body.splitlines()[1:]
        played += 1
    assert played == 2
