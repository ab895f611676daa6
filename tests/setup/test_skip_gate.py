"""The rule that CI does not skip, tried with real runs of pytest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import skip_gate

TESTS = """
import pytest

def test_runs():
    pass

@pytest.mark.skip(reason="no suite here")
@pytest.mark.parametrize("case", ["a", "b"])
def test_skips(case):
    pass

@pytest.mark.xfail(reason="known", strict=True)
def test_fails_as_expected():
    assert False
"""

ALLOW_ALL = """
[[allow]]
tests = "test_sample.py::test_skips*"
reason = "the suite is not published"
"""

ALLOW_ONE = """
[[allow]]
tests = "test_sample.py::test_skips[a]"
reason = "the suite is not published"
"""

ALLOW_TOO_MUCH = """
[[allow]]
tests = "test_sample.py::*"
reason = "the suite is not published"

[[allow]]
tests = "test_gone.py::*"
reason = "removed long ago"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of tests with our rule in force."""
    shutil.copy(Path(skip_gate.__file__), tmp_path)
    tmp_path.joinpath("conftest.py").write_text('pytest_plugins = ["skip_gate"]\n', "utf-8")
    tmp_path.joinpath("allowed_skips.toml").touch()
    tmp_path.joinpath("test_sample.py").write_text(TESTS, "utf-8")
    return tmp_path


def run(project: Path, *arguments: str, ci: str = "true") -> tuple[int, str]:
    # Plugins that are installed here but not used there would be two thirds of the time.
    alone = {"PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(project), **alone}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    result = subprocess.run(command, cwd=project, env=environment, capture_output=True, encoding="utf-8", check=False)
    return result.returncode, result.stdout + result.stderr


def allow(project: Path, text: str) -> None:
    project.joinpath("allowed_skips.toml").write_text(text, "utf-8")


@pytest.mark.parametrize("ci", ["", "0", "false", "False"])
def test_outside_ci_a_test_may_be_skipped(project: Path, ci: str) -> None:
    status, output = run(project, ci=ci)

    assert status == 0, output
    assert "1 passed, 2 skipped, 1 xfailed" in output


@pytest.mark.parametrize("ci", ["true", "1", "woodpecker"])
def test_in_ci_a_skipped_test_is_a_failed_test(project: Path, ci: str) -> None:
    status, output = run(project, ci=ci)

    assert status == 1
    assert "1 passed, 1 xfailed, 2 errors" in output
    assert "no suite here" in output


def test_the_workers_of_xdist_follow_the_rule_too(project: Path) -> None:
    status, output = run(project, "-p", "xdist", "-n", "1")

    assert status == 1
    assert "1 passed, 1 xfailed, 2 errors" in output


def test_a_skip_with_a_reason_on_the_list_is_allowed(project: Path) -> None:
    allow(project, ALLOW_ALL)

    assert run(project)[0] == 0


def test_an_allowance_covers_no_more_than_it_says(project: Path) -> None:
    allow(project, ALLOW_ONE)

    status, output = run(project)

    assert status == 1
    assert "1 passed, 1 skipped, 1 xfailed, 1 error" in output


@pytest.mark.parametrize(("skip", "status"), [("no suite*", 0), ("no network", 1)])
def test_an_allowance_may_be_limited_to_one_reason_to_skip(project: Path, skip: str, status: int) -> None:
    allow(project, f'{ALLOW_ALL}skip = "{skip}"\n')

    assert run(project)[0] == status


def test_an_allowance_that_nothing_needed_is_reported(project: Path) -> None:
    allow(project, ALLOW_TOO_MUCH)

    status, output = run(project)

    assert status == 0
    assert "test_gone.py::*: removed long ago" in output
    assert "test_sample.py::*: the suite" not in output


def test_a_run_of_some_tests_does_not_judge_the_allowances(project: Path) -> None:
    allow(project, ALLOW_TOO_MUCH)

    assert "removed long ago" not in run(project, "test_sample.py")[1]


@pytest.mark.parametrize("entry", ['tests = "*"', 'tests = "*"\nreason = " "', 'tests = "*"\nreason = "x"\nuntil = 1'])
def test_an_allowance_without_a_reason_or_with_more_stops_the_run(project: Path, entry: str) -> None:
    allow(project, f"[[allow]]\n{entry}\n")

    status, output = run(project)

    assert status == 4
    assert "an allowance has 'tests', 'reason' and perhaps 'skip'" in output


def test_a_module_that_skips_itself_is_a_failure_in_ci(project: Path) -> None:
    project.joinpath("test_module.py").write_text('import pytest\npytest.importorskip("no_such_module")\n', "utf-8")

    status, output = run(project, "test_module.py")

    assert status == 2
    assert "no_such_module" in output


def test_a_module_may_skip_itself_when_it_is_on_the_list(project: Path) -> None:
    project.joinpath("test_module.py").write_text('import pytest\npytest.importorskip("no_such_module")\n', "utf-8")
    allow(project, f'{ALLOW_ALL}\n[[allow]]\ntests = "test_module.py"\nreason = "it is not for this platform"\n')

    status, output = run(project)

    assert status == 0
    assert "nothing needed" not in output


def test_a_run_without_tests_is_a_failure(project: Path) -> None:
    assert run(project, "-k", "no_such_test")[0] == 5
