"""A session of pytest that has collected its tests and then tries one change after the other in forks of itself."""

from __future__ import annotations

import ast
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import NamedTuple

import coverage
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, Phase, settings

from mutation.changes import Change
from mutation.forks import answer_of, is_noticed
from mutation.grafting import graft
from mutation.subjects import LEFT_OUT, PACKAGE, TESTS

PROFILE = "mutation"


class Touch(NamedTuple):
    """By test: how long it takes, and the lines of each module that it runs."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    failed: list[str]

    def tests_of(self, module: str, lines: Iterable[int]) -> set[str]:
        """The tests that run one of the lines; of lines that no test runs itself, those that run any of the module."""
        known = self.lines.get(module, {})
        of_lines = {test for line in lines for test in known.get(line, ())}
        return of_lines or {test for tests in known.values() for test in tests}


Try = Callable[[str, Change], str | None]


class Session:
    """The plugin. `work` is done in place of running the tests."""

    def __init__(self, modules: Sequence[str], work: Callable[[Touch, Try], None]) -> None:
        self._modules, self._work = modules, work
        self._items: dict[str, pytest.Item] = {}
        self._kills: Counter[tuple[str, str]] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._touch = answer_of(self._measure)
        if not self._touch.failed and (failed := self._control()):
            self._touch.failed.append(failed)
        self._work(self._touch, self._try)
        return True

    def _measure(self) -> Touch:
        paths = {module: str(PACKAGE / module) for module in self._modules}
        measuring = coverage.Coverage(data_file=None, include=list(paths.values()), config_file=False)
        seconds: dict[str, float] = {}
        failed: list[str] = []
        measuring.start()
        for item, following in _in_turn(list(self._items.values())):
            measuring.switch_context(item.nodeid)
            began = time.perf_counter()
            if any(report.failed for report in runtestprotocol(item, nextitem=following, log=False)):
                failed.append(item.nodeid)
            seconds[item.nodeid] = time.perf_counter() - began
        measuring.stop()
        data = measuring.get_data()
        lines: dict[str, dict[int, list[str]]] = defaultdict(dict)
        for module, path in paths.items():
            for line, contexts in data.contexts_by_lineno(path).items():
                lines[module][line] = [context for context in contexts if context in self._items]
        return Touch(seconds, dict(lines), failed)

    def _control(self) -> str | None:
        """The test that fails with every module put in anew as it is: if one does, no verdict can be believed."""

        def tests_of_nothing() -> str | None:
            for module in self._modules:
                graft(import_module(name_of(module)), ast.parse((PACKAGE / module).read_text("utf-8")))
            return first_failure(list(self._items.values()))

        return is_noticed(tests_of_nothing)

    def _try(self, module: str, change: Change) -> str | None:
        """The test that notices, tried in the order of what each has noticed so far for its time."""
        tests = self._touch.tests_of(module, change.lines if change.in_function else ())
        worth = {test: (self._kills[module, test] + 1) / (self._touch.seconds[test] + 0.002) for test in tests}
        items = [self._items[test] for test in sorted(tests, key=lambda test: -worth[test])]
        name = name_of(module)

        def tests_of_change() -> str | None:
            try:
                graft(import_module(name), change.tree)
            except Exception as fault:
                return repr(fault)
            return first_failure(items)

        by = is_noticed(tests_of_change)
        if by in tests:
            self._kills[module, by] += 1
        return by


def name_of(module: str) -> str:
    return "workpacket." + module.removesuffix(".py").replace("/", ".")


def first_failure(items: Sequence[pytest.Item]) -> str | None:
    for item, following in _in_turn(items):
        if any(report.failed for report in runtestprotocol(item, nextitem=following, log=False)):
            return item.nodeid
    return None


def _in_turn(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def run_pytest(tests: Iterable[str], plugin: object) -> None:
    """Collects the tests and has the plugin do the rest. Random input is the same for every change, and not made
    smaller once it has shown a fault."""
    phases = (Phase.explicit, Phase.generate)
    checks = list(HealthCheck)
    settings.register_profile(
        PROFILE, phases=phases, derandomize=True, database=None, deadline=None, suppress_health_check=checks
    )
    os.chdir(TESTS.parent)
    quiet = ["-qq", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:skip_gate"]
    ignored = [f"--ignore=tests/{path}" for path in LEFT_OUT]
    pytest.main(
        [*quiet, f"--hypothesis-profile={PROFILE}", *ignored, *(f"tests/{path}" for path in tests)], plugins=[plugin]
    )
