"""Every pattern that is compiled on use can be compiled."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator

from architecture.source_tree import PACKAGE


def lazy_patterns() -> Iterator[tuple[str, str]]:
    """Module and name of each."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(("workpacket", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                made_by, target = node.value.func, node.targets[0]
                if isinstance(made_by, ast.Name) and made_by.id == "lazy_pattern" and isinstance(target, ast.Name):
                    yield module, target.id


def test_every_lazy_pattern_can_be_compiled() -> None:
    found = list(lazy_patterns())

    assert len(found) > 150
    for module, name in found:
        pattern = getattr(importlib.import_module(module), name)
        assert isinstance(pattern.pattern, (str, bytes)), (module, name)
        assert isinstance(pattern.match(type(pattern.pattern)()), (re.Match, type(None)))
