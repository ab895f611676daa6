"""Runs a command once and measures its time. A command that does not finish is killed with all its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# Seconds after which a measured command is killed: a peer's, and ours, which may take long on a busy machine.
PATIENCE = 300
OUR_PATIENCE = 1800


class NotMeasured(Exception):
    """A measurement failed; the message says why."""


@dataclass(frozen=True, slots=True)
class Run:
    """Milliseconds of wall-clock and processor time, children included, the standard output, and the memory of the
    largest process in megabytes."""

    wall: float
    cpu: float
    output: str
    peak: float


def run(
    command: Sequence[str],
    folder: Path,
    *,
    statuses: Sequence[int] = (0,),
    environment: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
) -> Run:
    """Measure a command. An exit status not in `statuses` is a failure, because the time would be meaningless."""
    # Files instead of pipes: a grandchild that outlives the command would keep a pipe open and its reader waiting.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaint:
        started = time.perf_counter()
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=complaint,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise NotMeasured(f"{Path(command[0]).name}: {error.strerror}") from None
        killed = threading.Event()
        watch = threading.Timer(patience, _kill, [process.pid, killed])
        watch.start()
        reaped = None
        try:
            # The timer is stopped before the process is reaped, while its id cannot yet belong to another process.
            # On macOS waitid is missing before Python 3.13.
            if hasattr(os, "waitid"):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            else:
                reaped = os.wait4(process.pid, 0)
            wall = time.perf_counter() - started
        except BaseException:
            _kill(process.pid, killed)
            raise
        finally:
            watch.cancel()
            watch.join()
            _, status, usage = reaped or os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if killed.is_set():
            raise NotMeasured(f"given up after {patience:g} s: {Path(command[0]).name} did not end")
        if process.returncode not in statuses:
            last = (_text(complaint).strip() or _text(output).strip()).splitlines()[-1:] or ["no message"]
            raise NotMeasured(f"exit status {process.returncode}: {last[0]}")
        cpu = usage.ru_utime + usage.ru_stime
        # Linux counts kilobytes, macOS bytes.
        peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        return Run(wall * 1e3, cpu * 1e3, _text(output), peak)


def stop_on_sigterm() -> None:
    """Remove work trees, servers and temporary folders on termination too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def _kill(leader: int, killed: threading.Event) -> None:
    killed.set()
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
