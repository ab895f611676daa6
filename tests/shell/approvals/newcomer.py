"""Somebody who has never seen workpacket, and types what it says comes next: nothing else."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from guided_tour.terminal import at_terminal

PHRASE = "correct horse"
NAME = "WP-1-Greeting-v1"
STUB, REFINEMENT, PACKET = (
    f".GOV/{folder}/{NAME}.md" for folder in ("task_packets/stubs", "refinements", "task_packets")
)
SPECIFICATION = """# Specification

## 1 Main body

### 1.1 Greeting
The program greets its user by name.

## 2 Roadmap
Later it will sing.
"""
_NEXT = re.compile(r"^next: (.*)$", re.MULTILINE | re.IGNORECASE)
# What stands for something that only a person can fill in.
_FILLED_IN = {
    "WP-1-NAME-v1": NAME,
    "--what TEXT": "--what 'Greet the user'",
    "--why TEXT": "--why 'People like it'",
    "--command COMMAND": "--command 'sh src/greet_test.sh'",
    " --prove N=COMMAND": "",  # the contract says what proves it
    "--report FILE": "--report report.md",
    "VALIDATOR": "eve",
}


@dataclass
class Newcomer:
    """`typed` are the commands so far. A step that is not a command is work, which `by_hand` does."""

    root: Path
    environment: dict[str, str]
    typed: list[str] = field(default_factory=list)

    def follow(self, first: str, *, until: str) -> str:
        """Type, and go on with what is shown, until the screen says so; that screen."""
        steps = [first]
        for _ in range(60):
            step = steps.pop(0)
            screen = self._do(step)
            if until in screen:
                return screen
            told = _NEXT.findall(screen)
            if told and not steps:
                steps = [part.strip() for part in re.split(r",? then:? |; then ", told[-1])]
            assert steps, f"nothing said what comes after: {step}\n{screen}"
        raise AssertionError(f"it goes round in circles: {self.typed}")

    def _do(self, step: str) -> str:
        for placeholder, words in _FILLED_IN.items():
            step = step.replace(placeholder, words)
        step = step.removesuffix(", on the main branch")
        command = re.search(r"(?:^|: )((?:workpacket|just|git) .*)$", step)
        if command is None or step.startswith("git merge it"):
            return self._by_hand(step)
        return self._type(command.group(1).replace("just create-task-packet", "workpacket packet activate"))

    def _type(self, line: str) -> str:
        self.typed.append(line)
        environment = self.environment
        if "workpacket verdict" in line:
            self.write("report.md", "Good.\n")
            environment = environment | {"WORKPACKET_ACTOR": "eve"}  # it says that another person types it
        answers = []
        if "key init" in line:
            answers = [("Enter passphrase", PHRASE), ("same passphrase again", PHRASE)]
        if "workpacket approve" in line:
            what = "VERDICT" if "--gate verdict" in line else "REFINEMENT"
            answers = [("type: ", f"APPROVE {what} {NAME}"), ("Enter passphrase", PHRASE)]
        status, screen = at_terminal(["sh", "-eu", "-c", line], self.root, answers, environment)
        assert status in (0, 3), f"{line}\n{screen}"
        return screen

    def _by_hand(self, step: str) -> str:
        """What a person does between two commands."""
        if step.startswith("write .GOV/spec/SPEC_v1.md"):
            self.write(".GOV/spec/SPEC_v1.md", SPECIFICATION)
        elif step.startswith(f"edit {STUB}"):
            text = self.read(STUB).replace("- IN_SCOPE:\n  - TODO", "- IN_SCOPE:\n  - `src/`")
            self.write(STUB, text.replace("(DRAFT)\n- TODO", "(DRAFT)\n- The name is printed."))
        elif step.startswith(f"edit {REFINEMENT}"):
            self._fill_in_the_refinement()
        elif step.startswith((f"fill in each TODO in {PACKET}", f"fill in SEARCH_TERMS in {PACKET}")):
            self.write(PACKET, self.read(PACKET).replace("TERMS: TODO", "TERMS: greeting"))
        elif step == "do the work there and commit it":
            self.write("src/greet.py", "print('hello')\n")
            self.write("src/greet_test.sh", "python3 src/greet.py | grep --line-regexp hello\n")
            self._sh("git add --all && git commit --quiet -m 'Greet'")
        elif step.startswith("commit"):
            self._sh("git add --all && git commit --quiet -m work")
        elif step.startswith("merge wp/"):
            self._sh(f"git switch --quiet main && git merge --quiet {step.split()[1]}")
            if "the packet counts as" in step:
                return self._type(f"workpacket show {NAME}")
        else:
            raise AssertionError(f"who knows how to do this: {step}")
        return ""

    def _fill_in_the_refinement(self) -> None:
        text = self.read(REFINEMENT)
        line = SPECIFICATION.splitlines()[5]
        text = text.replace("SPEC_ANCHOR: <fill in>", "SPEC_ANCHOR: SPEC_v1.md 1.1 Greeting")
        for key, value in (("START_LINE", "6"), ("END_LINE", "6"), ("TOKEN", line.split()[0])):
            text = text.replace(f"CONTEXT_{key}: <fill in>", f"CONTEXT_{key}: {value}")
        text = text.replace("  <fill in>", f"  {line}").replace("VERDICT: <fill in>", "VERDICT: PASS")
        text = text.replace("[ ] PASS", "[x] PASS")
        text = text.replace("_FOUND: <fill in>", "_FOUND: NO").replace("_NEEDED: <fill in>", "_NEEDED: NO")
        self.write(REFINEMENT, re.sub("<fill in[^>]*>", "Nothing of that kind.", text))

    def _sh(self, line: str) -> None:
        subprocess.run(["sh", "-eu", "-c", line], cwd=self.root, env=self.environment, check=True, capture_output=True)

    def read(self, path: str) -> str:
        return (self.root / path).read_text("utf-8")

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


def newcomer_in(root: Path, environment: dict[str, str]) -> Newcomer:
    root.mkdir()
    own = {name: text for name, text in environment.items() if name not in _CLAIMS}
    newcomer = Newcomer(root, own | {"TERM": "dumb"})
    for command in (
        ["git", "init", "--quiet", "--initial-branch=main"],
        ["git", "config", "user.name", "ann"],
        ["git", "config", "user.email", "ann@example.org"],
    ):
        subprocess.run(command, cwd=root, env=newcomer.environment, check=True)
    return newcomer


_CLAIMS = frozenset({"CI", "WORKPACKET_ACTOR", "WORKPACKET_ACTOR_KIND"} & set(os.environ))
