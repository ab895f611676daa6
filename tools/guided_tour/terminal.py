"""Runs programs for the tour and for tests: with joined output, at a pseudo-terminal, or killed half-way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# In a separate process, because only a single-threaded one can make a terminal its controlling terminal.
_SPAWN = "import os,pty,sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
PATIENCE = 60


class Answer(NamedTuple):
    """The text to wait for on the screen, and the text to type then."""

    asked: str
    typed: str


class Shown(NamedTuple):
    status: int
    screen: str


def run(line: str, folder: Path, environment: Mapping[str, str]) -> Shown:
    command = ["sh", "-c", line]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
    )
    return Shown(done.returncode, _text(done.stdout))


def at_terminal(
    command: Sequence[str], folder: Path, answers: Sequence[tuple[str, str]], environment: Mapping[str, str]
) -> Shown:
    """Run a command at a pseudo-terminal, where ssh-keygen asks for its passphrase and `approve` for its confirmation.

    Each answer is typed once the text that it waits for has been shown.
    """
    with subprocess.Popen(
        [sys.executable, "-c", _SPAWN, *command],
        cwd=folder,
        env={"GIT_EDITOR": "false", **environment},  # no one is there to close an editor
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        screen = b""
        waiting = list(answers)
        while piece := os.read(process.stdout.fileno(), 65536):
            screen += piece
            if waiting and waiting[0][0].encode() in screen:
                process.stdin.write(waiting.pop(0)[1].encode() + b"\n")
                process.stdin.flush()
        process.stdin.close()
        return Shown(process.wait(PATIENCE), _text(screen))


def run_and_kill(line: str, folder: Path, environment: Mapping[str, str], *, after: str) -> Shown:
    """SIGKILL for the command and all that it started, as soon as a line begins with these words."""
    screen = ""
    with subprocess.Popen(
        ["sh", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for shown in process.stdout:
            screen += shown
            if shown.startswith(after):
                for pid in descendants(process.pid):
                    os.kill(pid, signal.SIGKILL)
                break
        return Shown(process.wait(PATIENCE), screen)


def descendants(pid: int) -> list[int]:
    """The process and all that it started: a program of a step has a session of its own."""
    parents = _parents()
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found


def _parents() -> dict[int, int]:
    """Who started whom: from /proc, for a small Linux has no `ps`; elsewhere from `ps`."""
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    if not stats:
        listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        return {int(child): int(parent) for child, parent in (row.split() for row in listed.splitlines())}
    parents = {}
    for path in stats:
        try:
            # The name in brackets may hold anything; the parent is the second field after the last one.
            parents[int(path.parent.name)] = int(path.read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except OSError:  # it has ended meanwhile
            continue
    return parents


def _text(screen: bytes) -> str:
    return screen.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "")
