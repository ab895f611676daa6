"""What `just test` leaves out is run by a session that CI calls, and in full by the nightly run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from bench import nightly

import long_lists
from architecture.source_tree import ROOT, committed_files, relative
from long_lists import chosen

TESTS = """
import pytest

@pytest.mark.share(4)
@pytest.mark.parametrize("case", range(10))
def test_listed(case):
    pass

@pytest.mark.parametrize("case", ["short", pytest.param("slow", marks=pytest.mark.long)])
def test_twice(case):
    pass

@pytest.mark.long
def test_long():
    pass
"""
SETTINGS = """
[tool.pytest.ini_options]
testpaths = ["tests"]
markers = ["long: x", "share(n): x"]
"""
# The sessions that collect what `just test` does not: by the folders and endings of their files.
SESSIONS = {
    "proof": ("tests/proof/*",),
    "fuzz": ("tests/fuzz/*",),
    "report": ("tests/browser/*",),
    "langgraph": ("tests/corpora/langgraph_suite/*",),
    "servers": ("tests/postgres/*", "tests/temporal/*"),
    "docs": ("tests/docs/*", "tests/tour/*", "tests/*_page.py", "tests/*tutorial.py", "tests/*by_hand.py"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "tests"
    folder.mkdir()
    shutil.copy(Path(long_lists.__file__), folder)
    folder.joinpath("conftest.py").write_text('pytest_plugins = ["long_lists"]\n', "utf-8")
    folder.joinpath("test_sample.py").write_text(TESTS, "utf-8")
    tmp_path.joinpath("pyproject.toml").write_text(SETTINGS, "utf-8")
    return tmp_path


def collected(project: Path, *arguments: str) -> list[str]:
    alone = {"PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(project / "tests")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *arguments]
    done = subprocess.run(command, cwd=project, env=os.environ | alone, capture_output=True, text=True, check=True)
    return re.findall(r"::test_(\S+)", done.stdout)


FIXED = ["listed[0]", "listed[4]", "listed[8]", "listed[9]", "twice[short]"]
ALL = [*(f"listed[{case}]" for case in range(10)), "twice[short]", "twice[slow]", "long"]


@pytest.mark.parametrize(
    ("words", "found"),
    [(("tests",), FIXED), (("tests/test_sample.py",), ALL)],
    ids=["as just test does", "a file"],
)
def test_a_run_of_everything_takes_a_share_and_a_run_of_a_file_all(
    project: Path, words: tuple[str, ...], found: list[str]
) -> None:
    assert collected(project, *words) == found


def test_a_fresh_share_has_the_long_ones_and_a_part_of_the_list(project: Path) -> None:
    found = collected(project, "--lists=fresh", "-m", "long or share")

    assert {"twice[slow]", "long"} < {*found}
    assert 2 <= len(found) - 2 <= 3


@pytest.mark.parametrize("cases", [1, 2, 7, 8, 9, 100])
def test_every_case_is_in_the_share_of_some_seed_and_each_seed_has_one(cases: int) -> None:
    shares = [{at for at in range(cases) if chosen(at, cases, 8, seed=seed)} for seed in range(8)]

    assert set().union(*shares) == {*range(cases)}
    assert all(shares)


def test_what_is_left_out_of_lists_is_run_by_ci_and_whole_by_the_nightly_run() -> None:
    noxfile = (ROOT / "noxfile.py").read_text("utf-8")

    assert '"hypothesis or long or share"' in noxfile
    assert "--lists=whole" in noxfile
    assert "--lists=fresh" in noxfile
    assert "step proof" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert nightly.LONG_LISTS[:3] == ("-m", "long or share", "--lists=whole")


def test_every_file_of_tests_is_collected_by_just_test_or_by_a_session_that_ci_calls() -> None:
    ignored = re.findall(r"--ignore(?:-glob)?=(\S+)", (ROOT / "tests" / "fast.txt").read_text("utf-8"))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    files = [name for name in map(relative, committed_files()) if fnmatch(name, "tests/*/test_*.py")]
    left_out = {name for name in files if any(fnmatch(name, f"{each}*") for each in ignored)}
    left_out |= {name for name in files if not {*settings["norecursedirs"]}.isdisjoint(name.split("/"))}
    called = re.findall(r"^ *step (?:nox )?(.+)", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    sessions = {word for words in called for word in words.split()} & {*SESSIONS}
    run = {name for name in left_out for of in sessions if any(fnmatch(name, each) for each in SESSIONS[of])}

    assert left_out > {"tests/docs/test_howto.py", "tests/proof/test_in_time.py"}
    assert left_out - run == set()
