from __future__ import annotations

import pytest

from trust.play import Table


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """One for all modules: its stages take a second each."""
    return Table(tmp_path_factory.mktemp("table"))
