"""Governed repositories at each stage of a packet's way, made once by commands and keys, and copied for each case."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from git.scratch import copy_of, make_repository
from lifecycle.governed import Clock, Quiet
from lifecycle.signed import ALICE, MALLORY, NAME, OTHER, VICTOR, Signed
from workpacket.shell import actor

PEOPLE: Final = {"alice": ALICE, "victor": VICTOR, "mallory": MALLORY}
# The gate of a repository that does not sign waivers, as in the tutorial, and one that signs all it can.
GATES: Final = {"activation": "approver", "verdict": "validator", "waiver": "approver", "policy": "operator"}
COVERAGE: Final = '\n[coverage]\nmode = "required"\n'
NO_WAIVER: Final = {gate: role for gate, role in GATES.items() if gate != "waiver"}
STAGES: Final = ("anchored", "activated", "claimed", "submitted", "judged", "landed")
BEFORE_THE_TOOL: Final = {
    "README.md": "A greeter.\n",
    "src/base.py": "BASE = 1\n",
    "lib/old.py": "OLD = 1\n",
    "docs/song/words.md": "La.\n",
    "package-lock.json": '{"lockfileVersion": 3}\n',
    ".github/workflows/approvals.yml": "on: pull_request\n",
}


@dataclass
class Stage:
    """The folder with the repository, the keys and the time of the clock, for `World` to copy."""

    folder: Path
    now: datetime
    looks: int


class Stages:
    """Every stage is a copy of the one before it, brought on by a step."""

    def __init__(self, folder: Path, gates: dict[str, str]) -> None:
        self._folder = folder
        self._gates = gates
        self._made: dict[str, Stage] = {}

    def stage(self, name: str) -> Stage:
        if name not in self._made:
            self._make(name)
        return self._made[name]

    def _make(self, name: str) -> None:
        folder = self._folder / name
        index = STAGES.index(name)
        if index == 0:
            make_repository(folder / "repository")
            with (folder / "repository/.git/config").open("a", encoding="utf-8") as config:
                config.write("[user]\n\tname = ann\n\temail = ann@example.org\n[gc]\n\tauto = 0\n")
            stage = Stage(folder, Clock().now, 0)
        else:
            earlier = self.stage(STAGES[index - 1])
            copy_of(earlier.folder, folder)
            stage = Stage(folder, earlier.now, earlier.looks)
        with pytest.MonkeyPatch.context() as patch:
            signed = opened(stage, patch)
            getattr(self, f"_{name}")(signed)
            self._made[name] = Stage(folder, signed.governed.clock.now, signed.governed.clock.count)

    def _anchored(self, signed: Signed) -> None:
        for path, text in BEFORE_THE_TOOL.items():
            signed.governed.write(path, text)
        signed.begin(gates=self._gates, more=COVERAGE)

    def _activated(self, signed: Signed) -> None:
        governed = signed.governed
        for name in (NAME, OTHER):
            governed.stub(name)
            if name == OTHER:
                governed.replace(f".GOV/task_packets/stubs/{name}.md", "`src/`", "`docs/song/`")
            governed.refine(name)
            governed.done("refine", name, "--present")
            governed.commit("refined")
            signed.approve(name=name)
            governed.done("packet", "activate", name)
            packet = f".GOV/task_packets/{name}.md"
            governed.write(packet, governed.read(packet).replace("TERMS: TODO", "TERMS: x"))
            governed.commit("activated")

    def _claimed(self, signed: Signed) -> None:
        signed.governed.work(NAME)

    def _submitted(self, signed: Signed) -> None:
        signed.governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
        signed.governed.commit("submitted")

    def _judged(self, signed: Signed) -> None:
        governed = signed.governed
        governed.write("docs/reports/greeting.md", "Good.\n")
        signed.approve("verdict", VICTOR, verdict="PASS")
        governed.done("verdict", NAME, "PASS", "--report", "docs/reports/greeting.md", "--as", "victor")
        governed.commit("judged")

    def _landed(self, signed: Signed) -> None:
        governed = signed.governed
        governed.git("switch", "--quiet", "main")
        governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")
        governed.done("merged", NAME)
        governed.commit("merged")


def opened(stage: Stage, patch: pytest.MonkeyPatch) -> Signed:
    """The stage's repository with its people, its clock and no configuration of this machine."""
    root = stage.folder / "repository"
    for name in ("CI", "WORKPACKET_ACTOR", "WORKPACKET_ACTOR_KIND", "WORKPACKET_KEY", "SSH_AUTH_SOCK"):
        patch.delenv(name, raising=False)
    patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    patch.setenv("XDG_CONFIG_HOME", str(stage.folder / "settings"))
    governed = Quiet(root, None, Clock(stage.now, stage.looks))
    patch.setattr(actor, "read_clock", governed.clock)
    patch.chdir(root)
    return Signed(governed, stage.folder / "home")
