"""The checker of run functions: every listed function, with the codes that it must be given and no others."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from functools import partial

import pytest

from architecture.source_tree import PACKAGE, python_files
from temporal import run_functions
from workpacket.runtime.async_run import AsyncRun
from workpacket.temporal.fitness import EVERYWHERE, name_of, unfit

HELPERS = {"fetch", "charge", "was_charged"}
FUNCTIONS = [
    name
    for name, one in inspect.getmembers(run_functions, inspect.isfunction)
    if one.__module__ == run_functions.__name__
    and name not in HELPERS
    and (inspect.iscoroutinefunction(inspect.unwrap(one)) or name in run_functions.WANTED)
    and not name.startswith("_")
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_listed_function_is_given_exactly_its_codes(name: str) -> None:
    found = unfit(getattr(run_functions, name))
    assert tuple(one.code for one in found) == run_functions.WANTED.get(name, ()), [str(one) for one in found]


def test_a_finding_says_the_function_the_line_and_what_to_do() -> None:
    (one,) = unfit(run_functions.reads_time)
    lines, first = inspect.getsourcelines(run_functions.reads_time)
    assert "time.time()" in lines[one.line - first]
    remedy = "read it in a step, or use run.sleep and run.sleep_until"
    assert str(one) == f"reads_time, line {one.line}: time.time (clock) -> {remedy}"


def test_what_no_other_process_can_import_is_not_a_run_function() -> None:
    for job in (run_functions.made(3), lambda run: None, partial(run_functions.plain, url="a"), run_functions.BANK.pay):
        assert [one.code for one in unfit(job)] == ["closure"]


def test_the_name_of_a_function_is_how_another_process_imports_it() -> None:
    assert name_of(run_functions.fetch) == f"{run_functions.__name__}:fetch"
    with pytest.raises(ValueError, match="lambda"):
        name_of(lambda: None)


def test_a_run_for_async_code_has_everything_that_exists_on_every_engine() -> None:
    assert not [name for name in EVERYWHERE if not hasattr(AsyncRun, name)]


def test_only_the_package_for_temporal_imports_its_sdk() -> None:
    importing = {
        path.relative_to(PACKAGE).as_posix()
        for path in python_files(PACKAGE)
        if "temporalio" in path.read_text("utf-8") and not path.is_relative_to(PACKAGE / "temporal")
    }
    assert importing == set()


def test_the_checker_needs_no_sdk() -> None:
    program = "import sys; from workpacket.temporal import unfit; sys.exit('temporalio' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], check=False, env=environment).returncode == 0
