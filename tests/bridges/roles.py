"""A repository in which roles write their progress, by the command that they use."""

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

FILE = "docs/progress/auth-backend-eng.md"
ROLE = ("auth", "backend-eng")
TEAM = ("--team", "build", "--instance", "a")


@dataclass
class Roles:
    root: Path
    capture: pytest.CaptureFixture[str]
    said: str = ""

    def __call__(self, *words: str) -> int:
        self.capture.readouterr()
        status = main(["runtime", "progress", *words])
        self.said = "".join(self.capture.readouterr())
        return status

    def done(self, *words: str) -> None:
        assert self(*words) == 0, self.said

    def claim(self, *words: str) -> None:
        self.done("claimed", *ROLE, *TEAM, *words)

    def text(self, path: str = FILE) -> str:
        return (self.root / path).read_bytes().decode()

    def write(self, text: str, path: str = FILE) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(text.encode())

    def listed(self, *words: str) -> list[dict[str, Any]]:
        self.done("list", "--json", *words)
        rows: list[dict[str, Any]] = json.loads(self.said)["data"]["roles"]
        return rows

    def killed(self, *words: str) -> None:
        """Run the command in a process that is killed after its record, before its file."""
        program = Path(__file__).parent / "killed_role.py"
        done = subprocess.run(
            [sys.executable, str(program), *words], check=False, cwd=self.root, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert done.returncode == -9, done.stderr


def checkpoint(feature: str = "auth", agent: str = "backend-eng", **changes: str) -> str:
    fields = {
        "feature": feature, "team": "build", "agent": agent, "phase": "design", "status": "in_progress",
        "last_action": "Drafted the plan", "updated": "2026-03-01T09:30:00Z", **changes,
    }  # fmt: skip
    front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
    return f"---\n{front}---\n\n## Progress Notes\n\n- [09:30] Claimed the task\n"
