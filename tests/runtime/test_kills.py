"""SIGKILL at any moment: nothing acknowledged is lost, nothing happens twice without being reported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

SERVER = Path(__file__).with_name("kill_server.py")


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """In memory where the system offers it: a SIGKILL does not ask what the disk holds, and time buys more kills."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def kill(folder: Path, seed: int, kills: int) -> dict[str, int]:
    command = [sys.executable, str(SERVER), "play", str(folder), str(seed), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, int] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("kills", [80, pytest.param(500, marks=pytest.mark.long)])
def test_random_kills_lose_nothing_and_repeat_nothing_in_silence(quick_folder: Path, kills: int) -> None:
    report = kill(quick_folder, seed=20261118, kills=kills)
    assert report["kills"] >= kills
    assert report["rounds"] > 1
