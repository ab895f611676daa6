"""Wrong usages of the command line, in a wrong place or a wrong order too: each answer names what to do instead."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import softkeys
from cli.commands import Result
from git.scratch import git
from workpacket.cli.main import main

USAGES = [json.loads(line) for line in Path(__file__).with_name("wrong_usages.jsonl").read_text("utf-8").splitlines()]
MADE = (
    "--criterion",
    "It greets.",
    "--scope",
    "src/",
    "--scope",
    "tests/",
    "--prove",
    "python3 -m unittest discover -s tests",
    "--requirement",
    "It greets its user.",
)
PROGRAM = "def greet():\n    return 'Hello'\n"
TEST = (
    "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nfrom greet import greet\n\n\n"
    "class TestGreet(unittest.TestCase):\n    def test_greet(self):\n        self.assertEqual(greet(), 'Hello')\n"
)
REFINED = ("--refinement", "The name is an argument.")


def typed(folder: Path, *words: str, named: bool = True) -> Result:
    # No settings of the person who runs the tests, and no git identity that git would guess.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "WORKPACKET_ACTOR"))}
    environment |= {"HOME": str(folder.parent), "XDG_CONFIG_HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    if named:
        environment |= {"WORKPACKET_ACTOR": "ann"}
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, text in environment.items():
            patch.setenv(name, text)
        status = main([*words])
    return Result(status, out.getvalue(), err.getvalue())


def done(folder: Path, *words: str) -> None:
    result = typed(folder, *words)
    assert result.status == 0, (words, result.out, result.err)


def begin(folder: Path) -> None:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Work")


def write_work(folder: Path) -> None:
    """The program and its test, as an editor leaves them: not committed."""
    for path, text in (("src/greet.py", PROGRAM), ("tests/test_greet.py", TEST)):
        (folder / path).parent.mkdir()
        (folder / path).write_text(text)


def public_key(folder: Path) -> Path:
    """A key that somebody else holds: only the public half is here."""
    path = folder / "approval.pub"
    path.write_text(f"{softkeys.shared_key('ssh-ed25519').public_line}\n")
    return path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each place of the list; those after the first commit are copies of the same repository."""
    top = tmp_path_factory.mktemp("places")
    made = {name: top / str(number) for number, name in enumerate(dict.fromkeys(usage["where"] for usage in USAGES))}
    made["a folder outside of git"].mkdir()
    begin(made["a repository without governance"])
    unborn = made["before the first commit"]
    begin(unborn)
    done(unborn, "init", "--form", "light")
    done(unborn, "new", "Greet", *MADE, *REFINED)
    usual = made["main"]
    begin(usual)
    done(usual, "init", "--form", "light")
    commit(usual)
    git(usual, "switch", "-q", "-c", "side")
    done(usual, "new", "Aside", *MADE, *REFINED)
    commit(usual)
    git(usual, "switch", "-q", "main")
    for title in ("Greet", "Other"):
        done(usual, "new", title, *MADE, *REFINED)
    commit(usual)
    for name in ("main without a git identity", "a detached HEAD", "the branch of another packet"):
        shutil.copytree(usual, made[name])
    git(made["a detached HEAD"], "checkout", "-q", "--detach")
    started = made["the branch of another packet"]
    done(started, "start", "WP-1-Other-v1")
    shutil.copytree(started, made["a start on its branch that is not committed"])
    shutil.copytree(started, made["a start that is not committed"])
    git(made["a start that is not committed"], "switch", "-q", "main")
    commit(started)
    shutil.copytree(started, made["main, while work goes on"])
    git(made["main, while work goes on"], "switch", "-q", "main")
    shutil.copytree(started, made["uncommitted work"])
    write_work(made["uncommitted work"])
    review = made["work in review"]
    shutil.copytree(started, review)
    write_work(review)
    commit(review)
    done(review, "done")
    commit(review)
    for name in ("merged work", "main, while work is in review"):
        shutil.copytree(review, made[name])
        git(made[name], "switch", "-q", "main")
    git(made["merged work"], "merge", "-q", "--no-edit", "wp/WP-1-Other-v1")
    shutil.copytree(usual, made["a subfolder"])
    (made["a subfolder"] / "src").mkdir()
    approved = made["a policy with approvals, and no key"]
    shutil.copytree(usual, approved)
    done(approved, "policy", "trust", "--key", str(public_key(top)), "--principal", "ann@example.org")
    commit(approved)
    return made


@pytest.mark.share(9)
@pytest.mark.parametrize("usage", USAGES, ids=lambda usage: f"{usage['where']}: {usage['typed']}")
def test_the_answer_names_what_to_do(places: dict[str, Path], tmp_path: Path, usage: dict[str, Any]) -> None:
    folder = tmp_path / "here"
    shutil.copytree(places[usage["where"]], folder)
    here = folder / "src" if usage["where"] == "a subfolder" else folder
    result = typed(here, *shlex.split(usage["typed"]), named="identity" not in usage["where"])
    said = result.out + result.err
    assert result.status == usage["status"], said
    for wanted in usage["names"]:
        assert wanted in said
    for unwanted in usage.get("lacks", ()):
        assert unwanted not in said
    assert "Traceback" not in said


def test_the_list_has_each_place_and_no_usage_twice() -> None:
    rows = [(usage["where"], usage["typed"]) for usage in USAGES]
    assert len({*rows}) == len(rows) >= 30
    assert {usage["where"] for usage in USAGES} == {
        "a folder outside of git", "a repository without governance", "before the first commit", "main",
        "main without a git identity", "a detached HEAD", "the branch of another packet",
        "a subfolder", "uncommitted work", "work in review", "merged work", "a policy with approvals, and no key",
        "a start on its branch that is not committed", "a start that is not committed", "main, while work goes on",
        "main, while work is in review",
    }  # fmt: skip
