"""Kills of a program that uses every public method of a run: it ends, with the same answers, and acts once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import workpacket
from proof.share import bounded
from runtime.damage import quick_folder

PROGRAM = Path(__file__).parents[2] / "runtime" / "kill_every_use.py"
KILLS = 1000
BOUNDED_KILLS = 60


def test_a_program_with_every_method_of_a_run_ends_with_the_same_answers_after_any_kills() -> None:
    kills = BOUNDED_KILLS if bounded() else KILLS
    paths = os.pathsep.join([str(Path(workpacket.__file__).parents[1]), str(Path(__file__).parents[2])])
    with quick_folder() as folder:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(folder), "20261118", str(kills)],
            env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] >= kills
    assert report["rounds"] > 1
