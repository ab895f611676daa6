"""`.ci/base`: the change that is judged holds the name of its own base, which may only move forward on main."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from git.scratch import make_repository

ROOT = Path(__file__).parents[2]


class Main:
    """A repository with the script, and the commits of main, oldest first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_repository(folder)
        (folder / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "base", folder / ".ci" / "base")
        self.first, self.second = self.commit("first"), self.commit("second")

    def git(self, *arguments: str) -> str:
        command = ("git", "-c", "user.name=ann", "-c", "user.email=ann@example.org", *arguments)
        done = subprocess.run(command, cwd=self.folder, check=True, capture_output=True, encoding="utf-8")
        return done.stdout.strip()

    def commit(self, message: str, green: str | None = None) -> str:
        if green is not None:
            (self.folder / ".ci" / "green").write_text(f"{green}\n", "utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", f"--message={message}")
        return self.git("rev-parse", "HEAD")

    def merged(self, branch: str) -> str:
        self.git("switch", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "--no-edit", branch)
        return self.git("rev-parse", "HEAD")

    def base(self) -> tuple[str, str]:
        """What the script prints: the base, and what it tells; '' in place of the base if it refuses."""
        done = subprocess.run((".ci/base",), cwd=self.folder, check=False, capture_output=True, encoding="utf-8")
        assert bool(done.returncode) is not bool(done.stdout)
        return done.stdout.strip(), done.stderr


@pytest.fixture
def main(tmp_path: Path) -> Main:
    return Main(tmp_path / "repository")


def test_the_first_base_is_an_older_commit_of_main(main: Main) -> None:
    main.commit("the base", main.first)
    main.commit("later")
    assert main.base() == (main.first, "")


def test_a_base_that_moved_forward_tells_who_moved_it_and_what_is_not_judged_again(main: Main) -> None:
    main.commit("the base", main.first)
    third = main.commit("third")
    main.commit("the base moves", third)
    green, told = main.base()
    assert green == third
    assert f"moved from {main.first[:12]} to {third[:12]} by\n" in told
    assert " ann <ann@example.org> " in told
    assert [line.split(" ", 3)[-1] for line in told.splitlines()[-3:]] == ["third", "the base", "second"]


def test_the_base_may_move_in_a_merged_branch_to_a_commit_of_main(main: Main) -> None:
    main.commit("the base", main.first)
    main.git("switch", "--quiet", "--create", "side")
    main.commit("the base moves", main.second)
    main.merged("side")
    assert main.base()[0] == main.second


def test_a_commit_of_the_merged_branch_is_not_a_base(main: Main) -> None:
    main.commit("the base", main.first)
    main.git("switch", "--quiet", "--create", "side")
    own = main.commit("nobody judged this")
    main.commit("the base moves", own)
    main.merged("side")
    green, told = main.base()
    assert not green
    assert f"{own} is not on the first-parent line" in told


def test_a_commit_of_a_branch_that_was_merged_before_is_not_a_base_either(main: Main) -> None:
    main.commit("the base", main.first)
    main.git("switch", "--quiet", "--create", "side")
    own = main.commit("part of a landing")
    main.merged("side")
    main.commit("the base moves", own)
    assert "is not on the first-parent line" in main.base()[1]


def test_the_base_does_not_move_back(main: Main) -> None:
    main.commit("the base", main.second)
    main.commit("the base moves", main.first)
    main.commit("and forward", main.second)
    assert f"moved it back from {main.second} to {main.first}" in main.base()[1]


@pytest.mark.parametrize("value", ["", "HEAD", "main", "0" * 40, "a" * 39, "--all"])
def test_what_is_not_a_commit_of_main_is_refused(main: Main, value: str) -> None:
    main.commit("the base", value)
    green, told = main.base()
    assert not green
    assert "help: write the full hash" in told


def test_an_abbreviated_hash_is_refused(main: Main) -> None:
    main.commit("the base", main.first[:12])
    assert "which is not a full hash" in main.base()[1]


def test_a_missing_base_is_refused(main: Main) -> None:
    assert "it is missing from HEAD" in main.base()[1]


def test_a_deleted_base_is_refused(main: Main) -> None:
    main.commit("the base", main.first)
    (main.folder / ".ci" / "green").unlink()
    main.commit("no base")
    assert "it was deleted in" in main.base()[1]


def test_the_base_in_the_work_tree_is_not_read(main: Main) -> None:
    main.commit("the base", main.first)
    (main.folder / ".ci" / "green").write_text(f"{main.second}\n", "utf-8")
    assert main.base()[0] == main.first


def test_ci_judges_against_the_base_that_was_checked() -> None:
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    asked, judged = 'base=$(.ci/base) || echo ".ci/base" >>"$kept/failed"\n', '\nstep nox gov -- --base "$base"\n'
    assert 0 < text.find(asked) < text.find(judged)
    assert "cat .ci/green" not in text


@pytest.mark.parametrize(("bad", "said"), [("", ""), ("servers", "failed: nox servers"), ("types", "failed: types")])
def test_ci_fails_with_the_name_of_each_step_that_failed_wherever_it_ran(tmp_path: Path, bad: str, said: str) -> None:
    """The real `.ci/run`, with a program in place of just.py."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / ".ci" / "base").write_text("#!/bin/sh\necho abc\n", "utf-8")
    (tmp_path / ".ci" / "base").chmod(0o755)
    (tmp_path / "tools" / "just.py").write_text(f"import sys\nsys.exit({bad!r} in sys.argv)\n", "utf-8")
    done = subprocess.run([tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False)
    assert done.returncode == bool(bad), done
    assert [line for line in done.stdout.splitlines() if line.startswith("failed: ")] == [said] * bool(said)
    assert done.stdout.count("== nox servers") == 1
