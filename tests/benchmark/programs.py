"""A repository whose package does nothing but take time, and rows that measure it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.rows import Row, Sampler, command, program
from bench.sides import Figures, Side
from bench.timing import NotMeasured

_PROJECT = '[project]\nname = "workpacket"\n[project.scripts]\nworkpacket = "workpacket.main:console"\n'
_MAIN = """import sys, time

def console():
    while time.process_time() < {seconds}:
        pass
    return {status}
"""


def write_package(root: Path, seconds: float, status: int = 0) -> str:
    """Commits a package whose command takes so many seconds of processor time; the commit."""
    package = root / "tools" / "workpacket"
    package.mkdir(parents=True, exist_ok=True)
    # Python would take compiled code for current if its source has the same size and was written in the same second.
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    (root / "pyproject.toml").write_text(_PROJECT)
    (root / ".gitignore").write_text("__pycache__/\nresults/\n")
    (package / "__init__.py").touch()
    (package / "main.py").write_text(_MAIN.format(seconds=seconds, status=status))
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "-m", "work")
    return git(root, "rev-parse", "HEAD")


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def scratch(side: Side) -> Path:
    return side.scratch


def impossible(_side: Side) -> Sampler:
    raise NotMeasured("the disk is full")


def hanging(side: Side) -> Sampler:
    def sample() -> Figures:
        side.run(["sleep", "60"], side.scratch, patience=0.5)
        raise AssertionError

    return sample


PYTHON = Row("python", program(lambda side: [side.python, "-c", "pass"], within=scratch), kind="floor", repeats=3)
WORK = Row("work", command(within=scratch), floor="python", repeats=3)
IMPOSSIBLE = Row("impossible", impossible)
HANGING = Row("hanging", hanging, kind="peer")
LAST = Row("last", command(within=scratch), repeats=1)
