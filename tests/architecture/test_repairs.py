"""A rule cannot make an edit by offsets: it gets its replacements from runs, which look at the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from architecture.source_tree import PACKAGE, nodes, parsed, python_files

# What turns replacements into edits, and what applies the edits of findings.
MAKERS = {"rules/repair.py", "text/source.py"}
RULES_AND_READERS = [
    path
    for path in python_files(PACKAGE)
    if path.parent.name in {"rules", "text"}
    and path.relative_to(PACKAGE).as_posix() not in MAKERS
    and not path.name.startswith("yaml_")  # edits of YAML by commands, tried before they are made
]


def makes_edits(module: ast.Module) -> bool:
    calls = (node.func for node in nodes(module) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Name) and called.id in {"Edit", "Fix"} for called in calls)


@pytest.mark.parametrize("path", RULES_AND_READERS, ids=lambda path: path.stem)
def test_a_rule_makes_its_repairs_of_runs(path: Path) -> None:
    assert not makes_edits(parsed(path))


def test_an_edit_made_by_offsets_would_be_noticed() -> None:
    assert makes_edits(ast.parse("edits = [Edit(start, text.end, '')]"))
