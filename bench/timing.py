"""Runs a command several times and says how long it took."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds: the median and the least of wall-clock time, and the median of processor time."""

    wall: float
    least: float
    cpu: float


class CommandFailed(Exception):
    """A measured command did not do its work; its time would mean nothing."""


def measure(
    command: Sequence[str],
    folder: Path,
    *,
    repeats: int,
    statuses: tuple[int, ...] = (0,),
    environment: Mapping[str, str] | None = None,
) -> Timing:
    """The time of `command`, each run a process of its own. A status other than `statuses` is a failure."""
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(repeats):
        started = time.perf_counter()
        with subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        ) as process:
            assert process.stderr is not None
            complaint = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        walls.append((time.perf_counter() - started) * 1e3)
        cpus.append((usage.ru_utime + usage.ru_stime) * 1e3)
        if process.returncode not in statuses:
            words = complaint.decode(errors="replace").strip().splitlines()
            raise CommandFailed(f"exit status {process.returncode}: {words[-1] if words else 'no message'}")
    return Timing(statistics.median(walls), min(walls), statistics.median(cpus))
