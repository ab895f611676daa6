"""`python3 tools/just.py RECIPE` on a fresh machine, and what later calls do."""

from __future__ import annotations

import pytest

from setup import wheels
from setup.scratch import PYPROJECT, Result, Scratch

NO_INDEX = {"PIP_FIND_LINKS": ""}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scratch, Result]:
    """A repository after its first call."""
    scratch = Scratch(tmp_path_factory.mktemp("first"))
    return scratch, scratch.run("lint", "--flag", "two words", "$HOME")


@pytest.fixture
def scratch(first: tuple[Scratch, Result]) -> Scratch:
    return first[0]


def test_the_first_call_installs_and_hands_over_to_just(first: tuple[Scratch, Result]) -> None:
    scratch, result = first

    assert result.status == 0, result.said
    assert result.told == {
        "arguments": ["--justfile", str(scratch.repository / "justfile"), "lint", "--flag", "two words", "$HOME"],
        "path": str(scratch.venv / "bin"),
        "environment": str(scratch.venv),
        "package": str(scratch.repository / "tools" / "workpacket" / "__init__.py"),
    }


def test_the_first_call_compiles_the_package(first: tuple[Scratch, Result]) -> None:
    cache = first[0].repository / "tools" / "workpacket" / "__pycache__"

    assert [path.suffix for path in cache.iterdir()] == [".pyc"]


def test_the_second_call_installs_nothing_and_needs_no_index(scratch: Scratch) -> None:
    before = scratch.stamp.stat().st_mtime_ns

    result = scratch.run("lint", **NO_INDEX)

    assert (result.status, result.said) == (0, "")
    assert scratch.stamp.stat().st_mtime_ns == before


def test_a_change_of_pyproject_that_asks_for_nothing_new_needs_no_index(scratch: Scratch) -> None:
    scratch.write_pyproject(PYPROJECT + "\n[tool.ruff]\nline-length = 100\n")

    assert scratch.run("lint", **NO_INDEX).status == 0


def test_a_new_requirement_is_installed_into_what_is_there(scratch: Scratch) -> None:
    wheels.write_program(scratch.wheels, "fresh_tool", "fresh", "def main(): pass")
    scratch.write_pyproject(PYPROJECT.replace('"rust_just"', '"rust_just", "fresh_tool"'))
    mark = scratch.venv / "mark"
    mark.touch()

    result = scratch.run("lint")

    assert result.status == 0, result.said
    assert (scratch.venv / "bin" / "fresh").exists()
    assert mark.exists()


def test_a_requirement_that_nobody_has_is_named_and_the_set_up_stays_unfinished(scratch: Scratch) -> None:
    """An unfinished one is begun afresh by the next call; that it succeeds is shown in tests/proof/setup."""
    scratch.write_pyproject(PYPROJECT.replace('"rust_just"', '"rust_just", "no-such-tool"'))

    result = scratch.run("lint")

    assert result.status == 6
    assert result.said.splitlines()[-1] == (
        "just.py: installing the development tools failed: ERROR: No matching distribution found for no-such-tool"
    )
    assert scratch.stamp.read_bytes() == b"unfinished\n"
