"""Running a program as a step: in a process group of its own, so that a cancellation stops all of it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

LOOK = 0.1  # seconds between two looks for a cancellation
GRACE = 5.0  # seconds a program gets to end by itself


class Outcome(TypedDict):
    exit_code: int
    stdout: str
    stderr: str


def run_command(
    argv: Sequence[str], check: Callable[[], None], *, cwd: Path | None = None, timeout: float | None = None
) -> Outcome:
    """Run the program to its end. `check` raises when the run is cancelled: then the whole process group is stopped."""
    with subprocess.Popen(  # noqa: S603  # an argument list, no shell
        list(argv),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        waited = 0.0
        while True:
            try:
                stdout, stderr = process.communicate(timeout=LOOK)
                return Outcome(exit_code=process.returncode, stdout=stdout, stderr=stderr)
            except subprocess.TimeoutExpired:
                waited += LOOK
                _check_or_stop(process, check, timeout is not None and waited >= timeout)


def _check_or_stop(process: subprocess.Popen[str], check: Callable[[], None], overdue: bool) -> None:
    try:
        if overdue:
            raise TimeoutError("the program took longer than it was allowed")
        check()
    except BaseException:
        stop_group(process)
        raise


def stop_group(process: subprocess.Popen[Any]) -> None:
    """End every process of the group: asked first, then forced."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
