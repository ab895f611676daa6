"""Modules that pages and docstrings name are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.source_tree import PACKAGE, ROOT, nodes, parsed, python_files, relative

PAGES = (ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md")
LAYERS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists())
IN_A_PAGE = re.compile(r"`((?:tools|tests|schemas|docs|bench|" + "|".join(LAYERS) + r")/[\w./-]*)`")
# A module of the package as docstrings write it: `lifecycle.gates`, `shell.approvals.facts.Approvals`.
IN_A_DOCSTRING = re.compile(r"`(?:workpacket\.)?((?:" + "|".join(LAYERS) + r")(?:\.\w+)+)`")
# `module.name` or `some_name`.
SOME_NAME = re.compile(r"`([a-z]\w*(?:\.\w+)+|[a-z]+_[a-z_]+)(?:\(\))?`")
# Names of other programs, and of examples.
KNOWN_ELSEWHERE = frozenset(
    {"navigator", "credentials", "parent_config", "st_ctime", "greet", "it", "primary_key", "sort_key"}
    | {"current_file_matches_preimage"}
)
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


def test_docstrings_and_comments_name_only_what_the_package_knows() -> None:
    """A name with a dot or an underscore that no code mentions is one that was renamed or removed."""
    known = KNOWN_ELSEWHERE | {path.stem for path in python_files(PACKAGE)} | {path.name for path in PACKAGE.rglob("*")}
    for path in python_files(PACKAGE):
        known |= words_of_the_code(parsed(path))
    gone = [
        f"{relative(path)}: {name}"
        for path in python_files(PACKAGE)
        for text in (*docstrings(parsed(path)), *comments(path))
        for name in SOME_NAME.findall(text)
        if not known.issuperset(name.rstrip("_").split("."))
    ]

    assert gone == [], "name what is there now, or list a name of another program in KNOWN_ELSEWHERE"


def words_of_the_code(module: ast.Module) -> set[str]:
    """The names that the code defines, uses or has in a text, such as a reason code or a key of a document."""
    words: set[str] = set()
    documentation = set(docstrings(module, clean=False))
    for node in nodes(module):
        fields = (getattr(node, field, None) for field in ("id", "attr", "arg", "name"))
        words |= {field for field in fields if isinstance(field, str)}
        if isinstance(node, ast.ClassDef):
            words.add(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node.name).lower())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in documentation:
            words |= set(re.findall(r"\w+", node.value))
    return words


def comments(path: Path) -> list[str]:
    return re.findall(r"(?m)(?:^|\s)#.*$", path.read_text("utf-8"))


def docstrings(module: ast.Module, *, clean: bool = True) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node, clean) or ""


def is_module(name: str) -> bool:
    path = PACKAGE.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()
