"""The set-up survives what happens to it: calls at the same time, a kill at any moment, a move, a Python that went."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import pytest

from setup.scratch import Scratch, finish

MOMENTS = (0.1, 1.0, 2.2)


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.01)


def test_of_several_calls_at_once_one_installs_and_all_succeed(scratch: Scratch) -> None:
    results = [finish(process) for process in [scratch.start("lint") for _ in range(4)]]

    assert [result.status for result in results] == [0] * 4, results
    assert sum("making" in result.said for result in results) == 1


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_set_up_that_was_killed_is_done_again(scratch: Scratch, moment: float) -> None:
    process = scratch.start("lint")
    time.sleep(moment)
    process.kill()
    process.communicate()

    result = scratch.run("lint")

    assert result.status == 0, result.said
    assert result.told["environment"] == str(scratch.venv)


def test_an_interrupted_set_up_ends_in_one_line(scratch: Scratch, tmp_path: Path) -> None:
    process = scratch.start("lint", TEST_UV_WAITS_FOR=str(tmp_path / "gate"))
    wait_for(tmp_path / "gate.begun")
    process.send_signal(signal.SIGINT)

    result = finish(process)

    assert result.status == 130
    assert result.said.splitlines()[-1] == "just.py: interrupted; the next call starts the set-up again"
    assert "Traceback" not in result.said


def test_the_next_call_waits_for_the_installer_of_a_call_that_was_killed(scratch: Scratch, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    killed = scratch.start("lint", TEST_UV_WAITS_FOR=str(gate))
    wait_for(tmp_path / "gate.begun")
    killed.kill()

    following = scratch.start("lint")
    time.sleep(1)
    waits = following.poll() is None
    mark = scratch.venv / "mark"
    mark.touch()
    gate.touch()
    killed.communicate()
    result = finish(following)

    assert waits
    assert result.status == 0, result.said
    assert result.said.startswith("just.py: another call is setting up .venv; waiting for it\n")
    assert not mark.exists()


def test_a_repository_that_was_moved_is_set_up_again(scratch: Scratch, tmp_path: Path) -> None:
    """The programs in `.venv` name the old place; they would run the code that is there."""
    assert scratch.run("lint").status == 0
    moved = Scratch(tmp_path / "elsewhere")
    shutil.rmtree(moved.repository)
    shutil.copytree(scratch.repository, moved.repository, symlinks=True)

    result = moved.run("lint")

    assert result.status == 0, result.said
    assert result.told["package"] == str(moved.repository / "tools" / "workpacket" / "__init__.py")


def test_an_environment_whose_python_is_gone_is_made_again(scratch: Scratch) -> None:
    assert scratch.run("lint").status == 0
    python = scratch.venv / "bin" / "python"
    python.unlink()
    python.symlink_to("no-such-python")

    assert scratch.run("lint").status == 0
    assert python.exists()
