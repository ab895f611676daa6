"""Commands about runs of a packet, killed before and after each thing that lasts, in the store and in the log.

Whatever the moment: no run is at work of which the log does not know, no verdict is given meanwhile, and `runs settle`
brings both to say the same.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import lifecycle.governed
from lifecycle.governed import Governed, govern
from lifecycle.test_run_links import NAME, RUN, gone, in_progress, in_review, runs, start
from proof.share import share

PROGRAM = Path(lifecycle.governed.__file__).with_name("killed_links.py")
COMMANDS = {
    "start": ("runtime", "run", "start", "translate", "--packet", NAME),
    "go on": ("runtime", "run", "start", "translate", "--packet", NAME),
    "start again": ("runtime", "run", "start", "translate", "--packet", NAME),
    "finish": ("runtime", "run", "stop", f"{RUN}#1"),
    "stop": ("runtime", "run", "stop", f"{RUN}#1", "--code", "stalled"),
    "cancel": ("cancel", RUN),
}
# As many as the longest of them does, and one more.
CASES = share(list(product(COMMANDS, (1, 2, 3, 4, 5), ("before", "after"))))


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    return govern(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(("command", "number", "when"), CASES)
def test_no_kill_hides_a_run_from_the_verdict(governed: Governed, command: str, number: int, when: str) -> None:
    in_progress(governed)
    before(governed, command)
    in_review(governed)
    killed(governed, number, when, *COMMANDS[command])
    at_work = unfinished(governed)
    assert at_work <= still_open(governed)
    assert refuses(governed) == bool(still_open(governed))
    assert governed.json("runtime", "runs", "settle")["data"]["left"] == []
    assert unfinished(governed) == still_open(governed) == at_work
    assert refuses(governed) == bool(at_work)
    governed.done("log", "verify")


def before(governed: Governed, command: str) -> None:
    if command == "start":
        return
    handle = start(governed, owner=gone() if command in {"go on", "cancel"} else os.getpid())
    if command == "start again":
        governed("runtime", "run", "stop", handle, "--code", "stalled")


def killed(governed: Governed, number: int, when: str, *words: str) -> None:
    """Numbers beyond the last thing that lasts kill nobody: then the command ends as it should."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(number), when, *words],
        cwd=governed.root, capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert ended.returncode in {0, 43, -signal.SIGKILL}, ended.stderr
    if number == 1 and when == "before":
        assert ended.returncode == -signal.SIGKILL


def unfinished(governed: Governed) -> set[str]:
    """By the store."""
    listed = governed.json("runtime", "runs", "list")["data"]["runs"]
    return {one["run"] for one in listed if one["state"] in {"live", "interrupted"}}


def still_open(governed: Governed) -> set[str]:
    """By the log."""
    return {run for run, outcome in runs(governed) if not outcome}


def refuses(governed: Governed) -> bool:
    return "run_unfinished" in {one["code"] for one in governed.json("why", NAME)["data"]["unmet"]}
