"""Every proof that our pages, the tour, the tests and our own log name is one that can fail.

Each is run with its program broken on purpose. One that succeeds all the same would prove nothing.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from git.scratch import git, make_repository
from guided_tour import texts
from workpacket.git.repository import find_repository
from workpacket.lifecycle.policy import EvidencePolicy
from workpacket.runtime.records.redaction import Redactor
from workpacket.shell.governing.evidence import Prover
from workpacket.shell.governing.proof_process import proof_words

PAGES = ("*.md", "docs/**/*.md", ".GOV/**/*.md")
SOURCES = ("tools/**/*.py", "tests/**/*.py", "bench/*.py")
# They try the runner of proofs itself: with commands that print, linger, change the tree, and are refused.
ABOUT_THE_RUNNER = {
    "tests/docs/test_proofs_can_fail.py", "tests/evidence/test_submission.py", "tests/evidence/test_replay.py",
    "tests/lifecycle/test_evidence_publish.py", "tests/lifecycle/test_proofs.py",
    "tests/lifecycle/test_proof_canaries.py", "tests/lifecycle/test_proof_words.py",
}  # fmt: skip
# Fails with whatever is in place of its program: it stands for a proof that fails.
ALWAYS_FAILS = {"false", 'python -c "print(42); raise SystemExit(7)"'}
PLACE = re.compile(r"[^\s:]+:[1-9][0-9]*\Z")
WRAPPERS = {"env", "sh"}
WITHOUT_FILE = {"echo", "printf", "cd", "test", "["}  # in a shell these are part of it

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are broken by scripts of a POSIX shell")


# --- which there are ---


def words_after(text: str) -> Iterator[str]:
    """The values of --prove in a text, as a shell would read them."""
    for match in re.finditer(r"--prove[ =]", text):
        lexer = shlex.shlex(text[match.end() :], posix=True, punctuation_chars=False)
        lexer.whitespace_split = True
        lexer.commenters = ""
        try:
            yield (lexer.get_token() or "").rstrip("`).,")
        except ValueError:
            yield text[match.end() :].splitlines()[0]


def in_python(source: str) -> Iterator[str]:
    if "--prove" not in source:  # to parse every source takes seconds, and each worker does it while it collects
        return
    nodes = list(ast.walk(ast.parse(source)))
    known = {
        node.targets[0].id: node.value.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for node in nodes:
        text = text_of(node, known)
        if text is not None and "--prove " in text:
            yield from words_after(text)
        listed = node.args if isinstance(node, ast.Call) else getattr(node, "elts", ())
        words = [text_of(each, known) for each in listed]
        yield from (after or "all=?" for option, after in pairwise(words) if option == "--prove")


def text_of(node: ast.AST, known: dict[str, str]) -> str | None:
    """A text as far as it can be told from the source."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, known) or "?" for part in node.values)
    return text_of(node.value, known) if isinstance(node, ast.FormattedValue) else None


@cache
def proofs() -> dict[str, tuple[str, ...]]:
    """The command or place of each proof, and the files that name it."""
    found: dict[str, set[str]] = {}
    for pattern in (*PAGES, *SOURCES):
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if name in ABOUT_THE_RUNNER:
                continue
            text = path.read_text("utf-8")
            for word in in_python(text) if path.suffix == ".py" else words_after(text):
                number, _, how = word.partition("=")
                if (number.isdecimal() or number == "all") and how not in {
                    "",
                    "...",
                    "COMMAND",
                    "COMMAND or PATH:LINE",
                }:
                    found.setdefault(how, set()).add(name)
    return {how: tuple(sorted(names)) for how, names in found.items()}


@cache
def recorded() -> tuple[str, ...]:
    """The commands of our own log."""
    events = [json.loads(path.read_bytes()) for path in ROOT.glob(".GOV/log/*/*.json")]
    rows = [row for event in events for row in event["data"].get("evidence", ()) if isinstance(row, dict)]
    return tuple(sorted({row["command"] for row in rows if "command" in row}))


def every_command() -> list[str]:
    return sorted(how for how in {*proofs(), *recorded()} if not PLACE.match(how))


def programs(command: str) -> list[str]:
    """The programs that a command starts, without those that only start others."""
    words = proof_words(command)
    while words[0] == "env":
        words = [word for word in words[1:] if "=" not in word] if "=" in words[1] else words[1:]
    if words[:2] != ["sh", "-c"]:
        return [words[0]]
    parts = list(shlex.shlex(words[2], posix=True, punctuation_chars=True))
    first = [part for before, part in zip([";", *parts], parts, strict=False) if set(before) <= set("|&;()")]
    return [part for part in first if part not in WITHOUT_FILE]


def test_they_are_found_where_they_are() -> None:
    places = {name for names in proofs().values() for name in names}
    assert "docs/policy.md" in places
    assert {"tools/workpacket/cli/review.py", "tests/lifecycle/test_gates.py", "tests/audit/audited.py"} <= places
    assert len(recorded()) >= 20


def test_none_is_hidden_from_this_test() -> None:
    """A proof that is put together when it is run would not be tried."""
    assert {how: names for how, names in proofs().items() if "?" in how} == {}


@pytest.mark.parametrize("command", every_command())
def test_none_needs_a_shell_that_it_does_not_name(command: str) -> None:
    assert proof_words(command)


# --- broken ---


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    root = tmp_path / "scratch"
    root.mkdir()
    make_repository(root)
    return root


def result_of(root: Path, how: str, first_on_path: Path | None = None) -> object:
    path = os.environ["PATH"] if first_on_path is None else f"{first_on_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "x")
    policy = EvidencePolicy(env=("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTHONDONTWRITEBYTECODE"), timeout_seconds=60)
    (proved,) = Prover(find_repository(root), policy, Redactor(), environment).prove([("It works.", how)])
    return proved.row["result"]


@pytest.mark.share(5)
@pytest.mark.parametrize("command", [one for one in every_command() if one not in ALWAYS_FAILS])
def test_it_fails_when_a_program_of_it_is_broken(command: str, scratch: Path, tmp_path: Path) -> None:
    assert programs(command)
    for name in programs(command):
        folder = tmp_path / name.replace("/", "_")
        folder.mkdir()
        broken = scratch / name if "/" in name else folder / name
        broken.parent.mkdir(parents=True, exist_ok=True)
        broken.write_text("#!/bin/sh\nexit 1\n", "utf-8")
        broken.chmod(0o755)
        assert result_of(scratch, command, folder) == "not_met", name


@pytest.mark.parametrize("place", sorted(how for how in proofs() if PLACE.match(how)))
def test_a_place_fails_when_it_is_gone(place: str, scratch: Path) -> None:
    path = scratch / place.partition(":")[0]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert result_of(scratch, place) == "not_met"


@pytest.mark.share(8)
@pytest.mark.parametrize("command", recorded())
def test_a_command_of_our_own_log_fails_when_the_tests_that_it_names_do(command: str, scratch: Path) -> None:
    named = [word for word in proof_words(command) if word.startswith("tests/")]
    assert named
    for name in named:
        path = scratch / name if name.endswith(".py") else scratch / name / "test_broken.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def test_broken() -> None:\n    assert False\n", "utf-8")
    (scratch / ".gitignore").write_text(".pytest_cache/\n", "utf-8")
    python = Path(shutil.which("python", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or "")
    assert result_of(scratch, command, python.parent) == "not_met"


DEMANDED = re.compile(r"workpacket evidence demand \S+ 1 --command '([^']+)'")
TUTORIAL = ROOT / "docs" / "tutorials" / "orchestrator.md"


@pytest.mark.parametrize(
    ("program", "result"),
    [
        ('print("Hello,", input())', "met"),
        ("raise SystemExit(1)", "not_met"),
        ("raise SystemExit(0)", "not_met"),
        ('print("Hello,")', "not_met"),
        ('print("Hello, Eve!", input())', "not_met"),
        ('print("Hello,", input()', "not_met"),
    ],
)
def test_the_proof_of_the_tutorial_tells_whether_the_program_greets(program: str, result: str, scratch: Path) -> None:
    page = TUTORIAL.read_text("utf-8")
    (command,) = DEMANDED.findall(page)
    (written,) = re.findall(r"^echo '(.+)' > src/greet_test.sh$", page, re.MULTILINE)
    (scratch / "src").mkdir()
    (scratch / "src" / "greet.py").write_text(f"{program}\n", "utf-8")
    (scratch / "src" / "greet_test.sh").write_text(f"{written}\n", "utf-8")
    assert result_of(scratch, command) == result


@pytest.mark.parametrize("broken", ["", "de", "fr", "it"])
def test_the_proof_of_the_tour_tells_whether_every_language_is_there(broken: str, scratch: Path) -> None:
    (scratch / "src").mkdir()
    (scratch / "tests").mkdir()
    for language in ("de", "fr", "it"):
        (scratch / "src" / f"{language}.txt").write_text("" if language == broken else "Hello\n", "utf-8")
    (scratch / texts.TEST).write_text(texts.REAL_TEST, "utf-8")
    assert result_of(scratch, texts.PROOF) == ("not_met" if broken else "met")
