"""Counts lines, functions and imports of the package: `just count`, or `just count --rev REV` for a commit.

A line of code is neither blank, a comment nor part of a docstring. Imported modules are those of the package that
are in `sys.modules` when a command in a new process has ended; with `--rev` the commit is unpacked into a temporary
folder and run there.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
STUB = "WP-1-Greeting-v1"
STUB_PATH = f".GOV/task_packets/stubs/{STUB}.md"
# Names of types that say what is wrong, including earlier ones.
PROBLEM_NAMES = frozenset(
    {"Complaint", "Fault", "Finding", "Misfit", "Problem", "Refusal", "Refused", "Unmet", "Unreadable", "Violation"}
)
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_WATCHED = """
import sys
try:
    from workpacket.cli.main import main
    main(sys.argv[1:])
except SystemExit:
    pass
names = [name for name in sys.modules if name.split('.')[0] == 'workpacket']
sys.__stderr__.write(chr(10) + 'imported ' + str(len(names)))
"""


class Lines(NamedTuple):
    """The number of lines of each sort. A line with code and a comment counts as code."""

    total: int
    blank: int
    docstring: int
    comment: int

    @property
    def code(self) -> int:
        return self.total - self.blank - self.docstring - self.comment


def count_lines(text: str) -> Lines:
    """Count the lines of one module. Blank lines in a docstring count as docstring."""
    lines = text.splitlines()
    docstrings = {number for begin, end in docstring_places(ast.parse(text)) for number in range(begin, end + 1)}
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not lines[token.start[0] - 1][: token.start[1]].strip()
    }
    blank = sum(not line.strip() for number, line in enumerate(lines, 1) if number not in docstrings)
    return Lines(len(lines), blank, len(docstrings), len(comments))


def docstring_places(module: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of every docstring."""
    for node in ast.walk(module):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            literal = node.body[0]
            yield literal.lineno, literal.end_lineno or literal.lineno


def function_lengths(module: ast.Module) -> Iterator[int]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def class_names(module: ast.Module) -> list[str]:
    """Return the names of the classes that other modules could import."""
    return [node.name for node in module.body if isinstance(node, ast.ClassDef)]


def imported_by(tools: Path, folder: Path, *words: str) -> int:
    """Return how many modules of the package a command imports in a new process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "WORKPACKET_"))}
    process = subprocess.run(
        [sys.executable, "-c", _WATCHED, *words],
        cwd=folder, env=environment | {"PYTHONPATH": str(tools)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(process.stderr.rpartition("imported ")[2])


def imports(tools: Path) -> dict[str, int]:
    """Count in a temporary repository with one stub that is not ready to become a packet."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        git = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run([*git, "init", "--quiet"], cwd=folder, check=True)
        imported_by(tools, folder, "init")
        imported_by(tools, folder, "new", STUB, "--what", "Greet", "--why", "People like it")
        subprocess.run([*git, "add", "--all"], cwd=folder, check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", "a stub"], cwd=folder, check=True)
        return {
            "cold `check STUB`": imported_by(tools, folder, "check", "--no-cache", STUB_PATH),
            "refused `create-task-packet`": imported_by(tools, folder, "create-task-packet", STUB),
        }


def table(tools: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each row."""
    texts = [path.read_text("utf-8") for path in sorted((tools / "workpacket").rglob("*.py"))]
    modules = [ast.parse(text) for text in texts]
    lines = Lines(*map(sum, zip(*map(count_lines, texts), strict=True)))
    functions = sorted(length for module in modules for length in function_lengths(module))
    names = Counter(name for module in modules for name in class_names(module))
    yield "modules", f"{len(modules):,}"
    yield "lines", f"{lines.total:,}"
    yield "lines of code", f"{lines.code:,}"
    for sort in ("blank", "docstring", "comment"):
        number = getattr(lines, sort)
        yield f"{sort} lines", f"{number:,} ({number / lines.total:.1%})"
    yield "functions", f"{len(functions):,}; median {median(functions):g}, longest {functions[-1]}"
    for command, number in imports(tools).items():
        yield f"own modules imported by {command}", str(number)
    repeated = sorted(name for name, number in names.items() if number > 1)
    yield "class names used more than once", " ".join([str(len(repeated)), *repeated])
    problems = sorted(name for name in names if name in PROBLEM_NAMES)
    yield "types for something that is wrong", " ".join([str(sum(names[name] for name in problems)), *problems])


def unpack(revision: str, folder: Path) -> Path:
    """Unpack the commit, and return its folder `tools`."""
    archive = subprocess.run(
        ["git", "archive", revision, "tools", "schemas"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder / "tools"


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="just count", description="Counts the package.")
    parser.add_argument("--rev", metavar="REV", help="count this commit instead of the work tree")
    revision = parser.parse_args(words).rev
    with tempfile.TemporaryDirectory() as name:
        tools = unpack(revision, Path(name)) if revision else ROOT / "tools"
        rows = list(table(tools))
    print(f"| {revision or 'work tree'} | |\n|---|---|")
    for label, value in rows:
        print(f"| {label} | {value} |")


if __name__ == "__main__":
    main(sys.argv[1:])
