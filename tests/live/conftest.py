from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.audited import Audited, build
from cli.commands import Commands
from git.scratch import make_repository
from live.serving import Browser, Server, served


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """A repository with a packet that is finished, one in progress, one that is blocked, and a stub."""
    return build(tmp_path_factory.mktemp("live") / "town")


@pytest.fixture(scope="module")
def server(town: Audited) -> Iterator[Server]:
    with served(town.root, options=("--write", "--as", "ann")) as running:
        yield running
        status, err = running.end()
        assert (status, err) == (0, "")


@pytest.fixture(scope="module")
def browser(server: Server) -> Browser:
    return server.browser()


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own for a test that changes it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return build(tmp_path / "alone").root


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """An empty repository in which commands are run."""
    make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Commands(tmp_path, capsys)
