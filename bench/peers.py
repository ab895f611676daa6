"""The tools that ours is compared with. Each is installed into an environment of its own below bench/.peers.

A peer that cannot be installed here is left out, and the table says so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PEERS = Path(__file__).parent / ".peers"
# Seconds after which an installation counts as impossible.
PATIENCE = 300


class NotInstallable(Exception):
    """The peer cannot be had on this machine."""


@dataclass(frozen=True, slots=True)
class Peer:
    """`package` is the name in the index (PyPI, or npm where `npm`), `program` what it installs."""

    name: str
    package: str
    program: str
    npm: bool = False

    def installed(self) -> Path:
        """The program, installed now if it was not before."""
        folder = PEERS / self.name
        program = folder / ("node_modules/.bin" if self.npm else "bin") / self.program
        if not program.exists():
            folder.mkdir(parents=True, exist_ok=True)
            self._install(folder)
        if not program.exists():
            raise NotInstallable(f"{self.package} installs no {self.program}")
        return program

    def _install(self, folder: Path) -> None:
        if self.npm:
            if shutil.which("npm") is None:
                raise NotInstallable("npm is not on this machine")
            _run(["npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), self.package])
            return
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", self.package])


RUMDL = Peer("rumdl", "rumdl", "rumdl")
CHECK_JSONSCHEMA = Peer("check-jsonschema", "check-jsonschema", "check-jsonschema")
DOORSTOP = Peer("doorstop", "doorstop", "doorstop")
SPEC_KITTY = Peer("spec-kitty", "spec-kitty-cli", "spec-kitty")
BACKLOG = Peer("backlog", "backlog.md", "backlog", npm=True)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstallable(f"its installation took longer than {PATIENCE} seconds") from None
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise NotInstallable(words[-1] if words else f"exit status {done.returncode}")
