"""What a machine may lack: one line says what, and how to get it; the exit status is 6. The faults are real ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from mounts import PRIVATE_MOUNT, can_mount
from setup.scratch import Result, Scratch

# Runs a script as if under a Python that is too old, where no real one is at hand.
PRETEND_TO_BE_OLD = """
import runpy, sys
sys.version_info = (3, 8, 18, "final", 0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


def assert_one_clear_line(result: Result, *parts: str) -> None:
    """Progress may have been told before; of the fault there is one line, the last."""
    lines = result.said.splitlines()
    assert result.status == 6, result
    assert all(line.startswith("just.py: ") for line in lines), result.said
    assert [part for part in parts if part not in lines[-1]] == []
    assert result.output == ""


def test_git_is_needed_for_every_recipe(scratch: Scratch) -> None:
    scratch.programs.joinpath("git").unlink()

    for recipe in ("lint", "test", "--list"):
        assert_one_clear_line(scratch.run(recipe), "git is missing", "install git")
    assert not scratch.venv.exists()


@pytest.mark.parametrize("recipe", ["test", "tour", "ci"])
def test_ssh_keygen_is_needed_for_recipes_that_sign(scratch: Scratch, recipe: str) -> None:
    scratch.programs.joinpath("ssh-keygen").unlink()

    assert_one_clear_line(scratch.run(recipe), "ssh-keygen is missing", "openssh-client")
    assert not scratch.venv.exists()


def test_a_file_that_cannot_be_executed_is_no_program(scratch: Scratch) -> None:
    git = scratch.programs / "git"
    git.unlink()
    git.write_text("not a program", "utf-8")

    assert_one_clear_line(scratch.run("lint"), "git is missing")


@pytest.fixture
def python_home(tmp_path: Path) -> Path:
    """A Python's library to take things from, as some distributions do; made of links to the real one."""
    real = Path(sysconfig.get_path("stdlib"))
    library = tmp_path / "python" / "lib" / real.name
    library.mkdir(parents=True)
    for entry in real.iterdir():
        library.joinpath(entry.name).symlink_to(entry)
    return library


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_the_means_to_make_an_environment(scratch: Scratch, python_home: Path, module: str) -> None:
    python_home.joinpath(module).unlink()

    result = scratch.run("lint", PYTHONHOME=str(python_home.parents[1]))

    assert_one_clear_line(result, f"no module {module}", f"apt install python3.{sys.version_info.minor}-venv")


def old_pythons() -> Iterator[str]:
    """Real Pythons that are too old: named by the environment, or on the PATH and not only a shim of one."""
    names = ["python3.6", "python3.7", "python3.8", "python3.9", "python3.10"]
    candidates = [os.environ.get("WORKPACKET_OLD_PYTHON"), *(shutil.which(name) for name in names)]
    for candidate in candidates:
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            yield candidate


@pytest.fixture(scope="module")
def olds() -> list[list[str]]:
    """Not looked for while tests are collected: to try a shim takes a tenth of a second, in every worker."""
    return [[python] for python in old_pythons()] or [[sys.executable, "-c", PRETEND_TO_BE_OLD]]


def test_an_old_python_says_so(scratch: Scratch, olds: list[list[str]]) -> None:
    for old in olds:
        result = scratch.run_command(*old, *scratch.command("test")[1:])

        assert_one_clear_line(result, "Python 3.11 or newer is needed", Path(old[0]).name, "install")


def test_an_old_python_hands_over_to_a_newer_one_on_the_path(scratch: Scratch, olds: list[list[str]]) -> None:
    """A shim that leads nowhere comes first, as version managers leave them. The newer one then misses git."""
    shim = scratch.programs / "python3.14"
    shim.write_text("#!/bin/sh\nexit 127\n", "utf-8")
    shim.chmod(0o755)
    scratch.link("python3.12", sys.executable)
    scratch.programs.joinpath("git").unlink()

    for old in olds:
        assert_one_clear_line(scratch.run_command(*old, *scratch.command("test")[1:]), "git is missing")


def test_without_a_network_it_says_so(scratch: Scratch) -> None:
    nobody_listens = "http://127.0.0.1:9/simple"
    index = {"PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": nobody_listens, "PIP_RETRIES": "0"}

    result = scratch.run("lint", **index)

    assert_one_clear_line(result, "installing uv failed", "no connection to the package index")


def test_an_environment_made_by_somebody_else_is_not_touched(scratch: Scratch) -> None:
    theirs = scratch.venv / "theirs.txt"
    scratch.venv.mkdir()
    theirs.write_text("precious", "utf-8")

    assert_one_clear_line(scratch.run("lint"), ".venv was not made by tools/just.py", "move it away")
    assert theirs.read_text("utf-8") == "precious"


def test_a_file_where_the_environment_should_be(scratch: Scratch) -> None:
    scratch.venv.touch()

    assert_one_clear_line(scratch.run("lint"), ".venv", "Not a directory")


def run_mounted(scratch: Scratch, preparation: str) -> Result:
    """Run just.py after the shell command `preparation`, whose $1 is the repository, in a mount of its own."""
    script = f'{preparation} && cd "$1" && shift && exec "$@"'
    if not can_mount():
        pytest.skip("this machine does not let us mount anything")
    shell = [*PRIVATE_MOUNT, "sh", "-c", script, "sh", str(scratch.repository)]
    return scratch.run_command(*shell, *scratch.command("lint"), PATH=f"{scratch.programs}:{os.environ['PATH']}")


def test_a_folder_that_can_only_be_read(scratch: Scratch) -> None:
    if os.geteuid() == 0:  # whom permissions do not stop
        result = run_mounted(scratch, 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"')
        assert_one_clear_line(result, ".venv.lock", "Read-only file system")
    else:
        scratch.repository.chmod(0o555)
        assert_one_clear_line(scratch.run("lint"), ".venv.lock", "Permission denied")


def test_a_full_disk(scratch: Scratch) -> None:
    fill = 'cp -a "$1" "$1.copy" && mount -t tmpfs -o size=1m tmpfs "$1" && cp -a "$1.copy/." "$1"'

    assert_one_clear_line(run_mounted(scratch, fill), "making .venv failed", "the disk is full")
