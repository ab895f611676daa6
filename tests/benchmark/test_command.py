"""`python -m bench`: what is printed, what is saved, and what the exit status says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench.__main__ import main
from bench.rows import Row

from benchmark.programs import HANGING, IMPOSSIBLE, LAST, PYTHON, WORK, git, write_package

ROWS = [PYTHON, WORK, HANGING, LAST]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    write_package(tmp_path / "repository", 0.03)
    return tmp_path / "repository"


def bench(repository: Path, *words: str, rows: Sequence[Row] = ROWS) -> int:
    return main(words, rows, repository, repository / "results")


@pytest.mark.long
def test_a_run_goes_on_behind_a_peer_that_hangs_and_names_it_at_the_end(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(repository) == 0
    output = capsys.readouterr().out
    assert "not measured: given up after 0.5 s: sleep did not end" in output
    assert output.index("hanging") < output.index("\nlast ")
    assert "left out: hanging" in output


def test_a_row_of_ours_that_cannot_be_measured_is_a_failure_and_named(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(repository, rows=[IMPOSSIBLE, LAST]) == 1
    output = capsys.readouterr().out
    assert "not measured: the disk is full" in output
    assert output.rstrip().endswith("not measured: impossible")


def test_a_command_that_fails_is_a_failure_and_has_no_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_package(tmp_path / "failing", 0, status=5)

    assert bench(tmp_path / "failing", "--only", "work") == 1
    assert "exit status 5" in capsys.readouterr().out


@pytest.mark.long
def test_a_peer_that_was_asked_for_by_name_must_be_measured(repository: Path) -> None:
    assert bench(repository, "--only", "hanging") == 1


def test_only_the_named_rows_and_their_floors_are_measured(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(repository, "--only", "work") == 0
    rows = capsys.readouterr().out.partition("verdict\n")[2].splitlines()
    assert [row.split()[0] for row in rows if row] == ["python", "work"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "stp"], "no row is called 'stp'; --list shows the names"),
        (["--compare", "no-such-branch"], "unknown revision 'no-such-branch'"),
        (["--compare", "HEAD", "--only", "python"], "floors and peers have no other revision"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_measured(
    words: list[str], message: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(repository, *words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--pairs", "14"], ["--allow", "-1"], ["--allow", "x"], ["--save", "../x"]])
def test_values_that_are_not_valid_are_usage_errors(words: list[str], repository: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        bench(repository, *words)
    assert stopped.value.code == 2


def test_what_is_saved_names_commit_machine_and_command(repository: Path) -> None:
    assert bench(repository, "--only", "work", "--save", "tried") == 0
    saved = json.loads((repository / "results" / "tried.json").read_text())

    assert saved["command"] == "python -m bench --only work --save tried"
    assert saved["commit"] == git(repository, "rev-parse", "HEAD")
    assert saved["uncommitted changes"] is False
    assert {"processor", "cores", "system", "python", "git"} <= saved["machine"].keys()
    assert {"load at the start", "load at the end", "started", "ended"} <= saved.keys()
    floor, work = saved["rows"]
    assert work["figures"]["cpu_ms"] > 30
    assert work["figures"]["times_floor_cpu"] == pytest.approx(work["figures"]["cpu_ms"] / floor["figures"]["cpu_ms"])
    assert len(work["samples"]) == 3


@pytest.mark.long
def test_a_revision_is_compared_with_itself(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit = git(repository, "rev-parse", "HEAD")

    assert bench(repository, "--compare", "HEAD", "--only", "work", "--allow", "50") == 0
    output = capsys.readouterr().out
    assert f"compared with: {commit}" in output
    assert "command: python -m bench --compare HEAD --only work --allow 50" in output


@pytest.mark.long
def test_a_tree_that_takes_twice_as_long_is_slower_and_the_exit_status_says_so(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = git(repository, "rev-parse", "HEAD")
    write_package(repository, 0.06)

    assert bench(repository, "--compare", before, "--only", "work", "--save", "compared") == 1
    assert "slower: work" in capsys.readouterr().out
    saved = json.loads((repository / "results" / "compared.json").read_text())
    assert saved["compared with"] == before
    (row,) = saved["rows"]
    assert row["verdict"] == "slower"
    assert 1.03 < row["ratios"]["cpu_ms"]["low"] <= row["ratios"]["cpu_ms"]["median"]
    assert git(repository, "worktree", "list").count("\n") == 0, "the work tree of the revision is gone"


@pytest.mark.long
def test_a_tree_that_takes_half_as_long_is_not_slower(repository: Path) -> None:
    before = git(repository, "rev-parse", "HEAD")
    write_package(repository, 0.01)

    assert bench(repository, "--compare", before, "--only", "work") == 0


@pytest.mark.long
def test_a_file_that_git_does_not_know_yet_is_an_uncommitted_change(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "uncommitted changes: False" in run_one(repository, capsys)
    (repository / "tools" / "workpacket" / "added.py").touch()
    assert "uncommitted changes: True" in run_one(repository, capsys)


def run_one(repository: Path, capsys: pytest.CaptureFixture[str]) -> str:
    bench(repository, "--only", "work")
    return capsys.readouterr().out


@pytest.mark.long
def test_changes_that_are_not_committed_are_measured(repository: Path) -> None:
    package = repository / "tools" / "workpacket" / "main.py"
    package.write_text(package.read_text().replace("0.03", "0.06"))

    assert bench(repository, "--compare", "HEAD", "--only", "work") == 1


def test_a_row_that_one_revision_cannot_measure_fails_the_comparison_and_names_the_side(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_package(repository, 0.03, status=4)
    broken = git(repository, "rev-parse", "HEAD")
    write_package(repository, 0.03)

    assert bench(repository, "--compare", broken, "--only", "work") == 1
    output = capsys.readouterr().out
    assert "the other revision: exit status 4" in output
    assert "not measured: work" in output
