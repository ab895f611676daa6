"""The example repositories are made by their recipe, and everything that verifies a repository accepts them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from guided_tour.examples import EXAMPLES

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")
VERIFIED_BY = ("check", "check --base HEAD~1", "approvals verify", "log verify --signatures", "audit")


def example(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "guided_tour.examples", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("form", sorted(EXAMPLES))
def test_an_example_is_accepted_by_everything_that_verifies(tmp_path: Path, form: str) -> None:
    made = example(form, str(tmp_path))
    assert made.returncode == 0, made.stdout + made.stderr
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}
    for words in VERIFIED_BY:
        command = [str(tmp_path / "bin" / "workpacket"), *words.split()]
        done = subprocess.run(
            command, cwd=tmp_path / "greeter", capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    assert "VALIDATED" in made.stdout


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    assert example("full", str(tmp_path)).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
