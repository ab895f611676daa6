"""Modules that pages and docstrings name are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.source_tree import PACKAGE, ROOT, parsed, python_files, relative

PAGES = (ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md")
LAYERS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists())
IN_A_PAGE = re.compile(r"`((?:tools|tests|schemas|docs|bench|" + "|".join(LAYERS) + r")/[\w./-]*)`")
# A module of the package as docstrings write it: `lifecycle.gates`, `shell.approvals.facts.Approvals`.
IN_A_DOCSTRING = re.compile(r"`(?:workpacket\.)?((?:" + "|".join(LAYERS) + r")(?:\.\w+)+)`")
# Keys of policy.toml, which look the same.
KEYS = re.compile(r"(approvals|lifecycle)\.gates\b.*")


def exists(path: str) -> bool:
    return (ROOT / path).exists() or (PACKAGE / path).exists()


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_a_page_names_files_that_are_there(page: Path) -> None:
    named = IN_A_PAGE.findall(page.read_text("utf-8"))

    assert named
    assert [path for path in named if not exists(path) and "some_code" not in path] == []


def test_the_diagram_has_every_layer() -> None:
    text = PAGES[0].read_text("utf-8")
    diagram = text.split("```")[1]

    assert set(LAYERS) - set(re.findall(r"\w+", diagram)) <= {"git", "starter"}


def test_the_overview_is_one_page() -> None:
    assert len(PAGES[0].read_text("utf-8").splitlines()) <= 90


def test_docstrings_name_modules_that_are_there() -> None:
    gone = [
        f"{relative(path)}: {name}"
        for path in python_files(PACKAGE)
        for text in docstrings(parsed(path))
        for name in IN_A_DOCSTRING.findall(text)
        if not KEYS.fullmatch(name) and not is_module(name) and not is_module(name.rpartition(".")[0])
    ]

    assert gone == []


def docstrings(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def is_module(name: str) -> bool:
    path = PACKAGE.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()
