"""What a user of the product has in hand: the installed command, files, git, a shell, and the public Python modules.

The tests of this folder see the product through this module and nothing else, so that they go on passing while its
internals are moved, merged and renamed, and fail when a behaviour is lost on the way.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(sys.executable).parent
PATIENCE = 300  # only a command that hangs is stopped
# The modules that the documentation tells users to import. Programs and tests of this folder import no others.
PUBLIC = (
    "workpacket.problem",
    "workpacket.runtime",
    "workpacket.runtime.model_sessions.session",
    "workpacket.runtime.step",
    "workpacket.runtime.step.pipeline",
    "workpacket.runtime.testing",
)


class Said(NamedTuple):
    """What a command answered."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def answer(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        value: dict[str, Any] = json.loads(self.out)
        return value

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.answer["data"]
        return data

    @property
    def codes(self) -> list[str]:
        """The codes of all findings of `--json`."""
        return [finding["code"] for finding in self.answer["findings"]]

    def errors(self) -> list[dict[str, Any]]:
        return [finding for finding in self.answer["findings"] if finding["severity"] == "error"]


@cache
def _installed() -> Callable[[], object]:
    """The function that the installed script calls; where it lives is nobody's business."""
    (point,) = entry_points(group="console_scripts", name="workpacket")
    console: Callable[[], object] = point.load()
    return console


def workpacket(folder: Path, *words: str) -> Said:
    """Call the installed command in a folder, inside this process because that is quicker."""
    out, err = io.StringIO(), io.StringIO()
    status: Any = 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", ["workpacket", *words]),
        patch.object(sys, "stdin", io.StringIO()),
    ):
        try:
            _installed()()
        except SystemExit as ended:
            status = ended.code
    return Said(int(status or 0), out.getvalue(), err.getvalue())


def environment(**more: str) -> dict[str, str]:
    """For processes: our programs on the path, ours and the tests' modules importable."""
    path = os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def ran(folder: Path, *command: str | Path, **more: str) -> Said:
    """Run a program in a process of its own, without a terminal."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment(**more), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


def python(folder: Path, program: str, *words: str) -> Said:
    return ran(folder, sys.executable, "-c", program, *words)


def git(folder: Path, *words: str, check: bool = True) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=check, env=environment())
    return done.stdout.strip()


@dataclass(frozen=True)
class Repository:
    """A repository on disk, and the command called in it."""

    root: Path

    def __call__(self, *words: str) -> Said:
        return workpacket(self.root, *words)

    def done(self, *words: str) -> Said:
        """A command that is expected to succeed."""
        said = self(*words)
        assert said.status == 0, (words, said)
        return said

    def refused(self, *words: str) -> str:
        """What a gate says that refuses the command, which then changed nothing."""
        before = self.files()
        said = self(*words)
        assert said.status == 3, (words, said)
        assert self.files() == before
        return said.text

    def json(self, *words: str) -> dict[str, Any]:
        return self(*words, "--json").data

    def read(self, path: str) -> str:
        return (self.root / path).read_bytes().decode("utf-8")

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8"))

    def replace(self, path: str, *pairs: tuple[str, str]) -> None:
        text = self.read(path)
        for old, new in pairs:
            assert old in text, (path, old)
            text = text.replace(old, new)
        self.write(path, text)

    def git(self, *words: str, check: bool = True) -> str:
        return git(self.root, *words, check=check)

    def commit(self, message: str = "work", files: Mapping[str, str] | None = None) -> str:
        for path, text in (files or {}).items():
            self.write(path, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def files(self) -> dict[str, bytes]:
        """Everything but git's own folder."""
        paths = (path for path in sorted(self.root.rglob("*")) if path.is_file() and ".git" not in path.parts)
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in paths}

    def section(self, heading: str, path: str = ".GOV/roles_shared/TASK_BOARD.md") -> str:
        """What stands below a heading of a document, up to the next one."""
        return self.read(path).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def new_repository(root: Path) -> Repository:
    root.mkdir(parents=True, exist_ok=True)
    made = Repository(root)
    made.git("init", "--quiet", "--initial-branch=main")
    return made
