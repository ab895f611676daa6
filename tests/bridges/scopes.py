"""A repository with one scope of three tasks, and the command that works on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from workpacket.cli.main import main

FOLDER = "specs/active/auth"
TASKS = """\
spec: auth   # the scope
tasks:
  - id: T001
    content: Add the model
    status: pending   # to do
    files: [src/a.py]
  - id: T002
    content: Add the door
    status: pending
    files: [src/b.py]
  - id: T003
    content: Add sessions
    status: pending
    depends_on: [T001, T002]
"""


@dataclass
class Scoped:
    root: Path
    capture: pytest.CaptureFixture[str]
    said: str = ""

    def __call__(self, *words: str) -> int:
        self.capture.readouterr()
        before = Path.cwd()
        os.chdir(self.root)
        try:
            status = main(["runtime", "batch", *words])
        finally:
            os.chdir(before)
        self.said = "".join(self.capture.readouterr())
        return status

    def done(self, *words: str) -> None:
        assert self(*words) == 0, self.said

    def status(self) -> dict[str, Any]:
        self.done("status", "auth", "--json")
        data: dict[str, Any] = json.loads(self.said)["data"]
        return data

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True).stdout

    def text(self, name: str) -> str:
        return (self.root / FOLDER / name).read_text("utf-8")

    def write(self, name: str, text: str) -> None:
        (self.root / FOLDER / name).write_text(text, "utf-8")

    def phase(self, name: str) -> None:
        self.done("begin", "auth")
        self.done("complete", "auth", "--phase", name)

    def phases(self) -> None:
        for name in ("testers", "implementers", "reviewers"):
            self.phase(name)

    def killed(self, number: int, when: str, *words: str) -> None:
        """Run the command in a process that ends itself by SIGKILL around the call `number` that lasts."""
        program = Path(__file__).parent / "killed_batch.py"
        done = subprocess.run(
            [sys.executable, str(program), str(number), when, *words],
            check=False, cwd=self.root, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == -9, done.stderr


def scoped(root: Path, capture: pytest.CaptureFixture[str]) -> Scoped:
    scope = Scoped(root, capture)
    (root / FOLDER).mkdir(parents=True)
    (root / "src").mkdir()
    scope.write("tasks.yaml", TASKS)
    scope.git("init", "-q", "-b", "main")
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        scope.git("config", name, value)
    scope.git("add", "-A")
    scope.git("commit", "-qm", "one")
    return scope
