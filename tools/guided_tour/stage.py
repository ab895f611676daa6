"""Shows each command of the tour before it runs, then its output and the files it changed."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Literal

from guided_tour.terminal import Answer, Shown, at_terminal, run, run_and_kill

PAUSE = 0.7
PLAYING_TIME = 40.0
LONGEST_OUTPUT = 16
WIDEST = 160
Part = Literal["life", "refused"]
_DIGEST = re.compile("[0-9a-f]{64}")
COLOURS = {"title": "\033[1m", "say": "", "command": "\033[1;36m", "output": "", "change": "\033[2m"}
NOT_OURS = ("SSH_", "GIT_", "WORKPACKET_", "CI", "PYTHONHOME", "XDG_")


class WentWrong(Exception):
    """A command of the tour ended with an unexpected exit status."""


@dataclass(frozen=True)
class Line:
    """One line of the screen; `look` is a key of COLOURS."""

    look: str
    text: str


@dataclass
class Stage:
    scratch: Path
    environment: dict[str, str]
    fast: bool
    began: float = field(default_factory=time.monotonic)
    _pictures: dict[Part, list[list[Line]]] = field(default_factory=lambda: {"life": [], "refused": []})
    _title: str = ""
    _titled: set[str] = field(default_factory=set)
    _seen: list[Line] = field(default_factory=list)

    @classmethod
    def in_folder(cls, scratch: Path, *, fast: bool) -> Stage:
        """Use a separate home folder and `workpacket` command, so that the reader's are neither read nor changed."""
        programs = scratch / "bin"
        programs.mkdir()
        command = programs / "workpacket"
        # A shell script, because a `#!` line cannot hold an interpreter path that has spaces or is long.
        call = f"exec {shlex.quote(sys.executable)} -c 'from workpacket.cli.main import console; console()'"
        command.write_text(f'#!/bin/sh\n{call} "$@"\n', "utf-8")
        command.chmod(0o755)
        (scratch / "greeter").mkdir()
        environment = {name: text for name, text in os.environ.items() if not name.startswith(NOT_OURS)} | {
            "HOME": str(scratch / "home"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }
        return cls(scratch, environment, fast)

    @property
    def root(self) -> Path:
        return self.scratch / "greeter"

    def scene(self, title: str, words: str) -> None:
        self._title = title
        self._show("title", f"\n== {title}")
        self.say(words)

    def say(self, words: str) -> None:
        for line in words.splitlines():
            self._show("say", line)
        self._pause()

    def type(
        self,
        line: str,
        *,
        ends: int = 0,
        answers: Sequence[Answer] = (),
        kill_after: str = "",
        picture: Part | None = None,
    ) -> str:
        """Show the command, run it, and show what it did. Its exit status must be `ends`."""
        self._seen = []
        self._show("command", f"\n$ {line}")
        self._pause()
        before = self._files()
        status, screen = self._run(line, answers, kill_after)
        self._show_screen(screen)
        if not kill_after and status != ends:
            raise WentWrong(f"{line}: exit status {status}, expected {ends}\n{screen}")
        if status:
            self._show("change", "   killed (signal 9)" if kill_after else f"   exit status {status}")
        self._show_changes(before, self._files())
        if picture is not None:
            title = [Line("change", f"# {self._title}")] if self._title not in self._titled else []
            self._titled.add(self._title)
            self._pictures[picture].append([*title, *self._seen[1:]])
        return screen

    @property
    def pictures(self) -> list[list[Line]]:
        """What the drawing shows: first the life of the packet, then what was refused."""
        return [*self._pictures["life"], *self._pictures["refused"]]

    def quietly(self, line: str) -> None:
        """Run a command of git's, without its output."""
        self._show("command", f"\n$ {line}")
        status, screen = run(line, self.root, self.environment)
        if status:
            raise WentWrong(f"{line}: exit status {status}\n{screen}")

    def edit(self, path: str, *changes: tuple[str, str]) -> None:
        """Edit a file as a person would; the text that each change replaces must be in it."""
        target = self.root / path
        old = target.read_text("utf-8") if target.exists() else ""
        new = old
        for before, after in changes:
            if before not in new:
                raise WentWrong(f"{path} does not contain: {before}")
            new = new.replace(before, after)
        self.write(path, new)

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        old = target.read_text("utf-8") if target.exists() else ""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        self._show("command", f"\n# edit {path}")
        changed = list(unified_diff(old.splitlines(), text.splitlines(), lineterm="", n=0))
        for line in _shortened([line for line in changed[2:] if not line.startswith("@@")]):
            self._show("change", f"   {line if len(line) < WIDEST else line[:60] + ' ...'}")
        self._pause()

    def _run(self, line: str, answers: Sequence[Answer], kill_after: str) -> Shown:
        if kill_after:
            return run_and_kill(line, self.root, self.environment, after=kill_after)
        if answers:
            return at_terminal(["sh", "-c", line], self.root, answers, self.environment)
        return run(line, self.root, self.environment)

    def _show_screen(self, screen: str) -> None:
        for line in _shortened(screen.strip("\n").splitlines()):
            self._show("output", line)

    def _show_changes(self, before: dict[str, str], after: dict[str, str]) -> None:
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                what = "new    " if path not in before else "gone   " if path not in after else "changed"
                self._show("change", f"   {what} {_DIGEST.sub(_beginning, path)}")

    def _files(self) -> dict[str, str]:
        """The digest of each file in the repository, by path, without `.git`."""
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.root.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(self.root).parts
        }

    def _show(self, look: str, text: str) -> None:
        for line in text.split("\n"):
            self._seen.append(Line(look, line))
        colour = COLOURS[look] if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ""
        sys.stdout.write(f"{colour}{text}\033[0m\n" if colour else f"{text}\n")
        sys.stdout.flush()

    def _pause(self) -> None:
        """Pause for the reader, until PLAYING_TIME is over."""
        if not self.fast and time.monotonic() - self.began < PLAYING_TIME:
            time.sleep(PAUSE)


def _shortened(lines: list[str]) -> list[str]:
    """The first and last lines of a long output; the last ones say how the command ended."""
    if len(lines) <= LONGEST_OUTPUT:
        return lines
    left_out = len(lines) - LONGEST_OUTPUT + 1
    return [*lines[:4], f"   ... {left_out} lines more", *lines[4 + left_out :]]


def _beginning(digest: re.Match[str]) -> str:
    return f"{digest[0][:8]}..."
