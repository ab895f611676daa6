"""Playing a page of the documentation: its scripts are saved, its commands are run and must say what the page says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from git.scratch import commit, make_repository
from runtime.test_shell_tutorial import BLOCK, CONSOLE

PAGES = Path(__file__).parents[2] / "docs" / "runtime"


def play(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> int:
    """Play the page in a repository that begins with these files; how many commands were run."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    place = folder / "place"
    make_repository(place)
    commit(place, "base", **{".gitignore": "/.runr/\n/said\n", **files})
    programs = folder / "bin"
    programs.mkdir()
    command = programs / "workpacket"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{CONSOLE}' \"$@\"\n")
    command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }  # fmt: skip
    played = 0
    for match in BLOCK.finditer((PAGES / page).read_text("utf-8")):
        info, body = match["info"], match["body"]
        named = re.search(r"file=(\S+)", info)
        if named is not None:
            (place / named[1]).write_text(body, "utf-8")
            continue
        if not body.startswith("$ "):
            continue
        pause = re.search(r"after=(\d+)", info)
        if pause is not None:
            time.sleep(int(pause[1]))
        words = shlex.split(body.splitlines()[0].removeprefix("$ "))
        words = [sys.executable, *words[1:]] if words[0] == "python" else words
        said = output(words, place, environment, re.search(r'kill-after="([^"]*)"', info))
        said = re.sub(r"(Checkpoint-Id:|since commit) [0-9a-f]+", r"\1 ...", said).rstrip("\n")
        assert said.splitlines() == body.splitlines()[1:]
        played += 1
    return played


def output(words: Sequence[str], folder: Path, environment: Mapping[str, str], last: re.Match[str] | None) -> str:
    """What the command says; it is killed once it has said the last line that it is to say."""
    said = ""
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if last is not None and line.startswith(last[1]):
                process.kill()
                break
    assert last is None or process.returncode < 0, f"it ended before it was killed: {said}"
    return said
