"""A repository in which the commands about runs are called: here, or as scripts and programs of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from workpacket.cli.main import main
from workpacket.runtime.stores.contract import Lease
from workpacket.runtime.stores.sqlite.store import SQLiteStore

CONSOLE = "from workpacket.cli.main import console; console()"


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Place:
    """A repository in which commands are called: in this process, which is quick, or as scripts of their own."""

    root: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Ended:
        self.capture.readouterr()
        before, stopping = Path.cwd(), signal.getsignal(signal.SIGTERM)
        os.chdir(self.root)
        try:
            status = main(list(words))
        finally:
            os.chdir(before)
            signal.signal(signal.SIGTERM, stopping)
        return Ended(status, *self.capture.readouterr())

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json").stdout)

    def confirm(self, run: str) -> int:
        """Say yes to the one question of this run, as it was shown; the exit status."""
        (question,) = self.json("resume", run)["data"]["questions"]
        return self("resume", run, "--yes", "--confirm", question["digest"]).returncode

    def start(self, *words: str) -> str:
        return self("runtime", "run", "start", *words, "--owner", str(os.getpid())).stdout.strip()

    def script(self, text: str) -> subprocess.Popen[str]:
        """A shell script in which `wp` is the command."""
        head = f"wp() {{ '{sys.executable}' -c '{CONSOLE}' \"$@\"; }}\n"
        return subprocess.Popen(
            ["/bin/sh", "-c", head + text],
            cwd=self.root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


def run_here(program: str, place: Place, *words: str) -> Ended:
    """What `python -c PROGRAM` does, without a process of its own: for programs that end by themselves."""
    place.capture.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place.root)
        patch.setattr(sys, "argv", ["-c", *words])
        status: object = 0
        try:
            exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
        except SystemExit as stopped:
            status = stopped.code
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    return Ended(int(str(status or 0)), *place.capture.readouterr())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"}


def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.02)


def expire_lease(place: Place) -> None:
    store = SQLiteStore(place.root / ".git/workpacket/runs.db")
    for lease in store.leases():
        store.release(Lease(*lease))
    store.close()
