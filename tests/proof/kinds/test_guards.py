"""Each failure mode of the five kinds is noticed because of a guard: without it, the test of that mode fails.

The guard is taken out of a copy of the package, so that processes which a test starts go without it too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from proof.kinds.guards import GUARDS, Guard
from proof.share import stride

CHOSEN = GUARDS[:: stride(13)]  # each takes a run of pytest of its own
TESTS_FAILED = 1  # what pytest answers if tests ran and failed; a test that is not there is another number


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    for name in ("tools/workpacket", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def tried(copy: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    paths = f"{ROOT / 'tests'} {copy / 'tools'}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", f"pythonpath={paths}", *tests]
    environment = {**os.environ, "PYTHONPATH": paths.replace(" ", os.pathsep), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("WORKPACKET_PROOF", None)
    # A test may print half a character.
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, errors="replace", check=False, timeout=600
    )


@pytest.mark.parametrize("guard", CHOSEN, ids=lambda guard: guard.mode)
def test_without_its_guard_the_test_of_a_failure_mode_fails(copy: Path, guard: Guard) -> None:
    file = copy / "tools" / "workpacket" / guard.file
    whole = file.read_text("utf-8")
    file.write_text(whole.replace(guard.guard, guard.without), "utf-8")
    try:
        done = tried(copy, guard.test)
    finally:
        file.write_text(whole, "utf-8")
    assert done.returncode == TESTS_FAILED, done.stdout + done.stderr
    assert " failed" in done.stdout, done.stdout


def test_with_all_guards_they_pass(copy: Path) -> None:
    """The control: what makes them fail is the missing guard, and not the copy."""
    done = tried(copy, *dict.fromkeys(guard.test for guard in CHOSEN))
    assert done.returncode == 0, done.stdout + done.stderr
