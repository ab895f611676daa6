"""The tutorial is true: its program is saved, run, killed and run again as the page says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import workpacket
from git.scratch import bare_bones

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "runtime" / "tutorial.md"
BLOCK = re.compile(r"^```(?P<info>\S+(?: [^\n]*)?)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return [(match["info"], match["body"]) for match in BLOCK.finditer(PAGE.read_text("utf-8"))]


def play(folder: Path, info: str, body: str) -> list[str]:
    """Run the block's command and give its output; killed as soon as the output holds what the block names."""
    command = body.splitlines()[0].removeprefix("$ python ").split()
    environment = os.environ | {"PYTHONPATH": str(Path(workpacket.__file__).parents[1]), "HOME": str(folder)}
    kill_after = re.search(r'kill-after="([^"]*)"', info)
    lines: list[str] = []
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if kill_after is not None and line.startswith(kill_after[1]):
                process.send_signal(signal.SIGKILL)
                break
        if kill_after is None:
            lines += process.stderr.read().splitlines()[-2:]
        process.wait()
    failed = process.returncode != 0
    assert failed == (kill_after is not None or "exits-with-error" in info), lines
    return lines


def test_the_tutorial_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bare_bones(tmp_path)
    played = 0
    for info, body in blocks():
        named = re.search(r"file=(\S+)", info)
        if named is not None:
            (tmp_path / named[1]).write_text(body, "utf-8")
        elif info.startswith("console"):
            assert play(tmp_path, info, body) == body.splitlines()[1:]
            played += 1
    assert played == 5
