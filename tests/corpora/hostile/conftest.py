from __future__ import annotations

from pathlib import Path

import pytest

from cli.commands import Commands
from git.scratch import bare_bones


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """An empty repository in which commands are run."""
    bare_bones(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Commands(tmp_path, capsys)
