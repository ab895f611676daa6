from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lifecycle.governed import Governed, govern
from lifecycle.signed import Signed


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    """An empty repository in which commands are run."""
    return govern(tmp_path, monkeypatch, capsys)


@pytest.fixture
def signed(governed: Governed, tmp_path_factory: pytest.TempPathFactory) -> Signed:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen signs")
    return Signed(governed, tmp_path_factory.mktemp("keys") / "home")
