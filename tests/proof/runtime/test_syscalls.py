"""A kill, a full disk and a failing disk at every single storage call of a run with steps and effects.

strace counts the calls of one undisturbed life, then one life is disturbed at each of them. After it the run is
resumed, what a person has to decide is decided, and the whole is judged: nothing acknowledged is lost, nothing happens
twice without a word.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import workpacket
from proof.share import bounded, share
from runtime.damage import quick_folder

SERVER = Path(__file__).parents[2] / "runtime" / "kill_server.py"
STORAGE = ("pwrite64", "fdatasync", "fsync", "ftruncate", "unlink", "flock", "mkdir")
ENVIRONMENT = os.environ | {"KILL_STEPS": "2", "PYTHONPATH": str(Path(workpacket.__file__).parents[1])}


def server(verb: str, folder: Path, *trace: str) -> subprocess.CompletedProcess[str]:
    command = [*trace, sys.executable, str(SERVER), verb, str(folder)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@cache
def calls() -> dict[str, int]:
    """How often one undisturbed life makes each call."""
    with quick_folder() as folder:
        done = server(
            "life", folder / "life", "strace", "-f", "-e", f"trace={','.join(STORAGE)}", "-o", str(folder / "log")
        )
        assert done.returncode == 0, done.stderr
        log = (folder / "log").read_text()
    return {name: len(re.findall(rf"\b{name}\(", log)) for name in STORAGE}


def disturbed(call: str, number: int, how: str) -> str:
    """'' if all is well after the life that was disturbed at this call, else what is wrong."""
    with quick_folder() as folder:
        inject = f"inject={call}:{how}:when={number}"
        server("life", folder, "strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject)
        judged = server("judge", folder)
        return "" if judged.returncode == 0 else f"{call} #{number} {how}: {judged.stderr[-1500:]}"


def everywhere(how: str, names: tuple[str, ...]) -> Iterator[str]:
    points = share([(name, number) for name in names for number in range(1, calls()[name] + 1)])
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(lambda point: disturbed(point[0], point[1], how), points)


@pytest.mark.parametrize("name", STORAGE)
def test_a_kill_at_any_storage_call_loses_nothing(name: str) -> None:
    assert [wrong for wrong in everywhere("signal=SIGKILL", (name,)) if wrong] == []


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_failing_storage_call_is_a_named_outcome_and_loses_nothing(error: str) -> None:
    assert [wrong for wrong in everywhere(f"error={error}", ("pwrite64", "fdatasync", "fsync")) if wrong] == []


def test_ten_thousand_random_kills_lose_nothing_and_repeat_nothing_in_silence() -> None:
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        command = [sys.executable, str(SERVER), "play", folder, "7", "1000" if bounded() else "10000"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        assert done.returncode == 0, done.stderr
