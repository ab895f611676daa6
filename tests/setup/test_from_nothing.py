"""What a newcomer types from an empty folder, taken from the README: commands, edits, lines and conflicts are counted.

With `WORKPACKET_PROGRAMS`, the commands are those of an installed wheel: `nox -s package`.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from lifecycle.test_light import MOST_COMMANDS, MOST_FURTHER, MOST_LINES, MOST_WORDS, governance_lines, words_to_learn
from shell.approvals.test_tutorial import environment_of

IN_FLIGHT = 12
PROGRAM = "def greet(name):\n    return f'Hello, {name}'\n"
TEST = (
    "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nfrom greet import greet\n\n\n"
    "class TestGreet(unittest.TestCase):\n    def test_name(self):\n"
    "        self.assertEqual(greet('Ann'), 'Hello, Ann')\n"
)
SCOPE = ("src/", "tests/", ".GOV/spec/")  # `--requirement` adds the specification
PART = "def part():\n    return {}\n"
PART_TEST = (
    "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nfrom part_{0} import part\n\n\n"
    "class TestPart(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(part(), {0})\n"
)


class Newcomer:
    """Types commands in an empty folder, and remembers them with what they answered."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        settings = folder / "gitconfig"
        settings.write_text("[user]\n\tname = ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n")
        self.environment = environment_of(folder) | {"GIT_CONFIG_GLOBAL": str(settings)}
        self.typed: list[str] = []
        self.said = ""

    def __call__(self, *words: str, status: int = 0) -> str:
        done = subprocess.run(words, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"
        self.typed.append(shlex.join(words))
        self.said += done.stdout
        return done.stdout

    def look(self, *words: str) -> str:
        """Something that this test asks, and a newcomer need not type."""
        typed, said = [*self.typed], self.said
        answer = self(*words)
        self.typed, self.said = typed, said
        return answer

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)


def commands_of_the_readme() -> list[list[str]]:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Four commands")[2].partition("\n## ")[0]
    lines = re.sub(r"\\\n\s*", "", section).splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ workpacket")]


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path)


@pytest.mark.long
def test_the_four_commands_of_the_readme_lead_from_an_empty_folder_to_merged(newcomer: Newcomer) -> None:
    init, new, start, done = commands_of_the_readme()
    newcomer("git", "init", "--quiet")
    newcomer(*init)
    newcomer.said = newcomer.said.splitlines()[-1]
    before = newcomer.look("git", "rev-parse", "HEAD").strip()
    newcomer(*new)
    newcomer(*start)
    newcomer.write("src/greet.py", PROGRAM)
    newcomer.write("tests/test_greet.py", TEST)
    newcomer.look("git", "add", "--all")
    newcomer("git", "commit", "--quiet", "--message", "Greet the user")
    newcomer(*done)
    newcomer("git", "merge", "--quiet", "--no-ff", "--no-edit", f"wp/{done[2]}")
    newcomer.said += newcomer.look("workpacket", "show", done[2])
    lines = governance_lines(newcomer.root, before, "HEAD", *SCOPE)
    words = words_to_learn(newcomer.said)
    beside = int(newcomer.look("git", "rev-list", "--count", "--no-merges", f"{before}..HEAD")) - 1
    print(f"{len(newcomer.typed)} commands, {lines} lines, {len(words)} words, {beside} commit beside the work")
    assert "is MERGED" in newcomer.said
    assert len(newcomer.typed) <= MOST_COMMANDS
    assert len(newcomer.typed[2:]) - 1 <= MOST_FURTHER
    assert lines <= MOST_LINES
    assert len(words) <= MOST_WORDS
    assert beside == 1
    assert newcomer.look("git", "status", "--porcelain") == ""


def begun(newcomer: Newcomer, number: int, *requirement: str) -> None:
    """One more packet: drafted and started from main, worked on and submitted on its branch."""
    name = f"WP-1-Part-{number}-v1"
    newcomer(
        "workpacket", "new", f"Part {number}", "--criterion", f"Part {number} is there.", "--scope", "src/",
        "--scope", "tests/", "--prove", f"python3 -m unittest tests.test_part_{number}", *requirement,
        "--refinement", f"Part {number} is a module of its own.",
    )  # fmt: skip
    newcomer("workpacket", "start", name)
    newcomer.write(f"src/part_{number}.py", PART.format(number))
    newcomer.write(f"tests/test_part_{number}.py", PART_TEST.format(number))
    newcomer("git", "add", "--all")
    newcomer("git", "commit", "--quiet", "--message", f"Part {number}")
    newcomer("workpacket", "done", name, "--commit")


def landed(newcomer: Newcomer, numbers: Sequence[int]) -> int:
    """Merge the branches, and return how many conflicts one command had to settle."""
    conflicts = 0
    for number in numbers:
        before = newcomer.look("git", "rev-parse", "HEAD").strip()
        merge = ("git", "merge", "--quiet", "--no-ff", "--no-edit", f"wp/WP-1-Part-{number}-v1")
        done = subprocess.run(merge, cwd=newcomer.root, env=newcomer.environment, capture_output=True, check=False)
        if done.returncode:
            conflicts += 1
            newcomer("workpacket", "board", "sync")
            newcomer("git", "commit", "--quiet", "--all", "--no-edit")
        newcomer.look("workpacket", "check", "--base", before)
    return conflicts


def lanes(newcomer: Newcomer) -> dict[str, int]:
    found: dict[str, int] = json.loads(newcomer.look("workpacket", "status", "--json"))["data"]["lanes"]
    return found


@pytest.mark.long
def test_twelve_packets_in_flight_land_without_a_conflict(newcomer: Newcomer) -> None:
    newcomer("git", "init", "--quiet")
    newcomer("workpacket", "init", "--commit")
    newcomer.write(".GOV/spec/SPEC_v1.md", "# Specification\n\n## 1 Main body\n\n### Parts\n\nThere are parts.\n")
    newcomer("git", "commit", "--quiet", "--all", "--message", "What is required")
    for number in range(1, IN_FLIGHT + 1):
        begun(newcomer, number, "--anchor", "Parts")
    assert landed(newcomer, range(IN_FLIGHT, 0, -1)) == 0
    assert lanes(newcomer) == {"MERGED": IN_FLIGHT}


@pytest.mark.long
def test_packets_that_each_add_a_requirement_conflict_in_the_specification_and_one_command_settles_it(
    newcomer: Newcomer,
) -> None:
    newcomer("git", "init", "--quiet")
    newcomer("workpacket", "init", "--commit")
    for number in range(1, 5):
        begun(newcomer, number, "--requirement", f"There is part {number}.")
    assert landed(newcomer, range(1, 5)) == 3
    assert lanes(newcomer) == {"MERGED": 4}


@pytest.mark.long
def test_a_legacy_tree_of_320_documents_is_green_after_one_command(newcomer: Newcomer) -> None:
    newcomer("git", "init", "--quiet")
    for number in range(320):
        path = newcomer.root / ".GOV" / "task_packets" / "stubs" / f"WP-1-Old{number}-v1.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Old {number}\n\nWritten years ago.\n")
    newcomer("git", "add", "--all")
    newcomer("git", "commit", "--quiet", "--message", "Legacy")
    newcomer("workpacket", "check", "--profile", "strict", status=1)
    newcomer("workpacket", "check", "--baseline")
    assert "no findings" in newcomer("workpacket", "check", "--profile", "strict")
    (newcomer.root / ".GOV/task_packets/stubs/WP-1-New-v1.md").write_text("# New\n")
    assert "WP-1-Old" not in newcomer("workpacket", "check", "--profile", "strict", status=1)
