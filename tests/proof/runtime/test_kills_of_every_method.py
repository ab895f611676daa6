"""Kills of a program that uses every public method of a run: it ends, with the same answers, and acts once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import workpacket
from postgres.server import programs
from proof.share import bounded
from runtime.damage import quick_folder

PROGRAM = Path(__file__).parents[2] / "runtime" / "kill_every_use.py"
KILLS = 1000
BOUNDED_KILLS = 60
OF_SERVER = 60
BOUNDED_OF_SERVER = 3


def play(kills: int, *of_server: int) -> dict[str, int]:
    paths = os.pathsep.join([str(Path(workpacket.__file__).parents[1]), str(Path(__file__).parents[2])])
    with quick_folder() as folder:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(folder), "20261118", str(kills), *map(str, of_server)],
            env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report: dict[str, int] = json.loads(done.stdout)
    assert report["kills"] >= kills
    assert report["rounds"] > 1
    return report


def test_a_program_with_every_method_of_a_run_ends_with_the_same_answers_after_any_kills() -> None:
    play(BOUNDED_KILLS if bounded() else KILLS)


def test_so_does_one_whose_runs_are_on_a_server_that_is_killed_too() -> None:
    if programs() is None:
        pytest.skip("there is no PostgreSQL on this machine and no wheel that brings it")
    kills, of_server = (BOUNDED_KILLS // 3, BOUNDED_OF_SERVER) if bounded() else (KILLS, OF_SERVER)
    assert play(kills, of_server)["servers"] == of_server
