"""The plugin for pytest: reports the outcome of each test from the process that runs it, and errors that kept tests
from running.
"""

from __future__ import annotations

import os
import unittest
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from . import watch as probe

_LONGEST = 3000


def pytest_configure(config: Any) -> None:
    watch = probe.begin_runner("pytest", worker=hasattr(config, "workerinput"))
    if watch is not None:
        config.pluginmanager.register(_Probe(watch, config), "workpacket-probe")


class _Probe:
    def __init__(self, watch: probe.Watch, config: Any) -> None:
        self._watch = watch
        self._config = config
        self._status: dict[str, str] = {}
        self._message: dict[str, str] = {}
        self._code: dict[str, Any] = {}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_itemcollected(self, item: Any) -> Iterator[None]:
        # Saved before a hook can replace the test.
        self._code.setdefault(item.nodeid, _code_of(item))
        yield

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self._watch.only is not None:
            items[:] = [item for item in items if self._name(item) in self._watch.only]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        name = self._name(item)
        self._status[name], self._message[name] = "skipped", ""
        own = self._code.get(item.nodeid)
        self._watch.begin(name, own)
        yield
        forgiven = self._watch.forgiven() if self._status[name] == "passed" else ""
        if forgiven:
            self._status[name], self._message[name] = "failed", forgiven
        names = probe.names_in(own)
        self._watch.end(names)
        self._watch.say(
            kind="test",
            id=name,
            path=name.partition("::")[0],
            status=self._status[name],
            message=self._message[name],
            started=self._watch.started,
            mentions=self._watch.mentions(names),
        )

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        # Saved before any other hook, which could turn a failure into something else.
        error = call.excinfo.value if call.excinfo is not None else None
        outcome: Any = yield
        report = outcome.get_result()
        name = self._name(item)
        expected = hasattr(report, "wasxfail")
        if isinstance(error, (pytest.skip.Exception, unittest.SkipTest)) or expected:
            self._status[name] = "skipped" if self._status[name] in {"skipped", "passed"} else self._status[name]
        elif error is not None:
            self._status[name] = "failed" if call.when == "call" else "error"
            self._message[name] = _told(error, report, whole=call.when != "call")
        elif call.when == "call":
            self._status[name] = "passed" if report.outcome == "passed" else "failed"

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            message = str(getattr(report, "longreprtext", report.longrepr))[-_LONGEST:]
            self._watch.say(kind="error", where=self._path(report.nodeid), message=message)

    def pytest_sessionfinish(self) -> None:
        self._watch.say(kind="end", main=not hasattr(self._config, "workerinput"))
        for plugin in self._config.pluginmanager.get_plugins():
            place = plugin.__file__ if isinstance(plugin, ModuleType) else None
            path = self._watch.relative(place) if isinstance(place, str) else ".."
            if not path.startswith("../") and path != ".." and not os.path.isabs(path):
                self._watch.say(kind="plugin", path=path)

    def _name(self, item: Any) -> str:
        """Return the id of a test relative to the top of the repository, not relative to pytest's root folder."""
        _, colons, rest = item.nodeid.partition("::")
        return f"{self._watch.relative(str(getattr(item, 'path', None) or item.fspath))}{colons}{rest}"

    def _path(self, identity: str) -> str:
        if not identity:
            return ""
        return self._watch.relative(os.path.join(str(self._config.rootdir), identity.partition("::")[0]))


def _code_of(item: Any) -> Any:
    """Return the code of the test; None for other kinds of items, and for code in a conftest.py."""
    code = probe.code_of(getattr(item, "function", None))
    return None if code is None or os.path.basename(code.co_filename) == "conftest.py" else code


def _told(error: BaseException, report: Any, *, whole: bool) -> str:
    """Return only the error of a failed test, because the quoted source could contain the words of any other error."""
    said = f"{type(error).__name__}: {error}"[:_LONGEST]
    return f"{said}\n{str(getattr(report, 'longreprtext', ''))[-_LONGEST:]}" if whole else said
