from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.governed import Governed, govern


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    """An empty repository in which commands are run."""
    return govern(tmp_path, monkeypatch, capsys)
