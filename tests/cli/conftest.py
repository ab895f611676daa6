from __future__ import annotations

from pathlib import Path

import pytest

from cli.commands import Commands
from cli.places import Place
from git.scratch import begin_repository, make_repository


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """An empty repository in which commands are run."""
    make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Commands(tmp_path, capsys)


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    begin_repository(tmp_path)
    return Place(tmp_path, capsys)
