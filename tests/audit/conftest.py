from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.audited import Audited, build
from git.scratch import copy_of
from shell.approvals.conftest import beginning, story  # noqa: F401 - fixtures of signed approvals, used by name


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """Made once; each test works on a copy."""
    return build(tmp_path_factory.mktemp("audited") / "repository")


@pytest.fixture
def audited(built: Audited, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Audited]:
    """A repository in which nothing is wrong. All tests share its clock, which is turned back after each."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for name in ("CI", "WORKPACKET_ACTOR", "WORKPACKET_ACTOR_KIND"):
        monkeypatch.delenv(name, raising=False)
    copy_of(built.root, tmp_path / "repository")
    began = built.clock.now
    yield Audited(tmp_path / "repository", built.capture, built.clock)
    built.clock.now = began
