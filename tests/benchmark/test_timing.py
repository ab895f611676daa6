"""A measured command either did its work in time, or there is no figure and the reason is given."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from bench.timing import NotMeasured, run


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


@pytest.mark.long
def test_the_processor_time_is_that_of_the_command_and_its_children(tmp_path: Path) -> None:
    child = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"

    assert run(python(parent), tmp_path).cpu > 300
    assert run(python("import time; time.sleep(0.3)"), tmp_path).wall > 300


def test_the_output_is_kept(tmp_path: Path) -> None:
    assert run(python("print('x' * 100_000)"), tmp_path).output == "x" * 100_000 + "\n"


def test_a_command_that_fails_has_no_figure_and_its_last_words_are_kept(tmp_path: Path) -> None:
    with pytest.raises(NotMeasured, match="exit status 3: the disk is full"):
        run(python("import sys; print('the disk is full', file=sys.stderr); sys.exit(3)"), tmp_path)


def test_an_expected_status_is_no_failure(tmp_path: Path) -> None:
    assert run(python("raise SystemExit(3)"), tmp_path, statuses=(3,)).wall > 0


def test_a_missing_program_has_no_figure(tmp_path: Path) -> None:
    with pytest.raises(NotMeasured, match="absent: No such file"):
        run([str(tmp_path / "absent")], tmp_path)


@pytest.mark.long
def test_a_command_that_hangs_is_given_up_and_named(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(NotMeasured, match="given up after 1 s: sleep"):
        run(["sleep", "60"], tmp_path, patience=1)
    assert time.monotonic() - began < 30


@pytest.mark.long
def test_the_children_of_a_command_that_hangs_are_killed_too(tmp_path: Path) -> None:
    child = "import pathlib, time\nwhile True: pathlib.Path('alive').touch(); time.sleep(0.05)"
    with pytest.raises(NotMeasured, match="given up"):
        run(python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"), tmp_path, patience=1)

    (tmp_path / "alive").unlink(missing_ok=True)
    time.sleep(0.5)
    assert not (tmp_path / "alive").exists()


def test_a_child_that_keeps_the_output_open_does_not_keep_the_benchmark_waiting(tmp_path: Path) -> None:
    began = time.monotonic()
    run(python("import subprocess; subprocess.Popen(['sleep', '20'])"), tmp_path)
    assert time.monotonic() - began < 10
