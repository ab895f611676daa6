"""The files of this repository, for tests that look at the code itself."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tools" / "workpacket"


@cache
def committed_files() -> tuple[Path, ...]:
    """What git tracks or would add: neither what is ignored nor what was deleted."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout
    return tuple(path for name in sorted(set(listed.split("\0")) - {""}) if (path := ROOT / name).is_file())


def python_files(folder: Path) -> list[Path]:
    return [path for path in committed_files() if path.suffix == ".py" and path.is_relative_to(folder)]


@cache
def parsed(path: Path) -> ast.Module:
    """By the oldest Python that is supported. Several tests look at the same trees, which none of them changes."""
    return ast.parse(path.read_bytes(), filename=relative(path), feature_version=(3, 11))


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Every node of a tree, for the many tests that look at all of them: to walk through takes longer than to look."""
    return tuple(ast.walk(tree))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
