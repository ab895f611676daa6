"""Somebody types what the README shows, and nothing else."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from architecture.source_tree import ROOT
from shell.approvals.newcomer import newcomer_in
from shell.approvals.test_tutorial import environment_of
from workpacket.cli.commands import resolve
from workpacket.model.wording import FORMER

README = (ROOT / "README.md").read_text("utf-8")
COMMAND = re.compile(r"^(?:\$ )?(workpacket|python3 tools/just\.py) ?(.*?)(?: +#.*)?$", re.MULTILINE)
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What would not end, or is a test of its own (tests/setup, tests/tour).
NEVER_ENDS = "--watch"


# What the reader does before `done`.
WORK = {
    "src/greet.py": "def greet(name):\n    return f'Hello, {name}'\n",
    "tests/test_greet.py": """import unittest

from src.greet import greet


class Test(unittest.TestCase):
    def test_name(self):
        self.assertEqual(greet("Ann"), "Hello, Ann")
""",
}


def commands() -> list[tuple[str, str]]:
    blocks = (block.replace(" \\\n", " ") for block in BLOCK.findall(README))
    return [(program, words) for block in blocks for program, words in COMMAND.findall(block)]


def test_each_workpacket_command_does_something_in_a_new_repository(tmp_path: Path) -> None:
    newcomer = newcomer_in(tmp_path / "new", environment_of(tmp_path))
    typed = [words for program, words in commands() if program == "workpacket" and NEVER_ENDS not in words]
    assert typed[0] == "init --commit"
    assert len(typed) > 4
    for words in typed:
        if words.startswith("done "):
            do_the_work(newcomer.root, newcomer.environment)
        done = subprocess.run(
            ["workpacket", *shlex.split(words)],
            cwd=newcomer.root,
            env=newcomer.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        assert done.stdout or words.startswith("check --format"), words
        if words.startswith("done "):
            git(newcomer.root, newcomer.environment, f"merge --quiet wp/{words.split()[1]}")


def do_the_work(root: Path, environment: dict[str, str]) -> None:
    for path, text in WORK.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, "utf-8")
    git(root, environment, "add --all")
    git(root, environment, "commit --quiet --message Work")


def git(root: Path, environment: dict[str, str], words: str) -> None:
    subprocess.run(["git", *words.split()], cwd=root, env=environment, check=True)


def test_each_recipe_it_names_is_in_the_justfile() -> None:
    recipes = set(re.findall(r"^([a-z][a-z-]*)(?: [^:\n]*)?:", (ROOT / "justfile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"python3 tools/just\.py ([a-z-]+)", README))
    assert {"tour", "test"} <= named <= recipes


def test_each_command_of_the_table_exists() -> None:
    (table,) = re.findall(r"\| command \| what it does \|\n\|---\|---\|\n((?:\|.*\n)+)", README)
    named = [words.split() for row in table.splitlines() for words in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(named) > 20
    assert [words for words in named if words[0] in FORMER or not resolve(words)[0]] == []


def test_every_page_that_shows_commands_is_typed_by_some_test() -> None:
    """Reference pages are made from the code; the others are named by the test that follows them."""
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in {"reference", "decisions"}]
    shown = [path for path in pages if re.search(r"^```(sh|console)", path.read_text("utf-8"), re.MULTILINE)]
    assert len(shown) > 5
    assert [path.name for path in shown if path.name not in tests and f'"{path.stem}"' not in tests] == []
