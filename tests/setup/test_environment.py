"""Whatever calls the tests, they work in repositories of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from git.scratch import make_repository


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_a_repository_that_a_hook_of_git_names_is_left_alone(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "of the hook").root
    before = contents(place)
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "tests/git/test_references.py"]
    named = {"GIT_DIR": str(place / ".git"), "GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(place / ".git/index")}
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **named}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert contents(place) == before
