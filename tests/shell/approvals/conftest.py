from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from git.scratch import copy_of
from shell.approvals.story import Story, begin


@pytest.fixture(scope="session")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once; each test works on a copy."""
    folder = tmp_path_factory.mktemp("beginning")
    begin(folder / "repository", folder / "home")
    return folder


@pytest.fixture
def story(beginning: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.delenv("WORKPACKET_KEY", raising=False)
    shutil.copytree(beginning / "home", home)
    copy_of(beginning / "repository", tmp_path / "repository")
    return Story(tmp_path / "repository", home)
