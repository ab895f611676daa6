"""In CI a skipped test is a failed test, unless allowed_skips.toml names it with a reason.

A suite that was not found, a tool that is not installed, a platform without a feature: each would otherwise turn into a
green result that proves nothing. Allowances that nothing needed are reported at the end, so that the list stays short.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Generator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.toml")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def pytest_configure(config: pytest.Config) -> None:
    if in_ci():
        config.pluginmanager.register(SkipGate(read_allowances(ALLOWED_SKIPS)), "workpacket-skip-gate")


@dataclass(frozen=True)
class Allowance:
    tests: str
    reason: str
    skip: str = "*"

    def covers(self, report: pytest.TestReport | pytest.CollectReport) -> bool:
        """Whether it allows this skip. The '[' of a parameter is literal: it is part of test ids."""
        about_it = fnmatchcase(report.nodeid, self.tests.replace("[", "[[]"))
        return about_it and fnmatchcase(skipped_because(report), self.skip)


def read_allowances(path: Path) -> list[Allowance]:
    entries = tomllib.loads(path.read_text("utf-8")).get("allow", [])
    for entry in entries:
        if entry.keys() - {"skip"} != {"tests", "reason"} or not all(str(value).strip() for value in entry.values()):
            raise pytest.UsageError(f"{path.name}: an allowance has 'tests', 'reason' and perhaps 'skip', not {entry}")
    return [Allowance(**entry) for entry in entries]


class SkipGate:
    """Makes failures of skips where they arise, which may be a worker of xdist, and counts where they are reported."""

    def __init__(self, allowances: list[Allowance]) -> None:
        self.allowances = allowances
        self.needed: set[Allowance] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._judge(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        self._judge(report)
        return report

    def _judge(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if is_skip(report) and not any(allowance.covers(report) for allowance in self.allowances):
            report.outcome = "failed"
            advice = "In CI a skipped test is a failure; tests/allowed_skips.toml can allow it."
            report.longrepr = f"{skipped_because(report)}\n{advice}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._count(report)

    def _count(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if is_skip(report):
            self.needed.update(allowance for allowance in self.allowances if allowance.covers(report))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            return  # a run of some tests says nothing about the others
        unused = [allowance for allowance in self.allowances if allowance not in self.needed]
        if unused:
            terminalreporter.section("allowed skips that nothing needed in this run")
        for allowance in unused:
            terminalreporter.line(f"{allowance.tests}: {allowance.reason}")


def is_skip(report: pytest.TestReport | pytest.CollectReport) -> bool:
    """Whether the test did not run; a test that failed as expected did."""
    return report.skipped and not hasattr(report, "wasxfail")


def skipped_because(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
