"""Packets in flight at once, landed in any order as a forge does it: merged, squashed or rebased, without a driver.

The packets are made by commands in one repository, and landed in a bare one through a clone that knows no driver.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from lifecycle.governed import TOKENS_COUNT, Governed, remembered

How = Literal["merge", "squash", "rebase"]
HOWS: tuple[How, ...] = ("merge", "squash", "rebase")
SPECIFICATION = "# Specification\n\n## 1 Main body\n\n{}\n## 2 Roadmap\n\nLater.\n"


def name_of(number: int) -> str:
    return f"WP-1-Part-{number}-v1"


@remembered
def in_flight(governed: Governed, count: int) -> None:
    """Light packets, each proved and handed in on a branch of its own that began at the same commit."""
    governed.done("init")
    sections = "\n".join(f"### Part {number}\n\nPart {number} is there.\n" for number in range(1, count + 1))
    governed.write(".GOV/spec/SPEC_v1.md", SPECIFICATION.format(sections))
    governed.commit("Governance")
    for number in range(1, count + 1):
        governed.done(
            "new", f"Part {number}", "--criterion", f"Part {number} is there.", "--scope", f"src/part_{number}.txt",
            "--anchor", f"Part {number}", "--refinement", f"Part {number} is a file of its own.",
        )  # fmt: skip
        governed.done("start", name_of(number))
        governed.write(f"src/part_{number}.txt", f"part {number}\n")
        governed.commit(f"Part {number}")
        governed.done("done", name_of(number), "--prove", "1=true", "--commit")


def full_in_flight(governed: Governed, count: int, board: str) -> None:
    """Full packets, activated and claimed on main, each worked on and handed in on its own branch."""
    governed.begin(policy=f'{TOKENS_COUNT}\n[board]\ncommit = "{board}"\n')
    names = [name_of(number) for number in range(1, count + 1)]
    for name in names:
        governed.activate_by_commands(name, "")
        governed.done("packet", "prepare", name, "--for", "coder")
        governed.done("claim", name, "--as", "coder")
    governed.commit("Claimed")
    for number, name in enumerate(names, 1):
        governed.git("switch", "--quiet", "--create", f"work-{number}")
        governed.git("branch", "--quiet", "--force", f"wp/{name}", "HEAD")
        governed.git("switch", "--quiet", f"wp/{name}")
        governed.write(f"src/part_{number}.txt", f"part {number}\n")
        governed.commit(f"Part {number}")
        governed.done("submit", name, "--as", "coder", "--prove", "all=true")
        governed.commit("Handed in")
        governed.git("switch", "--quiet", "main")


class Hub:
    """A bare repository, and a clone in which landings are made."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.bare, self.root = folder / "hub.git", folder / "clone"
        self._run(folder, "clone", "--quiet", "--bare", str(source), str(self.bare))
        self._run(folder, "clone", "--quiet", str(self.bare), str(self.root))
        self.conflicts = 0

    def begin(self, main: str) -> None:
        """Take back every landing."""
        self.git("switch", "--quiet", "main")
        self.git("reset", "--quiet", "--hard", main)

    def land(self, name: str, how: How) -> list[str]:
        """Land the branch of a packet, and return the paths on which git finds a conflict; these are left to solve."""
        branch = f"origin/wp/{name}"
        if how == "rebase":
            self.git("switch", "--quiet", "--detach", branch)
            done = self.git("rebase", "--quiet", "main", check=False)
            if done.returncode == 0:
                head = self.git("rev-parse", "HEAD").stdout.strip()
                self.git("switch", "--quiet", "main")
                self.git("merge", "--quiet", "--ff-only", head)
        else:
            done = self.git("merge", "--quiet", "--squash" if how == "squash" else "--no-ff", branch, check=False)
        found = self.git("diff", "--name-only", "--diff-filter=U").stdout.split()
        if how == "squash" and not found:
            self.git("commit", "--quiet", "--message", f"{name} (squashed)")
        return found

    def go_on(self, how: How) -> None:
        """Finish a landing whose conflicts are settled."""
        self.git("add", "--all")
        if how != "rebase":
            self.git("commit", "--quiet", "--message", "Settled")
            return
        self.git("-c", "core.editor=true", "rebase", "--continue")
        head = self.git("rev-parse", "HEAD").stdout.strip()
        self.git("switch", "--quiet", "main")
        self.git("merge", "--quiet", "--ff-only", head)

    def git(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self._run(self.root, *words, check=check)

    @staticmethod
    def _run(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        who = ("-c", "user.name=forge", "-c", "user.email=forge@example.org", "-c", "core.fsync=none")
        return subprocess.run(["git", *who, *words], cwd=folder, check=check, capture_output=True, text=True)


def order(seed: int, count: int) -> Sequence[tuple[str, How]]:
    """Return the packets in the order of this seed, each with how it lands."""
    chance = random.Random(seed)
    names = [name_of(number) for number in range(1, count + 1)]
    chance.shuffle(names)
    return [(name, chance.choice(HOWS)) for name in names]
