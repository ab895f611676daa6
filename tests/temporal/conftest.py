"""One Temporal server for all tests of one process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lifecycle.governed import Governed, govern
from temporal.jobs import LEDGER
from temporal.server import TemporalServer


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[TemporalServer]:
    server = TemporalServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    """An empty repository in which commands are run."""
    return govern(tmp_path, monkeypatch, capsys)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of the world outside, which effects change."""
    path = str(tmp_path / "ledger.db")
    monkeypatch.setenv(LEDGER, path)
    return path


def played(story: Callable[[], Awaitable[Any]], seconds: float = 40) -> Any:
    """Play a story of a test in an event loop of its own."""

    async def bounded() -> Any:
        return await asyncio.wait_for(story(), seconds)

    return asyncio.run(bounded())
