"""A terminal that does not know how wide it is wraps nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

SHOW = "from workpacket.cli.cached_output import terminal; print(terminal()[:2])"


def test_a_terminal_without_a_size_counts_as_one_of_unknown_width() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", SHOW], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    assert os.read(ours, 100).decode().strip() == "(True, None)"
    os.close(ours)
