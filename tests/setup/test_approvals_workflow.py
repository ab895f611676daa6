"""The workflow that judges a change comes from the base, holds no secret, and runs no code of the change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from git.scratch import commit, git, make_repository

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "approvals.yml"


STARTER = WORKFLOW.parents[2] / "tools" / "workpacket" / "starter" / "workflow.yml"
COMPARED = 'test "$(git rev-parse HEAD^1) $(git rev-parse HEAD^2)" = "$BASE $HEAD"'


@pytest.mark.parametrize(("base", "head", "status"), [("one", "two", 0), ("two", "one", 1), ("one", "one", 1)])
def test_a_merge_of_other_commits_is_not_judged(base: str, head: str, status: int, tmp_path: Path) -> None:
    """The place of the merge on the host may have moved on since the event."""
    root = tmp_path / "repository"
    make_repository(root)
    commit(root, "one")
    git(root, "switch", "--quiet", "--create", "topic")
    commit(root, "two")
    git(root, "switch", "--quiet", "main")
    git(root, "merge", "--quiet", "--no-ff", "--message", "merged", "topic")
    commits = {"one": git(root, "rev-parse", "HEAD^1"), "two": git(root, "rev-parse", "topic")}
    environment = {**os.environ, "BASE": commits[base], "HEAD": commits[head]}
    done = subprocess.run(["bash", "-e", "-c", COMPARED], cwd=root, env=environment, check=False)
    assert done.returncode == status


def test_the_one_that_init_writes_compares_too_and_runs_as_the_base_has_it() -> None:
    written: dict[Any, Any] = yaml.safe_load(STARTER.read_text("utf-8"))
    assert list(written[True]) == ["push", "pull_request_target"]
    assert COMPARED in [step.get("run") for step in written["jobs"]["check"]["steps"]]


@pytest.fixture
def workflow() -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    return loaded


def test_it_runs_as_the_base_has_it(workflow: dict[Any, Any]) -> None:
    assert list(workflow[True]) == ["pull_request_target"]  # YAML 1.1 reads `on` as true


def test_it_can_only_read(workflow: dict[Any, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in WORKFLOW.read_text("utf-8")
    checkouts = [step["with"] for step in workflow["jobs"]["verify"]["steps"] if "checkout" in step.get("uses", "")]
    assert [each["persist-credentials"] for each in checkouts] == [False, False]


def test_what_runs_is_installed_from_the_base_and_only_reads_the_change(workflow: dict[Any, Any]) -> None:
    steps = [step for step in workflow["jobs"]["verify"]["steps"] if "run" in step]
    assert [step["run"] for step in steps] == [
        "python -m pip install ./base",
        COMPARED,
        'workpacket check --base "$BASE"',
    ]
    assert "${{" not in "".join(step["run"] for step in steps)
