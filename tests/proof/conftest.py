"""The proofs come to an end: what was not proved in the time that all of them are given together has failed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from proof.share import bounded, within

HOUR = 3600
GIVEN = HOUR / 2 if bounded() else 4 * HOUR

_ends = time.monotonic() + GIVEN


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    with within(_ends - time.monotonic()):
        yield
