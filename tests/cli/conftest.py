from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.commands import Commands
from cli.places import Place
from git.scratch import make_repository


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """An empty repository in which commands are run."""
    make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Commands(tmp_path, capsys)


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return Place(tmp_path, capsys)
