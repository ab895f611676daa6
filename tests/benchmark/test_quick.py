"""`python -m bench.quick` fails for what became slower than landed, or could not be measured, and not for noise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bench import quick
from bench.intervals import FEWEST
from bench.rows import Row

from benchmark.programs import IMPOSSIBLE, PYTHON, WORK, write_package

ROWS = [PYTHON, WORK]


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measured once, which takes a second."""
    folder = tmp_path_factory.mktemp("landed") / "repository"
    write_package(folder, 0.02)
    assert run(folder, "--land") == 0
    return folder


@pytest.fixture(autouse=True)
def fewest_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row here is near the border, so that as few rounds as make an interval tell as much as fifteen."""
    monkeypatch.setattr(quick, "ROUNDS", FEWEST)


@pytest.fixture
def repository(landed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(landed, tmp_path / "repository")


def run(repository: Path, *words: str, rows: list[Row] = ROWS) -> int:
    return quick.main(words, rows, repository, repository / "landed.json")


@pytest.mark.long
def test_what_has_not_changed_is_not_slower(repository: Path) -> None:
    assert run(repository) == 0


@pytest.mark.long
def test_a_row_that_takes_twice_as_long_as_landed_fails(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_package(repository, 0.06)

    assert run(repository) == 1
    assert "slower than landed, twice, by more than 30%: work" in capsys.readouterr().out


@pytest.mark.long
def test_a_row_that_cannot_be_measured_fails(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(repository, rows=[*ROWS, IMPOSSIBLE]) == 1
    assert "not measured: impossible: the disk is full" in capsys.readouterr().out


@pytest.mark.long
def test_a_row_that_fails_when_it_runs_fails(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_package(repository, 0, status=4)

    assert run(repository) == 1
    assert "not measured: work: exit status 4" in capsys.readouterr().out


@pytest.mark.long
def test_a_row_without_a_landed_figure_fails_and_says_how_to_land_it(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "landed.json").unlink()

    assert run(repository) == 1
    assert "measured or landed, but not both: work; python3 tools/just.py bench-quick --land" in capsys.readouterr().out


@pytest.mark.long
def test_figures_are_not_landed_while_a_row_cannot_be_measured(repository: Path) -> None:
    before = (repository / "landed.json").read_bytes()

    assert run(repository, "--land", rows=[*ROWS, IMPOSSIBLE]) == 1
    assert (repository / "landed.json").read_bytes() == before


@pytest.mark.long
def test_landed_figures_are_multiples_of_an_empty_python(repository: Path) -> None:
    landed = json.loads((repository / "landed.json").read_text())

    assert landed["times python -c pass"].keys() == {"work"}
    assert landed["times python -c pass"]["work"] > 1
    assert len(landed["commit"]) == 40


@pytest.mark.parametrize(
    ("ratios", "slower"),
    [
        ([13.1] * 15, ["work"]),
        ([12.9] * 15, []),  # within the noise
        ([30.0] * 11 + [10.0] * 4, []),  # one of four rounds was as fast as landed
        ([30.0] * 12 + [10.0] * 3, ["work"]),
    ],
)
def test_slower_is_what_lies_above_the_noise_with_its_whole_interval(ratios: list[float], slower: list[str]) -> None:
    assert quick.slower({"work": ratios}, {"work": 10.0}, quick.NOISE) == slower


def test_what_is_landed_here_is_what_the_quick_benchmark_measures() -> None:
    landed, python = quick.read_landed(quick.LANDED)

    assert landed.keys() == set(quick.ROWS)
    assert python.startswith("3.")
