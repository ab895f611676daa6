"""The pages about checkpoint commits and about dependencies are true: their scripts say what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.pages import play


def test_the_page_about_checkpoint_commits_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play("commit.md", tmp_path, monkeypatch) == 2


def test_the_page_about_dependencies_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = '{"dependencies": {"zod": "^3.0.0"}}\n'
    assert play("dependencies.md", tmp_path, monkeypatch, **{"package.json": manifest}) == 4
