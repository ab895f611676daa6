"""`python -m workpacket_probe` runs unittest, as `python -m unittest` does, and reports its tests."""

from __future__ import annotations

import re
import sys
import unittest
from typing import Any

from . import watch as probe


class _Result(unittest.TextTestResult):
    watch: probe.Watch | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._status: dict[str, str] = {}
        self._message: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        if self.watch is not None and not _is_failed_load(test):
            self.watch.begin(test.id(), _code_of(test))

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        if self.watch is None or _is_failed_load(test):
            return
        name, names = test.id(), probe.names_in(_code_of(test))
        forgiven = self.watch.forgiven() if self._status.get(name) == "passed" else ""
        if forgiven:
            self._status[name], self._message[name] = "failed", forgiven
        self.watch.end(names)
        place = getattr(sys.modules.get(type(test).__module__), "__file__", None)
        self.watch.say(
            kind="test",
            id=name,
            path=self.watch.relative(place) if place else "",
            status=self._status.get(name, "error"),
            message=self._message.get(name, ""),
            started=self.watch.started,
            mentions=self.watch.mentions(names),
        )

    def _note(self, test: unittest.TestCase, status: str, error: Any = None) -> None:
        name = test.id()
        if self._status.get(name) in {"failed", "error"}:
            return
        self._status[name] = status
        if error is not None and error[1] is not None:
            self._message[name] = f"{type(error[1]).__name__}: {error[1]}"[:3000]

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self._note(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._note(test, "failed", err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        if self.watch is not None and _is_failed_load(test):
            self.watch.say(kind="error", where=_where(test), message=f"{type(err[1]).__name__}: {err[1]}"[-3000:])
        self._note(test, "failed", err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._note(test, "skipped")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._note(test, "skipped")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self._note(test, "failed")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, "failed", err)


def _code_of(test: unittest.TestCase) -> Any:
    return probe.code_of(getattr(test, getattr(test, "_testMethodName", ""), None))


def _is_failed_load(test: unittest.TestCase) -> bool:
    """Whether the test is unittest's replacement for tests that it could not load or prepare."""
    return type(test).__name__ in {"_FailedTest", "_ErrorHolder", "ModuleImportFailure", "LoadTestsFailure"}


def _where(test: unittest.TestCase) -> str:
    found = re.search(r"\(([\w.]+)\)\Z", test.id())
    return found[1] if found else test.id().rpartition("_FailedTest.")[2]


class _Runner(unittest.TextTestRunner):
    resultclass = _Result


if __name__ == "__main__":
    _Result.watch = probe.begin_runner("unittest")
    sys.argv[0] = "python -m unittest"
    try:
        unittest.main(module=None, testRunner=_Runner)
    finally:
        if _Result.watch is not None:
            _Result.watch.say(kind="end", main=True)
