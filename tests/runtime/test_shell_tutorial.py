"""The tutorial for shell scripts is true: its script is saved, run, killed and run again as the page says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "runtime" / "shell.md"
BLOCK = re.compile(r"^```(?P<info>\S+(?: [^\n]*)?)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = "from workpacket.cli.main import console; console()"


def test_the_shell_tutorial_is_what_happens(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "workpacket"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{CONSOLE}' \"$@\"\n")
    command.chmod(0o755)
    place = tmp_path / "place"
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    played = 0
    for match in BLOCK.finditer(PAGE.read_text("utf-8")):
        info, body = match["info"], match["body"]
        named = re.search(r"file=(\S+)", info)
        if named is not None:
            (place / named[1]).write_text(body, "utf-8")
        elif info.startswith("console"):
            assert play(place, command.parent, info, body) == body.splitlines()[1:]
            played += 1
    assert played == 3
    assert (place / "converted").read_text().split() == ["1", "2", "3"]


def play(folder: Path, programs: Path, info: str, body: str) -> list[str]:
    """Run the block's command and give its output; with `kill-after` everything it started is killed with it."""
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1",
    }  # fmt: skip
    kill_after = re.search(r'kill-after="([^"]*)"', info)
    lines: list[str] = []
    with subprocess.Popen(
        body.splitlines()[0].removeprefix("$ ").split(),
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if kill_after is not None and line.startswith(kill_after[1]):
                for child in descendants(process.pid):
                    os.kill(child, signal.SIGKILL)
                break
        process.wait(60)
    return lines


def descendants(pid: int) -> list[int]:
    """The process and all that it started, found through the system's own list."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in listed.splitlines())}
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found
