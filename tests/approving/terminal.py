"""A command at a real terminal: answers are typed when the words asked for have been shown."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# A process of its own has one thread, in which a terminal can be made the controlling one.
_SPAWN = "import os,pty,sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


class Typed(NamedTuple):
    status: int
    screen: str


def at_terminal(
    command: Sequence[str], folder: Path, answers: Sequence[tuple[str, str]], environment: Mapping[str, str]
) -> Typed:
    """Run the command; each answer is a pair of what is waited for on the screen and what is typed then."""
    with subprocess.Popen(
        [sys.executable, "-c", _SPAWN, *command],
        cwd=folder,
        env=environment,
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
        status = process.wait(timeout=30)
    return Typed(status, screen.decode("utf-8", "replace").replace("\r\n", "\n"))
