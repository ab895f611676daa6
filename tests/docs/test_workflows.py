"""Our workflows, the one that others call and the one that `init` writes: linted, and their steps run for real."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.test_sigstore import statement, story
from architecture.source_tree import ROOT
from docs.workflow_rules import faults
from ledger.stories import COMMIT
from shell.approvals.test_tutorial import environment_of
from workpacket.cli.main import load
from workpacket.cli.options import parse
from workpacket.report.pull_request import MARK

STARTER = ROOT / "tools" / "workpacket" / "starter" / "workflow.yml"
CALLED = ROOT / ".github" / "workflows" / "govern.yml"
REPLAY = STARTER.with_name("replay.yml")
ATTEST = STARTER.with_name("attest.yml")
WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), STARTER, REPLAY, ATTEST]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_fault(path: Path) -> None:
    assert list(faults(path.name, path.read_text("utf-8"))) == []


SOUND = STARTER.read_text("utf-8")
PLANTED = {
    "duplicate key": ("name: workpacket\n", "name: workpacket\nname: other\n"),
    "no permissions": ("permissions: {}\n", ""),
    "all permissions": ("permissions: {}\n", "permissions: write-all\n"),
    "too much": ("contents: read", "contents: write"),
    "one more": ("contents: read", "contents: read\n      id-token: write"),
    "branch": ("actions/setup-python@v5", "actions/setup-python@main"),
    "no version": ("actions/setup-python@v5", "actions/setup-python"),
    "minor version": ("actions/setup-python@v5", "actions/setup-python@v5.1"),
    "token kept": ("persist-credentials: false", "persist-credentials: true"),
    "token kept by default": ("          persist-credentials: false\n", ""),
    "pasted": ('-- "$WORKPACKET"', "-- ${{ inputs.workpacket }}"),
    "title": ('WORKPACKET: "{workpacket}"', "WORKPACKET: ${{ github.event.pull_request.title }}"),
    "branch name": ('WORKPACKET: "{workpacket}"', "WORKPACKET: ${{ github.head_ref }}"),
    "secret": ('WORKPACKET: "{workpacket}"', "WORKPACKET: ${{ secrets.TOKEN }}"),
    "hidden among others": ('WORKPACKET: "{workpacket}"', "WORKPACKET: ${{ inputs.a || github.event.comment.body }}"),
    "rights of the base": ('-- "$WORKPACKET"', "./change"),
    "a script of the change": ("run: test ", "run: ./test && test "),
    "a token that writes beside the change": ("security-events: write", "pull-requests: write"),
    "the job that comments checks out": ("actions/download-artifact@v4", "actions/checkout@v4"),
    "the job that comments does more": ("pull-requests: write", "pull-requests: write\n      contents: write"),
    "no limit": ("    timeout-minutes: 10\n", ""),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    old, new = PLANTED[name]
    assert SOUND.count(old) >= 1
    assert list(faults("workpacket.yml", SOUND.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("actions/setup-python@v5", "actions/checkout@v4"),
        ("contents: read", "contents: write"),
        ("actions: read", "actions: read\n      attestations: write"),
        ("github.event.workflow_run.head_sha", "github.event.workflow_run.head_branch"),
        ('gh run download "$RUN"', "gh run download ${{ github.event.workflow_run.id }}"),
        ("@6f9f17788090df1f26f669e9d70d6ae9567deba6", "@main"),
    ],
)
def test_a_planted_fault_of_the_workflow_that_attests_is_found(old: str, new: str) -> None:
    sound = ATTEST.read_text("utf-8")
    assert sound.count(old) >= 1
    assert list(faults("workpacket-attest.yml", sound.replace(old, new, 1)))


def script_of(path: Path, job: str, name: str) -> str:
    listed = yaml.safe_load(path.read_text("utf-8"))["jobs"][job]["steps"]
    return str(next(step["run"] for step in listed if step.get("name") == name))


def with_program(folder: Path, name: str, text: str) -> str:
    """The PATH with a program of this name before all others: nothing here was run on GitHub."""
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)
    return f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"


REPLAY_PATH = ".github/workflows/workpacket-replay.yml"


@pytest.mark.parametrize(
    ("here", "there", "workflow", "status"),
    [
        ("a1", "a1", f"{REPLAY_PATH}@refs/pull/7/merge", 0),
        ("a1", "b2", REPLAY_PATH, 1),
        ("", "", REPLAY_PATH, 1),
        ("a1", "", REPLAY_PATH, 1),
        ("a1", "a1", ".github/workflows/other.yml@refs/pull/7/merge", 1),
    ],
)
def test_what_another_workflow_replayed_is_not_attested(
    tmp_path: Path, here: str, there: str, workflow: str, status: int
) -> None:
    gh = f'#!/bin/sh\ncase "$*" in *ref=BASE*) echo {here} ;; *ref=HEAD*) echo {there} ;; *) exit 3 ;; esac\n'
    given = {
        "PATH": with_program(tmp_path, "gh", gh), "GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "BASE", "HEAD": "HEAD",
        "REPLAY": REPLAY_PATH, "WORKFLOW": workflow,
    }  # fmt: skip
    script = script_of(ATTEST, "attest", "Compare the replay's workflow in the change with the one on this branch")
    done = subprocess.run(["bash", "-e", "-c", script], env={**os.environ, **given}, check=False)
    assert done.returncode == status


COSIGN = """#!{python}
import json, pathlib, sys
sys.path[:0] = {path}
from approvals.authority import Ci
given = dict(zip(sys.argv[3::2], sys.argv[4::2]))
assert sys.argv[1:3] == ["attest-blob", "--yes"]
bundle = Ci().bundle(pathlib.Path(given["--statement"]).read_bytes())
pathlib.Path(given["--bundle"]).write_text(json.dumps(bundle))
"""


def test_each_statement_of_a_replay_and_nothing_else_is_attested(tmp_path: Path) -> None:
    path = with_program(tmp_path, "cosign", COSIGN.format(python=sys.executable, path=sys.path))
    script = script_of(ATTEST, "attest", "Attest")
    (tmp_path / "replay").mkdir()

    def run() -> int:
        shutil.rmtree(tmp_path / "attestations", ignore_errors=True)
        words = ["bash", "-e", "-c", script]
        return subprocess.run(words, cwd=tmp_path, env={**os.environ, "PATH": path}, check=False).returncode

    (tmp_path / "replay" / "replayed.txt").write_text("today")
    assert run() == 0
    told = story()
    (tmp_path / "replay" / f"{told.packet}.json").write_bytes(statement(told))
    assert run() == 0
    attested = json.loads((tmp_path / "attestations" / f"{told.packet}.json").read_bytes())
    assert attested["commit"] == COMMIT
    (tmp_path / "replay" / f"{told.packet}.json").write_text('{"predicateType": "https://slsa.dev/provenance/v1"}')
    assert run() == 1
    assert not list((tmp_path / "attestations").iterdir())


def steps(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text("utf-8"))["jobs"]["check"]["steps"]
    return found


def test_the_one_that_others_call_does_what_the_one_does_that_they_copy() -> None:
    called, copied = steps(CALLED), steps(STARTER)
    for step in (*called, *copied):
        step.pop("env", None)
    assert called == copied


def test_the_check_step_does_what_it_is_there_for(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)
    script = next(step["run"] for step in steps(STARTER) if step.get("name") == "Check")

    def run(text: str, base: str = "") -> int:
        # As the runner calls it.
        command = ["bash", "--noprofile", "--norc", "-e", "-c", text]
        done = subprocess.run(command, cwd=tmp_path, env=environment | {"BASE": base}, check=False, capture_output=True)
        return done.returncode

    assert run("git init --quiet --initial-branch=main && git config user.name ann && git config user.email a@b.c") == 0
    assert run("workpacket init && git add . && git commit --quiet -m begin") == 0
    assert run(script) == 0
    assert run(script, base="main") == 0
    (tmp_path / ".GOV/roles_shared/SPEC_CURRENT.md").write_text("# Nothing\n", "utf-8")
    assert run(script) == 1
    assert run(script, base="main; touch pwned") != 0
    assert not (tmp_path / "pwned").exists()
    assert run(script) == 1
    report = json.loads((tmp_path / "workpacket.sarif").read_text("utf-8"))
    assert [one["ruleId"] for one in report["runs"][0]["results"]] == ["field_missing"]


GH = """#!/bin/sh
case "$*" in
*--jq*) cat old-comments; exit 0 ;;
esac
printf '%s\\n' "$@" >> called
"""


@pytest.mark.parametrize(
    ("old", "wanted"),
    [
        ("", "api --silent repos/o/r/issues/7/comments --field body=@workpacket.md"),
        ("41\n42\n", "api --silent --method PATCH repos/o/r/issues/comments/41 --field body=@workpacket.md"),
    ],
)
def test_the_comment_is_created_once_and_then_edited(tmp_path: Path, old: str, wanted: str) -> None:
    """The host is played by a program of its client's name; nothing here was run on GitHub."""
    steps = yaml.safe_load(STARTER.read_text("utf-8"))["jobs"]["comment"]["steps"]
    (tmp_path / "old-comments").write_text(old)
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(GH)
    program.chmod(0o755)
    given = {"PATH": f"{program.parent}:{os.environ['PATH']}", "GITHUB_REPOSITORY": "o/r", "NUMBER": "7"}
    subprocess.run(["bash", "-e", "-c", steps[1]["run"]], cwd=tmp_path, env={**os.environ, **given}, check=True)
    assert (tmp_path / "called").read_text().split() == wanted.split()


def test_the_mark_of_the_comment_is_the_one_that_the_command_writes() -> None:
    assert all(MARK in path.read_text("utf-8") for path in (STARTER, CALLED))


# --- hooks


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_is_a_command_line_that_parses(hook: dict[str, Any]) -> None:
    program, name, *words = hook["entry"].split()
    assert program == "workpacket"
    command = load(name)
    parse(command, [*words, *(["a.md", "b.md"] if hook.get("pass_filenames", True) else [])])
    assert not hook.get("pass_filenames", True) or command.arguments.endswith("...]")


@pytest.mark.parametrize(
    ("path", "wanted"),
    [("justfile", True), (".justfile", True), ("sub/justfile", True), (".GOV/gov.just", True), ("justfile.md", False),
     ("adjustfile", False)],
)  # fmt: skip
def test_the_hook_for_justfiles_sees_justfiles(path: str, wanted: bool) -> None:
    hook = next(hook for hook in HOOKS if hook["id"] == "workpacket-lint-justfile")
    assert bool(re.search(hook["files"], path)) == wanted
