"""Our workflows, the one that others call and the one that `init` writes: linted, and their steps run for real."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from architecture.source_tree import ROOT
from docs.workflow_rules import faults
from shell.approvals.test_tutorial import environment_of
from workpacket.cli.main import load
from workpacket.cli.options import parse
from workpacket.report.pull_request import MARK

STARTER = ROOT / "tools" / "workpacket" / "starter" / "workflow.yml"
CALLED = ROOT / ".github" / "workflows" / "govern.yml"
REPLAY = STARTER.with_name("replay.yml")
WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), STARTER, REPLAY]
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
