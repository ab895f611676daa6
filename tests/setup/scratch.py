"""A scratch repository with the real just.py and bootstrap.py, and small wheels in place of the real tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from setup import wheels

ROOT = Path(__file__).parents[2]

PYPROJECT = """
[build-system]
requires = []
build-backend = "wheels"
backend-path = ["backend"]

[project]
name = "workpacket"
dependencies = []

[dependency-groups]
dev = ["rust_just"]
"""

# Stands for just: says what it was called with, and whether it finds the package.
JUST = """
import json, os, sys, workpacket

def main():
    told = {"arguments": sys.argv[1:], "path": os.environ["PATH"].split(os.pathsep)[0],
            "environment": os.environ["VIRTUAL_ENV"], "package": workpacket.__file__}
    print(json.dumps(told))
"""

# Stands for a uv that can't see the mirror which pip is configured for. Where the test asks for it, it first says that
# it has begun, and waits.
UV = """
import os, pathlib, sys, time

def main():
    wait = os.environ.get("TEST_UV_WAITS_FOR")
    if wait:
        pathlib.Path(wait + ".begun").touch()
        while not pathlib.Path(wait).exists():
            time.sleep(0.01)
    sys.exit("error: no such index")
"""


@dataclass(frozen=True)
class Result:
    status: int
    output: str
    said: str

    @property
    def told(self) -> dict[str, object]:
        """What the program that stands for just was told."""
        value = json.loads(self.output)
        assert isinstance(value, dict)
        return value


class Scratch:
    """`home` holds the repository, the wheels, and the folder of programs that is the PATH."""

    def __init__(self, home: Path) -> None:
        self.repository = home / "repository of mine"  # the space is on purpose
        self.wheels = home / "wheels"
        self.programs = home / "programs"
        for folder in (self.repository / "tools" / "workpacket", self.repository / "backend", self.wheels):
            folder.mkdir(parents=True)
        for name in ("just.py", "bootstrap.py"):
            shutil.copy(ROOT / "tools" / name, self.repository / "tools")
        shutil.copy(wheels.__file__, self.repository / "backend")
        self.repository.joinpath("tools", "workpacket", "__init__.py").touch()
        self.write_pyproject(PYPROJECT)
        wheels.write_program(self.wheels, "rust_just", "just", JUST)
        wheels.write_program(self.wheels, "uv", "uv", UV)
        self.programs.mkdir()
        for name in ("git", "ssh-keygen"):
            self.link(name, shutil.which(name) or "")

    @property
    def venv(self) -> Path:
        return self.repository / ".venv"

    @property
    def stamp(self) -> Path:
        return self.venv / "setup-stamp.txt"

    def write_pyproject(self, text: str) -> None:
        self.repository.joinpath("pyproject.toml").write_text(text, "utf-8")

    def link(self, name: str, target: str) -> None:
        """Put a program on the PATH."""
        self.programs.joinpath(name).symlink_to(target)

    def environment(self, **changes: str) -> dict[str, str]:
        """No configuration of this machine's pip, and no index: what there is stands in the folder of wheels."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
        own = {"PATH": str(self.programs), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        return {**kept, **own, "PIP_CONFIG_FILE": os.devnull, **changes}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self.repository / "tools" / "just.py"), *arguments]

    def start(self, *arguments: str, **changes: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        environment = self.environment(**changes)
        return subprocess.Popen(self.command(*arguments), env=environment, stdout=pipe, stderr=pipe, encoding="utf-8")

    def run(self, *arguments: str, **changes: str) -> Result:
        return finish(self.start(*arguments, **changes))

    def run_command(self, *command: str, **changes: str) -> Result:
        environment = self.environment(**changes)
        done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
        return Result(done.returncode, done.stdout, done.stderr)


def finish(process: subprocess.Popen[str]) -> Result:
    output, said = process.communicate(timeout=120)
    return Result(process.returncode, output, said)
