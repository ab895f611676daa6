from __future__ import annotations

from pathlib import Path

import pytest

from corpora.real.real_files import lay_out


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus as a repository. Tests read it and do not change it."""
    root = tmp_path_factory.mktemp("corpus")
    assert lay_out(root) > 0
    return root
