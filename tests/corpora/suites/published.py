"""Published test data, where WORKPACKET_SUITES points. In CI it must be there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def suite(name: str) -> Path:
    """The folder of a suite. Without WORKPACKET_SUITES the tests that ask are skipped, in CI they fail."""
    folder = os.environ.get("WORKPACKET_SUITES")
    if folder is None:
        assert not os.environ.get("CI"), "WORKPACKET_SUITES must point at the published suites"
        pytest.skip("WORKPACKET_SUITES is not set")
    found = Path(folder) / name
    assert found.is_dir(), f"{found} is not there"
    return found
