from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.audited import Audited, build
from audit.test_planted_faults import edited_log, edited_report, expired_waiver, moved_specification, zombie_run
from browser.chromium import Page, browser, found


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests."""
    program = found()
    if program is None:
        pytest.skip("there is no Chromium here; on Debian: apt-get install chromium")
    with browser(program, tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """A repository with several faults."""
    town = build(tmp_path_factory.mktemp("audited") / "repository")
    for plant in (edited_report, edited_log, zombie_run, moved_specification, expired_waiver):
        plant(town)
    return town


@pytest.fixture(scope="session")
def report(faulty: Audited, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "audit.html"
    faulty("audit", "--out", str(path))
    return path
