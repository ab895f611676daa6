"""Tries a change in a process that has imported nothing of ours: for what cannot be exchanged in a loaded module, and
for what survived where something may have been remembered."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from mutation.changes import Change
from mutation.forks import is_noticed
from mutation.subjects import PACKAGE
from mutation.warm import Touch, first_failure, name_of, run_pytest


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the changed module to whoever imports it."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


class _Cheapest:
    """The plugin: runs the named tests, the cheapest first, up to the first that fails."""

    def __init__(self, tests: Iterable[str], touch: Touch) -> None:
        self._tests, self._touch = frozenset(tests), touch
        self.failed: str | None = "the tests cannot be collected"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return True
        named = [item for item in session.items if item.nodeid in self._tests]
        self.failed = first_failure(sorted(named, key=lambda item: self._touch.seconds[item.nodeid]))
        return True


def try_afresh(module: str, change: Change, touch: Touch) -> str | None:
    """The test that notices, or None. What happens on import, such as a constant, may matter to any test."""
    tests = touch.tests_of(module, change.lines) if change.in_function else set(touch.seconds)
    plugin = _Cheapest(tests, touch)

    def run() -> str | None:
        sys.meta_path.insert(0, _Finder(name_of(module), PACKAGE / module, change.tree))
        run_pytest(_files(tests), plugin)
        return plugin.failed

    return is_noticed(run)


def _files(tests: Iterable[str]) -> Sequence[str]:
    return sorted({test.partition("::")[0].removeprefix("tests/") for test in tests})
