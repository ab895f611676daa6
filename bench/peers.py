"""The tools that workpacket is compared with, each pinned and installed in its own environment below bench/.peers.

A peer that cannot be installed, or does not finish, is left out, and the table says so. To compare with a newer
version, change the pin here: a figure means nothing without the version it was measured with.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.timing import NotMeasured, run

HERE = Path(__file__).parent
PEERS = HERE / ".peers"
# Seconds after which an installation counts as failed.
PATIENCE = 300


@dataclass(frozen=True, slots=True)
class Peer:
    """`requirements` are pinned packages from PyPI (from npm if `npm`); `program` is installed by the first one.

    `options` select its rules; they are empty if it has no choice of rules, or validates with our schema.
    """

    name: str
    requirements: tuple[str, ...]
    program: str
    npm: bool = False
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder is named after all versions, so that a changed pin is a new installation."""
        return PEERS / "+".join([self.name, *(_version(each) for each in self.requirements)])

    def installed(self) -> Path:
        """Return the program, and install it first if necessary."""
        program = self.folder / ("node_modules/.bin" if self.npm else "bin") / self.program
        complete = self.folder / "complete"
        if not complete.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self._install()
            if not program.exists():
                raise NotMeasured(f"{self.requirements[0]} installs no {self.program}")
            complete.touch()
        return program

    def _install(self) -> None:
        if self.npm:
            if shutil.which("npm") is None:
                raise NotMeasured("npm is not on this machine")
            _install(["npm", "install", "--no-fund", "--no-audit", "--prefix", ".", *self.requirements], self.folder)
            return
        _install([sys.executable, "-m", "venv", "."], self.folder)
        _install([str(self.folder / "bin/python"), "-m", "pip", "install", "-q", *self.requirements], self.folder)


# The default rules of this version, whatever configuration files exist; every run reads every file.
RUMDL = Peer("rumdl", ("rumdl==0.3.0",), "rumdl", options=("--no-config", "--no-cache"))
CHECK_JSONSCHEMA = Peer("check-jsonschema", ("check-jsonschema==0.39.0",), "check-jsonschema")
DOORSTOP = Peer("doorstop", ("doorstop==3.2",), "doorstop")
SPEC_KITTY = Peer("spec-kitty", ("spec-kitty-cli==3.2.7",), "spec-kitty")
BACKLOG = Peer("backlog", ("backlog.md@1.52.0",), "backlog", npm=True)
# Installing it downloads its program from the page of its releases.
BEADS = Peer("beads", ("@beads/bd@1.3.0",), "bd", npm=True)
LANGGRAPH = Peer("langgraph", ("langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2"), "python")
DBOS = Peer("dbos", ("dbos==3.4.0",), "python")
_PSYCOPG = "psycopg[binary]==3.3.9"
POSTGRES_LANGGRAPH = Peer(
    "postgres-langgraph",
    ("langgraph==1.2.22", "langgraph-checkpoint-postgres==3.2.0", _PSYCOPG, "psycopg-pool==3.3.3"),
    "python",
)
POSTGRES_DBOS = Peer("postgres-dbos", ("dbos==3.4.0", _PSYCOPG), "python")


def figures_of(environment: Peer, program: str, *arguments: str) -> dict[str, float]:
    """Run a program next to this module with the Python of a peer; return its last line, parsed as JSON."""
    command = [str(environment.installed()), str(HERE / program), *arguments]
    last = run(command, HERE).output.strip().splitlines()[-1:] or ["nothing"]
    try:
        found = json.loads(last[0])
    except ValueError:
        raise NotMeasured(f"{program} printed no figures: {last[0]}") from None
    return {name: float(value) for name, value in found.items()}


def _version(requirement: str) -> str:
    return requirement.replace("==", "@").rpartition("@")[2]


def _install(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"cannot be installed: it took more than {PATIENCE} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        # Of what npm prints, the last line says only where its log is.
        told = next((line for line in lines if "Error" in line), lines[-1])
        raise NotMeasured(f"cannot be installed: exit status {done.returncode}: {told}")
