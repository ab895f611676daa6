"""The light form as a newcomer types it: one document for each packet, and nothing that an editor has to open."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

from lifecycle.governed import Governed

NAME = "WP-1-Greet-The-User-v1"
DOCUMENT = f".GOV/task_packets/{NAME}.md"
PROVE = "python3 -m unittest discover -s tests"
NEW = (
    "new", "Greet the user",
    "--criterion", "The program greets its user by name.",
    "--prove", PROVE,
    "--scope", "src/", "--scope", "tests/",
    "--requirement", "The program greets its user by name.",
    "--refinement", "The name is an argument; without one, the greeting is for the world.",
)  # fmt: skip
PROGRAM = "def greet(name):\n    return f'Hello, {name}'\n"
TEST = (
    "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nfrom greet import greet\n\n\n"
    "class TestGreet(unittest.TestCase):\n    def test_name(self):\n"
    "        self.assertEqual(greet('Ann'), 'Hello, Ann')\n"
)
# `--requirement` adds the specification, which is then in the scope of the packet.
SCOPE = ("src/", "tests/", ".GOV/spec/")
MOST_COMMANDS, MOST_LINES = 7, 25


class Typed:
    """Counts what is typed."""

    def __init__(self, governed: Governed) -> None:
        self.governed = governed
        self.lines: list[str] = []

    def workpacket(self, *words: str) -> str:
        self.lines.append(" ".join(("workpacket", *words)))
        return self.governed.done(*words).out

    def git(self, *words: str) -> None:
        self.lines.append(" ".join(("git", *words)))
        subprocess.run(["git", *words], cwd=self.governed.root, check=True, capture_output=True)


def governance_lines(root: Path, before: str, after: str, *scope: str) -> int:
    """The added lines of a landing outside the scope, JSON at 200 bytes a line."""
    rows = subprocess.run(
        ["git", "diff", "--numstat", "--no-renames", before, after],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    lines = size = 0
    for row in rows:
        added, _, path = row.split("\t")
        if path.endswith(".json"):
            size += (root / path).stat().st_size
        elif not path.startswith(scope):
            lines += int(added)
    return lines + math.ceil(size / 200)


def write_program(governed: Governed) -> None:
    governed.write("src/greet.py", PROGRAM)
    governed.write("tests/test_greet.py", TEST)


def test_a_newcomer_types_seven_commands_and_edits_no_document(governed: Governed) -> None:
    typed = Typed(governed)
    typed.git("init", "--quiet")
    typed.workpacket("init", "--commit")
    before = governed.git("rev-parse", "HEAD").strip()
    typed.workpacket(*NEW)
    typed.workpacket("start", NAME)
    write_program(governed)
    governed.git("add", "--all")  # new files; `git commit` is what is counted
    typed.git("commit", "--quiet", "--message", "Greet the user")
    typed.workpacket("done", NAME, "--commit")
    typed.git("merge", "--quiet", f"wp/{NAME}")
    assert len(typed.lines) <= MOST_COMMANDS, typed.lines
    assert "MERGED" in governed("show", NAME).out
    assert governance_lines(governed.root, before, "HEAD", *SCOPE) <= MOST_LINES
    assert governed.git("status", "--porcelain") == ""
    assert governed.git("branch", "--show-current").strip() == "main"


def begun(governed: Governed) -> None:
    governed.done("init", "--commit")
    governed.done(*NEW)


def landed_by_commands(governed: Governed) -> None:
    begun(governed)
    governed.done("start", NAME)
    write_program(governed)
    governed.commit("Greet the user")
    governed.done("done", NAME, "--commit")
    governed.git("merge", "--quiet", f"wp/{NAME}")


def test_every_output_says_that_nobody_judged_it(governed: Governed) -> None:
    landed_by_commands(governed)
    for words in (["show", NAME], ["why", NAME], ["history", NAME], ["status"], ["list"], ["board", "show"]):
        assert "not judged" in governed(*words).out, words
    assert governed("check").status == 0
    assert [packet["lanes"] for packet in governed.json("list")["data"]["work"]] == [["MERGED"]]


def test_a_later_verdict_of_somebody_else_validates_it(governed: Governed) -> None:
    landed_by_commands(governed)
    assert governed.refused("verdict", NAME, "PASS", "--reason", "It greets.") == ["verdict_by_coder"]
    assert governed.refused("verdict", NAME, "PASS", "--as", "eve") == ["report_missing"]
    governed.done("verdict", NAME, "PASS", "--reason", "It greets.", "--as", "eve", "--commit")
    assert governed.json("show", NAME)["data"]["lane"] == "VALIDATED"


def test_what_lands_otherwise_than_it_was_submitted_is_not_merged(governed: Governed) -> None:
    begun(governed)
    governed.done("start", NAME)
    write_program(governed)
    governed.commit("Greet the user")
    governed.done("done", NAME, "--commit")
    governed.git("merge", "--quiet", "--squash", f"wp/{NAME}")
    governed.write("src/greet.py", "def greet(name):\n    return name\n")
    governed.commit("Greet the user, nearly")
    assert governed.json("show", NAME)["data"]["lane"] == "IN_REVIEW"
