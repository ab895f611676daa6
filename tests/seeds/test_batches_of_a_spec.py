"""The second founding document, checkpoints of batches: its file with its keys, written and read as it says."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridges.scopes import Scoped, scoped
from workpacket.cli.main import main

TASKS = """\
tasks:
  - {id: T001, content: Add the model, status: completed, files: [src/model.py]}
  - {id: T002, content: Add the door, status: completed, files: [src/door.py]}
  - {id: T003, content: Add sessions, status: pending, files: [src/session.py]}
  - {id: T004, content: Add leaving, status: pending, files: [src/leave.py]}
"""
DEPENDENCIES = """\
dependencies:
  T003: [T002]
  T004: [T003]
"""
# The file of the document with other words: same keys, same order, same ways of writing.
CHECKPOINT = """\
checkpoint:
  # Metadata
  spec_name: auth
  spec_path: ./specs/active/auth
  branch: main
  timestamp: 2026-01-22T14:30:00Z

  # Progress
  last_batch: 2
  last_commit: {commit}

  # Task status summary
  tasks:
    completed:
      - id: T001
        name: "Add the model"
      - id: T002
        name: "Add the door"
    in_progress: []
    pending:
      - id: T003
        name: "Add sessions"
      - id: T004
        name: "Add leaving"

  # Next batch info
  next_batch:
    number: 3
    tasks:
      - id: T003
        name: "Add sessions"
        file: src/session.py
    parallel: false

  deferred_issues:
    - batch: 2
      severity: medium
      description: "Two names could say more"
      location: "src/door.py:45"

  # Review config for resumption
  review_config:
    reviewers:
      - openai/one
      - google/two
"""
PHASES = ("testers", "implementers", "reviewers")


@pytest.fixture
def scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scoped:
    """The repository of the document: two batches are done, the third comes next."""
    made = scoped(tmp_path, capsys)
    made.write("tasks.yaml", TASKS)
    made.write("dependencies.yaml", DEPENDENCIES)
    made.write("checkpoint.yaml", CHECKPOINT.format(commit=made.git("rev-parse", "--short=8", "HEAD").strip()))
    made.git("add", "-A")
    made.git("commit", "-qm", "two batches")
    return made


def resumed(scope: Scoped) -> str:
    scope.capture.readouterr()
    with chdir(scope.root):
        assert main(["resume"]) == 0
    return scope.capture.readouterr().out


def test_the_file_of_the_document_is_valid(scope: Scoped) -> None:
    with chdir(scope.root):
        main(["check", "specs", "--json"])
    findings = json.loads(scope.capture.readouterr().out)["findings"]
    assert [one for one in findings if one["severity"] == "error"] == []


def test_reading_gives_progress_next_batch_phase_and_deferred_issues(scope: Scoped) -> None:
    before = scope.text("checkpoint.yaml")
    scope.done("status", "auth")
    assert scope.said.splitlines() == [
        "auth: 2 of 4 tasks done, last batch 2",
        "next batch 3: T003",
        "deferred 1: medium, batch 2: Two names could say more (src/door.py:45)",
        "next: workpacket batch begin specs/active/auth",
    ]
    said = resumed(scope)
    assert "batch/specs/active/auth  batch 3: to begin: T003" in said
    assert "help: workpacket batch begin specs/active/auth" in said
    assert scope.text("checkpoint.yaml") == before


def test_the_pipeline_goes_on_with_the_three_phases_of_the_next_batch_and_its_reviewers(scope: Scoped) -> None:
    seen = []
    for phase in PHASES:
        scope.done("begin", "auth")
        seen += scope.status()["incomplete"]
        scope.done("complete", "auth", "--phase", phase)
    assert [(one["phase"], one.get("task") or one["reviewer"]) for one in seen] == [
        ("testers", "T003"), ("implementers", "T003"), ("reviewers", "openai/one"), ("reviewers", "google/two"),
    ]  # fmt: skip


@pytest.mark.parametrize("last", PHASES[1:])
def test_no_checkpoint_is_written_for_a_batch_before_all_three_phases_are_done(scope: Scoped, last: str) -> None:
    for phase in PHASES[: PHASES.index(last)]:
        scope.phase(phase)
    assert scope("complete", "auth") == 3
    assert "batch_phase_open" in scope.said
    assert scope.status()["view"]["last_batch"] == "2"


def test_issues_that_are_more_than_medium_have_to_be_resolved_first(scope: Scoped) -> None:
    scope.phases()
    assert scope("complete", "auth", "--defer", "high: a hole") == 3
    assert scope.git("rev-list", "--count", "HEAD").strip() == "2"


@pytest.fixture
def completed(scope: Scoped) -> tuple[Scoped, dict[str, Any]]:
    """The third batch is complete; what its checkpoint.yaml says then."""
    scope.phases()
    (scope.root / "src" / "session.py").write_text("session = 1\n")
    scope.done("complete", "auth", "--defer", "medium: one more name @ src/session.py:1")
    return scope, yaml.safe_load(scope.text("checkpoint.yaml"))["checkpoint"]


def test_a_completed_batch_writes_every_part_of_the_file(completed: tuple[Scoped, dict[str, Any]]) -> None:
    scope, written = completed
    assert list(written) == [
        "spec_name", "spec_path", "branch", "timestamp", "last_batch", "last_commit", "tasks", "next_batch",
        "deferred_issues", "review_config",
    ]  # fmt: skip
    assert (written["spec_name"], written["spec_path"]) == ("auth", "./specs/active/auth")
    assert str(written["last_batch"]) == "3"
    assert written["timestamp"].year >= 2026
    assert written["review_config"] == {"reviewers": ["openai/one", "google/two"]}
    assert written["tasks"]["in_progress"] == []
    groups = {name: [task["id"] for task in group] for name, group in written["tasks"].items()}
    assert groups == {"completed": ["T001", "T002", "T003"], "in_progress": [], "pending": ["T004"]}
    assert written["tasks"]["completed"][2] == {"id": "T003", "name": "Add sessions"}
    assert "  # Metadata\n" in scope.text("checkpoint.yaml")


def test_the_task_statuses_are_those_of_tasks_yaml(completed: tuple[Scoped, dict[str, Any]]) -> None:
    scope, written = completed
    tasks = {task["id"]: task["status"] for task in yaml.safe_load(scope.text("tasks.yaml"))["tasks"]}
    assert tasks == {"T001": "completed", "T002": "completed", "T003": "completed", "T004": "pending"}
    for status, group in written["tasks"].items():
        assert [tasks[task["id"]] for task in group] == [status] * len(group)
    assert scope.text("tasks.yaml") == TASKS.replace(
        "pending, files: [src/session.py]", "completed, files: [src/session.py]"
    )


def test_the_next_batch_follows_from_the_dependencies(completed: tuple[Scoped, dict[str, Any]]) -> None:
    following = completed[1]["next_batch"]
    assert str(following["number"]) == "4"
    assert [task["id"] for task in following["tasks"]] == ["T004"]
    assert following["tasks"][0]["name"] == "Add leaving"
    assert "src/leave.py" in str(following["tasks"][0])
    assert following["parallel"] is False


def test_deferred_issues_are_collected_and_carried_forward_until_one_is_resolved(
    completed: tuple[Scoped, dict[str, Any]],
) -> None:
    scope, written = completed
    assert [(str(one["batch"]), one["severity"], one["location"]) for one in written["deferred_issues"]] == [
        ("2", "medium", "src/door.py:45"), ("3", "medium", "src/session.py:1"),
    ]  # fmt: skip
    scope.phases()
    scope.done("complete", "auth", "--resolved", "1")
    left = yaml.safe_load(scope.text("checkpoint.yaml"))["checkpoint"]
    assert [str(one["batch"]) for one in left["deferred_issues"]] == ["3"]
    assert left["next_batch"] is None


def test_the_checkpoint_is_committed_with_its_batch_and_names_the_commit_before(
    completed: tuple[Scoped, dict[str, Any]],
) -> None:
    scope, written = completed
    assert scope.git("show", "--format=", "--name-only", "HEAD").split() == [
        "specs/active/auth/checkpoint.yaml", "specs/active/auth/tasks.yaml", "src/session.py",
    ]  # fmt: skip
    assert scope.git("rev-parse", "HEAD^").strip() == written["last_commit"]
    assert scope.git("branch", "--show-current").strip() == written["branch"]


def test_a_commit_of_digits_stays_text(scope: Scoped) -> None:
    scope.write("checkpoint.yaml", CHECKPOINT.format(commit="12345678"))
    assert scope.status()["view"]["last_commit"] == "12345678"
    scope.write("checkpoint.yaml", CHECKPOINT.format(commit="01234567"))
    assert scope.status()["view"]["last_commit"] == "01234567"


def test_the_skill_that_reads_checkpoints_is_written_by_init(scope: Scoped) -> None:
    with chdir(scope.root):
        assert main(["init", "--skills"]) == 0
    skill = (scope.root / ".agents" / "skills" / "task-continue" / "SKILL.md").read_text("utf-8")
    for word in ("batch status", "batch begin", "batch complete", "--phase", "--defer"):
        assert word in skill
