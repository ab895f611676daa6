"""The repositories that are measured can be made, and their rows measured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import approvals
from bench.governance import wait_until_at_rest
from bench.rows import Row, command, measured
from bench.sides import Side

from architecture.source_tree import ROOT


@pytest.fixture
def side(tmp_path: Path) -> Iterator[Side]:
    with Side(ROOT, tmp_path / "side") as side:
        yield side


def complaints(side: Side, rows: list[Row]) -> dict[str, str]:
    """The rows that could not be measured, and why."""
    found = [measured(type(row)(row.name, row.prepare, row.target, row.floor, row.kind, 1), side) for row in rows]
    return {each.row.name: each.missing for each in found if each.missing or not each.figures}


@pytest.mark.long
def test_every_row_of_a_repository_of_many_approvals_can_be_measured(side: Side) -> None:
    rows = list(approvals.many(20))

    assert len(rows) == 6
    assert complaints(side, rows) == {}


@pytest.mark.long
def test_files_that_were_just_written_are_waited_for_wherever_git_is(tmp_path: Path) -> None:
    folder = tmp_path / "repository" / ".GOV"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    (folder / "link").symlink_to("nowhere")
    began = time.monotonic()
    wait_until_at_rest(folder)

    assert time.monotonic() - began > 2
    assert {path.name for path in folder.parent.iterdir()} == {".GOV"}


def test_a_repository_that_cannot_be_made_is_not_tried_again_for_every_row(side: Side) -> None:
    tried = []

    def make(path: Path) -> Path:
        tried.append(path)
        raise OSError("no space left")

    row = Row("row", command(within=lambda side: side.made("broken", make)))
    for _ in range(2):
        assert measured(row, side).missing == "preparing broken failed: OSError: no space left"
    assert len(tried) == 1


def test_a_person_s_own_settings_take_no_part(side: Side) -> None:
    said = side.run([side.python, "-c", "import os; print(os.environ['XDG_CONFIG_HOME'])"], side.scratch).output

    assert Path(said.strip()).is_relative_to(side.scratch)
