"""A hub, and any kind of clone of it: what each command answers there, beside its answer in an ordinary clone.

The lists are data, one case a line: kinds.jsonl and mishaps.jsonl. README.md says what their fields mean.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from lifecycle.governed import Clock, Quiet, Result
from lifecycle.signed import NAME, OTHER
from trust.stages import GATES, Stage, Stages, opened
from workpacket.ledger.fold import PacketState
from workpacket.shell import actor

HERE: Final = Path(__file__).parent
WORKED: Final = "WP-1-Chorus-v1"
# What a clone may be called, and what each run makes afresh, is not part of an answer.
_FRESH: Final = (
    (re.compile(r"\b[0-9a-f]{7,64}\b(\.\.\.)?"), "#"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:]+Z?"), "@"),
    (re.compile(r"\b(origin|upstream|company|hub)/"), ""),
    (re.compile(r"\b(trunk|master|develop|main)\b"), "main"),
)
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "check": ("check",),
    "check --base": ("check", "--base", "{base}"),
    "status": ("status",),
    "list": ("list",),
    "show": ("show", NAME),
    "why": ("why", OTHER),
    "next": ("next",),
    "board show": ("board", "show"),
    "audit": ("audit",),
    "approvals verify": ("approvals", "verify"),
    "log verify": ("log", "verify"),
    "trace": ("trace", NAME),
    "claim": ("claim", OTHER, "--as", "coder"),
    "note": ("packet", "note", NAME, "Sung twice.", "--as", "ann"),
    "submit": ("submit", WORKED, "--as", "coder", "--prove", "all=true"),
}
# Where git does not know which remote is meant, the branch is made by hand.
_SWITCH: Final = (
    "git switch -q wp/$WORKED 2>/dev/null || git switch -q -c wp/$WORKED"
    " $(git for-each-ref --format='%(refname)' --count=1 refs/remotes/*/wp/$WORKED)"
)
_WRITING: Final = ("claim", "note", "submit")


@dataclass(frozen=True)
class Kind:
    """One line of kinds.jsonl."""

    id: str
    title: str
    make: tuple[str, ...]
    env: Mapping[str, str | None] = field(default_factory=dict)
    # The commands that answer differently here, each with the code that they say; "*" stands for all others.
    instead: Mapping[str, str] = field(default_factory=dict)
    # What a message of those commands tells the user to type, after which all commands answer as in any clone.
    remedy: str = ""
    # Codes of warnings that the clone has and an ordinary one has not.
    notices: tuple[str, ...] = ()
    folder: str = ""
    world: str = ""
    skip_writing: bool = False  # nothing can be put back there


def read_kinds() -> list[Kind]:
    return [Kind(**{**row, "make": tuple(row["make"])}) for row in _rows("kinds.jsonl")]


@dataclass(frozen=True)
class Mishap:
    """One line of mishaps.jsonl. `ask` is the command that has to name the way out, by `names`; `out` is that way."""

    id: str
    title: str
    steps: tuple[str, ...]
    ask: str
    names: str
    out: tuple[str, ...]
    lanes: Mapping[str, str]


def read_mishaps() -> list[Mishap]:
    return [Mishap(**{**row, "steps": tuple(row["steps"]), "out": tuple(row["out"])}) for row in _rows("mishaps.jsonl")]


def _rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (HERE / name).read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


class BadCase(Exception):
    """The case cannot be set up: its data is wrong, not the product."""


class World:
    """The hub with everything in it, made once; a clone is made and asked in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        stages = Stages(folder / "stages", GATES)
        landed = stages.stage("landed")
        shutil.copytree(landed.folder, folder / "made", symlinks=True)
        stage = Stage(folder / "made", landed.now, landed.looks)
        with pytest.MonkeyPatch.context() as patch:
            signed = opened(stage, patch)
            governed = signed.governed
            governed.stub(WORKED)
            governed.replace(f".GOV/task_packets/stubs/{WORKED}.md", "`src/`", "`lib/`")
            governed.refine(WORKED)
            governed.done("refine", WORKED, "--present")
            governed.commit("refined")
            signed.approve(name=WORKED)
            governed.done("packet", "activate", WORKED)
            packet = f".GOV/task_packets/{WORKED}.md"
            governed.write(packet, governed.read(packet).replace("TERMS: TODO", "TERMS: x"))
            governed.commit("activated")
            for name in (WORKED, OTHER):
                governed.done("packet", "prepare", name, "--for", "coder")
            governed.done("claim", WORKED, "--as", "coder")
            governed.commit("claimed")
            governed.git("switch", "--quiet", f"wp/{WORKED}")
            governed.git("merge", "--quiet", "main")
            governed.write("lib/chorus.py", "print('La la')\n")
            governed.commit("Sing")
            governed.git("switch", "--quiet", "main")
            self.base = governed.git("rev-parse", "main~2")
            self.now = governed.clock.now
        self.source = stage.folder / "repository"
        self.hub = folder / "hub.git"
        _git(folder, "clone", "--quiet", "--bare", str(self.source), str(self.hub))
        _git(self.hub, "config", "uploadpack.allowFilter", "true")
        _git(self.hub, "config", "uploadpack.allowAnySHA1InWant", "true")
        self._count = 0
        self._usual: dict[str, tuple[int, str]] = {}

    @contextmanager
    def clone(self, kind: Kind) -> Iterator[Clone]:
        """Make the clone in a folder of its own, which is deleted afterwards."""
        self._count += 1
        place = self.folder / f"case-{self._count}"
        place.mkdir()
        (place / "home").mkdir()
        config = place / "home" / ".gitconfig"
        config.write_text(
            '[user]\n\tname = coder\n\temail = coder@example.org\n[protocol "file"]\n\tallow = always\n'
            "[advice]\n\tdetachedHead = false\n[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n"
            "[core]\n\tfsync = none\n"
        )
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith(("GIT_", "WORKPACKET_", "CI", "SSH_"))]:
                patch.delenv(name)
            patch.setenv("HOME", str(place / "home"))
            patch.setenv("XDG_CONFIG_HOME", str(place / "home" / "config"))
            patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
            clock = Clock(self.now + timedelta(hours=1), 5000)
            patch.setattr(actor, "read_clock", clock)
            clone = Clone(self, place, clock, kind)
            try:
                clone.make()
                for name, text in kind.env.items():
                    if text is None:
                        patch.delenv(name, raising=False)
                    else:
                        patch.setenv(name, clone.filled(text))
                time.tzset()
                patch.chdir(clone.root)
                yield clone
            finally:
                patch.undo()
                time.tzset()
                subprocess.run(["chmod", "-R", "u+rwX", str(place)], check=False)
                shutil.rmtree(place, ignore_errors=True)

    def wrong(self, clone: Clone, answers: Mapping[str, tuple[int, str]]) -> dict[str, str]:
        """The commands that do not answer as the list says, each with its answer."""
        return {
            command: f"{status} {text}"
            for command, (status, text) in answers.items()
            if not self._fits(clone.kind, command, status, text)
        }

    def _fits(self, kind: Kind, command: str, status: int, text: str) -> bool:
        usual = self.usual()[command]
        if (status, text) == usual:
            return True
        if kind.notices:
            return status == usual[0] and "error" not in text and all(code in text for code in kind.notices)
        code = kind.instead.get(command, kind.instead.get("*", ""))
        return bool(code) and code in text

    def usual(self) -> dict[str, tuple[int, str]]:
        """The answers of an ordinary clone, which was asked once."""
        if not self._usual:
            with self.clone(Kind("ordinary", "an ordinary clone", ("git clone -q $HUB $CLONE",))) as clone:
                self._usual = clone.answers()
        return self._usual


@dataclass
class Clone:
    """A clone of the hub, in which commands are run inside this process, at the time of the test's clock."""

    world: World
    place: Path
    clock: Clock
    kind: Kind

    @property
    def root(self) -> Path:
        return self.place / "clone" / self.kind.folder if self.kind.folder else self.place / "clone"

    @property
    def names(self) -> dict[str, str]:
        return {
            "HUB": str(self.world.hub), "CLONE": str(self.place / "clone"), "PLACE": str(self.place),
            "BASE": self.world.base, "WORKED": WORKED, "READY": OTHER, "LANDED": NAME,
        }  # fmt: skip

    def filled(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(f"${name}", value)
        return text

    def make(self) -> None:
        for line in self.kind.make:
            self.shell(line, self.place)

    def shell(self, line: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=folder or self.root,
            env={**_without(self.kind.env), **self.names, "GIT_TERMINAL_PROMPT": "0", **self._dates()},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BadCase(f"{line}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def _dates(self) -> dict[str, str]:
        at = f"{self.clock.now:%Y-%m-%dT%H:%M:%SZ}"
        return {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}

    def play(self, mishap: Mishap) -> list[str]:
        """Play a mishap, follow the way out, and return what is not as the list says."""
        faults = []
        for line in mishap.steps:
            result = self.step(line)
            if result is not None and result.status:
                raise BadCase(f"{mishap.id}: {line}: {result}")
        asked = self.step(mishap.ask)
        assert asked is not None
        if self.filled(mishap.names) not in asked.out + asked.err:
            faults.append(f"{mishap.ask} does not name {mishap.names}: {asked}")
        for line in mishap.out:
            result = self.step(line)
            if result is not None and result.status:
                faults.append(f"{line}: {result}")
        for words in (("check",), ("log", "verify")):
            result = self.run(*words)
            if result.status:
                faults.append(f"afterwards, {' '.join(words)}: {result}")
        for name, lane in mishap.lanes.items():
            shown = self.run("show", self.filled(name))
            if f"is {lane}" not in shown.out:
                faults.append(f"{name} is not {lane}: {shown}")
        return faults

    def run(self, *words: str) -> Result:
        return Quiet(self.root, None, self.clock)(*words)

    def state(self, name: str) -> PacketState:
        return Quiet(self.root, None, self.clock).state(name)

    def step(self, line: str) -> Result | None:
        """A step of a list: a command of ours, run inside this process, or one of the shell."""
        if line.startswith("workpacket "):
            return self.run(*shlex.split(self.filled(line))[1:])
        self.shell(line)
        return None

    def answer(self, command: str) -> tuple[int, str]:
        words = [self.filled(word.replace("{base}", "$BASE")) for word in COMMANDS[command]]
        result = self.run(*words)
        return result.status, self.normal(f"{result.out}{result.err}")

    def answers(self, commands: Sequence[str] = tuple(COMMANDS)) -> dict[str, tuple[int, str]]:
        """What each command says; what the last one wrote is put back."""
        found = {}
        began = self.clock.now, self.clock.count
        for command in commands:
            if command in _WRITING and self.kind.skip_writing:
                continue
            self.clock.now, self.clock.count = began
            if command == "submit":
                self.shell(_SWITCH)
            found[command] = self.answer(command)
            if command in _WRITING:
                self.shell("git reset -q --hard && git clean -qfd .GOV")
            if command == "submit":
                self.shell("git checkout -q -")
        return found

    def normal(self, text: str) -> str:
        for name, value in sorted(self.names.items(), key=lambda each: -len(each[1])):
            if value.startswith("/"):
                text = text.replace(value, f"<{name}>")
        for pattern, stands in _FRESH:
            text = pattern.sub(stands, text)
        return text


def _without(names: Mapping[str, str | None]) -> dict[str, str]:
    """The environment for git that a case is set up with, in which what the case is about does not count."""
    return {name: text for name, text in os.environ.items() if name not in names or not name.startswith("GIT_")}


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=hub", "-c", "user.email=hub@example.org")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
