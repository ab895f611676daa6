"""The second founding document, checkpoints of batches: its file with its keys, written and read as it says."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from corpora.seeds.governed import Prepared
from corpora.seeds.user import PATIENCE, Repository, new_repository, ran

pytestmark = pytest.mark.share(3)

FOLDER = "specs/active/auth"
CHECKPOINT, TASKS, DEPENDENCIES = (f"{FOLDER}/{name}.yaml" for name in ("checkpoint", "tasks", "dependencies"))
THE_TASKS = """\
tasks:
  - {id: T001, content: Add the model, status: completed, files: [src/model.py]}
  - {id: T002, content: Add the door, status: completed, files: [src/door.py]}
  - {id: T003, content: Add sessions, status: pending, files: [src/session.py]}
  - {id: T004, content: Add leaving, status: pending, files: [src/leave.py]}
"""
THE_DEPENDENCIES = """\
edges:
  T003: [T002]
  T004: [T003]
"""
# The file of the document with other words: same keys, same order, same ways of writing.
THE_CHECKPOINT = """\
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


class Scope(Repository):
    """The repository of the document: two batches are done, the third comes next."""

    def status(self) -> dict[str, Any]:
        return self.json("runtime", "batch", "status", "auth")

    def phases(self, *names: str) -> None:
        for name in names or PHASES:
            self.done("runtime", "batch", "begin", "auth")
            self.done("runtime", "batch", "complete", "auth", "--phase", name)

    def complete(self, *words: str) -> dict[str, Any]:
        """Finish a batch; what its checkpoint says then."""
        self.done("runtime", "batch", "complete", "auth", *words)
        return self.checkpoint()

    def checkpoint(self) -> dict[str, Any]:
        written: dict[str, Any] = yaml.safe_load(self.read(CHECKPOINT))["checkpoint"]
        return written

    def commits(self) -> int:
        return int(self.git("rev-list", "--count", "HEAD"))


def two_batches_done(root: Path) -> None:
    made = new_repository(root)
    first = made.commit("one", {TASKS: THE_TASKS, DEPENDENCIES: THE_DEPENDENCIES})
    made.commit("two batches", {CHECKPOINT: THE_CHECKPOINT.format(commit=first[:8])})


def third_batch_judged(root: Path) -> None:
    two_batches_done(root)
    Scope(root).phases()
    Scope(root).write("src/session.py", "session = 1\n")


@pytest.fixture
def scope(prepared: Prepared, tmp_path: Path) -> Scope:
    prepared.copy(two_batches_done, tmp_path)
    return Scope(tmp_path)


@pytest.fixture
def judged(prepared: Prepared, tmp_path: Path) -> Scope:
    """The three phases of the third batch are done."""
    prepared.copy(third_batch_judged, tmp_path)
    return Scope(tmp_path)


# ---- the file ------------------------------------------------------------------------------------------------------


def test_the_checkpoint_of_a_spec_lies_in_its_folder_below_specs_active(judged: Scope) -> None:
    assert "specs/active/auth" in judged.done("runtime", "batch", "next", "auth").out + judged.done("resume").out
    judged.complete()
    changed = judged.git("show", "--format=", "--name-only", "HEAD").split()
    assert [path for path in changed if "checkpoint" in path] == ["specs/active/auth/checkpoint.yaml"]


@pytest.mark.parametrize("commit", ["a1b2c3d4", "12345678", "01234567"])
def test_a_file_as_the_document_shows_it_is_read_and_a_commit_that_is_unknown_stops_it(
    scope: Scope, commit: str
) -> None:
    assert scope("check", "specs", "--json").errors() == []
    scope.write(CHECKPOINT, THE_CHECKPOINT.format(commit=commit))
    before = scope.read(CHECKPOINT)
    assert scope.status()["view"]["last_commit"] == commit
    assert scope("runtime", "batch", "begin", "auth").status == 64
    assert "git_diverged" in scope("resume").text
    assert scope.read(CHECKPOINT) == before
    scope.done("runtime", "batch", "begin", "auth", "--accept", "commit")


def test_a_checkpoint_says_which_spec_it_is_of_where_it_lies_on_which_branch_and_when(judged: Scope) -> None:
    judged.git("switch", "--quiet", "--create", "feat/auth")
    judged.done("runtime", "batch", "complete", "auth", "--accept", "branch")
    written = judged.checkpoint()
    assert list(written)[:4] == ["spec_name", "spec_path", "branch", "timestamp"]
    assert (written["spec_name"], written["spec_path"], written["branch"]) == (
        "auth",
        "./specs/active/auth",
        "feat/auth",
    )
    assert "  timestamp: 2026-01-22T14:30:00Z" not in judged.read(CHECKPOINT)
    assert written["timestamp"].year >= 2026


def test_the_tasks_of_a_checkpoint_are_grouped_by_status_with_id_and_name(judged: Scope) -> None:
    written = judged.complete()["tasks"]
    assert written == {
        "completed": [
            {"id": "T001", "name": "Add the model"}, {"id": "T002", "name": "Add the door"},
            {"id": "T003", "name": "Add sessions"},
        ],
        "in_progress": [],
        "pending": [{"id": "T004", "name": "Add leaving"}],
    }  # fmt: skip


def test_the_next_batch_names_its_tasks_and_says_whether_they_are_parallel(scope: Scope) -> None:
    scope.write(TASKS, THE_TASKS + "  - {id: T005, content: Add a bell, status: pending, files: [src/bell.py]}\n")
    scope.write(DEPENDENCIES, THE_DEPENDENCIES + "  T005: [T003]\n")
    scope.commit("another task")
    scope.phases()
    following = scope.complete("--accept", "tasks")["next_batch"]
    assert following["number"] == 4
    assert [(task["id"], task["name"]) for task in following["tasks"]] == [
        ("T004", "Add leaving"), ("T005", "Add a bell"),
    ]  # fmt: skip
    assert following["parallel"] is True


def test_a_deferred_issue_has_severity_description_and_location(judged: Scope) -> None:
    written = judged.complete("--defer", "medium: one more name @ src/session.py:1")["deferred_issues"]
    assert {name: written[-1][name] for name in ("severity", "description", "location")} == {
        "severity": "medium", "description": "one more name", "location": "src/session.py:1",
    }  # fmt: skip


def test_the_reviewers_of_the_review_config_are_those_who_review(scope: Scope) -> None:
    scope.phases("testers", "implementers")
    scope.done("runtime", "batch", "begin", "auth")
    assert [one["reviewer"] for one in scope.status()["incomplete"]] == ["openai/one", "google/two"]
    scope.done("runtime", "batch", "complete", "auth", "--phase", "reviewers")
    assert scope.complete()["review_config"] == {"reviewers": ["openai/one", "google/two"]}


# ---- writing -------------------------------------------------------------------------------------------------------


def test_no_batch_is_complete_before_all_three_phases_are_done(scope: Scope) -> None:
    for phase in PHASES:
        scope.done("runtime", "batch", "begin", "auth")
        assert "batch_phase_open" in scope.refused("runtime", "batch", "complete", "auth")
        scope.phases(phase)
    assert scope.complete()["last_batch"] == 3


def test_a_batch_with_an_issue_that_is_more_than_medium_is_not_complete(judged: Scope) -> None:
    assert "batch_issue_not_deferrable" in judged.refused(
        "runtime", "batch", "complete", "auth", "--defer", "high: a hole"
    )
    assert judged.commits() == 2
    judged.complete("--defer", "medium: a scratch")


def test_the_statuses_of_a_checkpoint_are_read_from_tasks_yaml_as_it_is_then(judged: Scope) -> None:
    judged.replace(TASKS, ("leaving, status: pending", "leaving, status: completed"))
    written = judged.complete("--accept", "tasks")["tasks"]
    assert [(task["id"], task["name"]) for task in written["completed"]] == [
        ("T001", "Add the model"), ("T002", "Add the door"), ("T003", "Add sessions"), ("T004", "Add leaving"),
    ]  # fmt: skip
    assert written["pending"] == []


def test_deferred_issues_are_collected_under_the_number_of_their_batch(judged: Scope) -> None:
    written = judged.complete("--defer", "medium: a name", "--defer", "low: a blank")["deferred_issues"]
    assert [(one["batch"], one["severity"], one["description"]) for one in written] == [
        (2, "medium", "Two names could say more"), (3, "medium", "a name"), (3, "low", "a blank"),
    ]  # fmt: skip


def test_a_completed_batch_writes_the_checkpoint_with_every_part_of_it_and_keeps_comments(judged: Scope) -> None:
    written = judged.complete()
    assert list(written) == [
        "spec_name", "spec_path", "branch", "timestamp", "last_batch", "last_commit", "tasks", "next_batch",
        "deferred_issues", "review_config",
    ]  # fmt: skip
    assert written["last_batch"] == 3
    assert judged.git("rev-parse", "HEAD^").startswith(written["last_commit"])
    assert "  # Metadata\n" in judged.read(CHECKPOINT)


@pytest.mark.share(2)
@pytest.mark.parametrize("hook", ["pre-commit", "post-commit"])
def test_a_batch_has_one_commit_wherever_the_process_is_killed(judged: Scope, hook: str) -> None:
    """git calls the hook, and the command that called git is the parent of both."""
    script = judged.root / ".git" / "hooks" / hook
    script.parent.mkdir(exist_ok=True)
    script.write_text('#!/bin/sh\nrm "$0"\nkill -9 $(ps -o ppid= -p $PPID)\n')
    script.chmod(0o755)
    killed = ran(judged.root, "workpacket", "batch", "complete", "auth")
    assert killed.status == -signal.SIGKILL, killed
    ends = time.monotonic() + PATIENCE  # git goes on with what it was told to do
    while judged.commits() < 3 or (judged.root / ".git" / "index.lock").exists():
        assert time.monotonic() < ends
        time.sleep(0.01)
    for _ in range(2):
        judged("runtime", "batch", "complete", "auth")
    assert judged.commits() == 3
    assert judged.git("log", "-1", "--format=%(trailers:key=Batch-Id,valueonly)")
    assert judged.checkpoint()["last_batch"] == 3
    assert judged.git("status", "--porcelain") == ""


# ---- reading -------------------------------------------------------------------------------------------------------


def test_the_skill_task_continue_says_how_to_read_a_checkpoint_which_a_fresh_clone_can_do(
    scope: Scope, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scope.done("init", "--skills")
    skill = scope.read(".agents/skills/task-continue/SKILL.md")
    for word in ("batch status", "batch begin", "batch complete", "--phase", "--defer"):
        assert word in skill
    clone = Repository(tmp_path_factory.mktemp("clone"))
    clone.git("clone", "--quiet", str(scope.root), ".")
    assert clone.done("runtime", "batch", "status", "auth").out.splitlines() == [
        "auth: 2 of 4 tasks done, last batch 2",
        "next batch 3: T003",
        "deferred 1: medium, batch 2: Two names could say more (src/door.py:45)",
        "next: workpacket runtime batch begin specs/active/auth",
    ]
    assert "help: workpacket runtime batch begin specs/active/auth" in clone.done("resume").out


def test_the_pipeline_of_a_batch_is_resumed_in_the_phase_where_it_stopped(scope: Scope) -> None:
    seen = []
    for phase in PHASES:
        scope.done("runtime", "batch", "begin", "auth")
        before = scope.status()["incomplete"]
        scope.done("runtime", "batch", "begin", "auth")
        assert scope.status()["incomplete"] == before
        seen += [(one["phase"], one.get("task") or one["reviewer"]) for one in before]
        scope.done("runtime", "batch", "complete", "auth", "--phase", phase)
    assert seen == [
        ("testers", "T003"), ("implementers", "T003"), ("reviewers", "openai/one"), ("reviewers", "google/two"),
    ]  # fmt: skip


def test_deferred_issues_are_carried_forward_until_one_is_resolved(judged: Scope) -> None:
    carried = judged.complete("--defer", "medium: one more name @ src/session.py:1")["deferred_issues"]
    assert [one["description"] for one in carried] == ["Two names could say more", "one more name"]
    judged.phases()
    left = judged.complete("--resolved", "1")
    assert [(one["batch"], one["description"]) for one in left["deferred_issues"]] == [(3, "one more name")]
    assert left["next_batch"] is None


def test_a_completed_batch_changes_the_statuses_in_tasks_yaml_and_no_other_byte(judged: Scope) -> None:
    judged.complete()
    assert judged.read(TASKS) == THE_TASKS.replace("sessions, status: pending", "sessions, status: completed")


# ---- what a careful reader of the document found missing -----------------------------------------------------------


def test_numbers_of_batches_stay_integers_and_labels_stay_text(judged: Scope) -> None:
    written = judged.complete("--defer", "medium: one more name")
    numbers = [written["last_batch"], written["next_batch"]["number"], *(one["batch"] for one in
                                                                         written["deferred_issues"])]  # fmt: skip
    assert [(number, type(number)) for number in numbers] == [(3, int), (4, int), (2, int), (3, int)]
    assert 'last_batch: "' not in judged.read(CHECKPOINT)
    judged.done("runtime", "batch", "begin", "auth", "--label", "4a")
    assert judged.checkpoint()["next_batch"]["number"] == "4a"


def test_last_commit_is_the_commit_on_which_the_batch_was_built_as_long_as_people_write_it(judged: Scope) -> None:
    before = judged.git("rev-parse", "HEAD")
    written = judged.complete()
    assert written["last_commit"] == before[:8]
    judged.phases()
    again = judged.git("rev-parse", "HEAD")
    assert judged.complete()["last_commit"] == again[:8]


def test_the_tasks_of_a_checkpoint_mirror_tasks_yaml_during_a_batch_too(scope: Scope) -> None:
    scope.done("runtime", "batch", "begin", "auth")
    assert [one["id"] for one in scope.checkpoint()["tasks"]["in_progress"]] == ["T003"]
    assert scope.read(TASKS) == THE_TASKS.replace("sessions, status: pending", "sessions, status: in_progress")
    assert scope("check", "specs", "--json").errors() == []
    scope.phases("testers")
    assert scope.status()["stale"] == []


def test_what_people_wrote_about_the_tasks_of_the_next_batch_survives_its_beginning(scope: Scope) -> None:
    scope.replace(TASKS, (", files: [src/session.py]", ""))
    scope.replace(CHECKPOINT, ("        file: src/session.py\n", "        file: src/session.py\n        owner: ann\n"))
    scope.commit("only the checkpoint names the file")
    scope.done("runtime", "batch", "begin", "auth")
    assert scope.checkpoint()["next_batch"]["tasks"] == [
        {"id": "T003", "name": "Add sessions", "file": "src/session.py", "owner": "ann"}
    ]


def test_each_committed_checkpoint_has_the_keys_of_the_document_only(judged: Scope) -> None:
    judged.git("switch", "--quiet", "--create", "feat/auth")
    judged.done("runtime", "batch", "complete", "auth", "--accept", "branch")
    judged.phases()
    judged.complete()
    keys = {*yaml.safe_load(THE_CHECKPOINT)["checkpoint"]}
    for commit in ("HEAD", "HEAD^", "HEAD~2"):
        assert {*yaml.safe_load(judged.git("show", f"{commit}:{CHECKPOINT}"))["checkpoint"]} == keys, commit


WAYS = {
    "edges": "edges:\n  T003: [T004]\n",
    "mapping": "dependencies:\n  T003: [T004]\n",
    "of mappings": "dependencies:\n  T003: {depends_on: [T004]}\n",
    "flat": "T003: [T004]\nT004: []\n",
    "list": "tasks:\n  - {id: T003, depends_on: [T004]}\n  - {id: T004, depends_on: []}\n",
    "phases": "phases:\n  - id: core\n    tasks:\n      - {id: T003, depends_on: [T004]}\n      - {id: T004}\n",
    "batches": "batches:\n  - {batch: 3, tasks: [T004]}\n  - {batch: 4, tasks: [T003]}\n",
    "nodes": "nodes:\n  - {id: T003, depends_on: T004}\n  - {id: T004}\n",
}


def test_the_next_batch_follows_from_dependencies_yaml_however_it_is_written(scope: Scope) -> None:
    for way, text in WAYS.items():
        scope.write(DEPENDENCIES, text)
        assert scope.json("runtime", "batch", "next", "auth")["batch"]["tasks"] == ["T004"], way
        if way == "batches":
            continue  # an order cannot contradict itself
        scope.write(DEPENDENCIES, text.replace("T004: []", "T004: [T003]").replace(
            "T004, depends_on: []", "T004, depends_on: [T003]").replace("id: T004}", "id: T004, depends_on: [T003]}")
            .replace("  T003: [T004]", "  T003: [T004]\n  T004: [T003]")
            .replace("{depends_on: [T004]}\n", "{depends_on: [T004]}\n  T004: {depends_on: [T003]}\n"))  # fmt: skip
        assert "batch_dependencies_cycle" in scope("check", "--json").codes, way
        scope.write(DEPENDENCIES, text.replace("T004", "T099"))
        assert "batch_dependencies_task_unknown" in scope("check", "--json").codes, way
    for nonsense in ("dependencies: later\n", "order: {T003: after T004}\n", "- T003\n"):
        scope.write(DEPENDENCIES, nonsense)
        found = [(one["path"], one["line"]) for one in scope("check", "specs", "--json").answer["findings"]]
        assert (DEPENDENCIES, 1) in found, nonsense


TEMPLATE = """\
phases:
  - id: core
    name: Core
    tasks:
      - {id: T003, file: src/session.py, depends_on: [T002]}
      - {id: T004, file: src/leave.py, depends_on: [T002]}
batches:
  - batch: 3
    tasks: [T003, T004]
actions: []
"""


@pytest.fixture
def templated(scope: Scope) -> Scope:
    """Files as the author's own template has them: only dependencies.yaml names files and dependencies."""
    plain = "".join(line.partition(", files:")[0].rstrip("}\n") + "}\n" for line in THE_TASKS.splitlines()[1:])
    begin, _, end = scope.read(CHECKPOINT).partition("  next_batch:\n")
    checkpoint = f"{begin}  next_batch:\n\n  deferred_issues:{end.partition('deferred_issues:')[2]}"
    scope.commit("template", {TASKS: f"tasks:\n{plain}", DEPENDENCIES: TEMPLATE, CHECKPOINT: checkpoint})
    return scope


def test_dependencies_that_only_their_own_file_states_are_correct(templated: Scope) -> None:
    assert templated("check", "--json").errors() == []
    assert templated.json("runtime", "batch", "next", "auth")["batch"]["tasks"] == ["T003", "T004"]
    templated.replace(TASKS, ("leaving, status: pending", "leaving, status: pending, depends_on: [T001]"))
    assert "batch_dependencies_disagree" in templated("check", "--json").codes


def test_files_that_dependencies_yaml_names_are_in_the_commit_of_their_batch(templated: Scope) -> None:
    following = templated.json("runtime", "batch", "next", "auth")["batch"]
    assert (following["tasks"], following["parallel"]) == (["T003", "T004"], True)
    templated.phases()
    templated.write("src/session.py", "session = 1\n")
    templated.write("src/leave.py", "leave = 1\n")
    templated.complete()
    changed = templated.git("show", "--format=", "--name-only", "HEAD").split()
    assert {"src/session.py", "src/leave.py"} < set(changed)
    assert templated.git("status", "--porcelain") == ""
