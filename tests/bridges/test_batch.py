"""Batches on the command line: three phases, crashes in each, and everything that is not as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.scopes import TASKS, Scoped, scoped
from workpacket.bridges.batch_facts import BatchBridge
from workpacket.bridges.batch_state import label_after
from workpacket.bridges.foreign import Foreign
from workpacket.text.yaml_edit import CannotEdit


@pytest.fixture
def scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scoped:
    return scoped(tmp_path, capsys)


def test_a_batch_goes_through_its_phases_and_is_committed_with_both_files(scope: Scoped) -> None:
    scope.phases()
    (scope.root / "src" / "a.py").write_text("a = 1\n")
    (scope.root / "else").write_text("not of the batch\n")
    parent = scope.git("rev-parse", "HEAD").strip()
    scope.done("complete", "auth", "--defer", "medium: names @ src/a.py:4")
    assert scope.git("show", "--format=", "--name-only", "HEAD").split() == [
        "specs/active/auth/checkpoint.yaml", "specs/active/auth/tasks.yaml", "src/a.py",
    ]  # fmt: skip
    assert "not included in the commit: else" in scope.said
    assert scope.text("tasks.yaml") == TASKS.replace("pending", "completed", 2)
    view = scope.status()["view"]
    assert view["last_commit"] == parent
    assert view["last_batch"] == "1"
    assert view["groups"] == {"completed": ["T001", "T002"], "in_progress": [], "pending": ["T003"]}
    assert view["next"] == {"label": "2", "tasks": ["T003"], "parallel": False}
    assert view["deferred"] == [
        {"batch": "1", "severity": "medium", "description": "names", "location": "src/a.py:4"}
    ]  # fmt: skip


# ---- where a stalled run of the prior art resumes in the wrong phase -----------------------------------------------


def test_after_a_failed_verification_the_work_goes_on_in_its_phase(scope: Scoped) -> None:
    scope.phase("testers")
    scope.done("begin", "auth")
    scope.done("complete", "auth", "--phase", "implementers", "--task", "T001")
    scope.done("complete", "auth", "--phase", "implementers", "--task", "T002", "--outcome", "failed")
    scope.done("begin", "auth")
    assert scope.status()["incomplete"] == [{"phase": "implementers", "task": "T002", "state": "begun"}]


def test_after_a_rejected_review_the_implementers_go_on_and_everybody_reviews_again(scope: Scoped) -> None:
    scope.phase("testers")
    scope.phase("implementers")
    scope.done("begin", "auth")
    scope.done("complete", "auth", "--phase", "reviewers", "--outcome", "rejected", "--task", "T002")
    assert scope.status()["incomplete"] == [{"phase": "implementers", "task": "T002", "state": "rejected"}]
    scope.phase("implementers")
    assert scope.status()["phase"] == "reviewers"
    assert scope("complete", "auth") == 3
    assert "batch_phase_open" in scope.said


def test_a_second_batch_begins_with_its_testers(scope: Scoped) -> None:
    scope.phases()
    scope.done("complete", "auth")
    scope.done("begin", "auth")
    status = scope.status()
    assert status["phase"] == "testers"
    assert status["incomplete"] == [{"phase": "testers", "task": "T003", "state": "begun"}]


# ---- parallel work, time-outs, order -------------------------------------------------------------------------------


def test_of_parallel_work_only_what_did_not_end_is_begun_again(scope: Scoped) -> None:
    scope.done("begin", "auth")
    scope.done("complete", "auth", "--phase", "testers", "--task", "T002")
    scope.done("begin", "auth")
    assert scope.status()["incomplete"] == [{"phase": "testers", "task": "T001", "state": "begun"}]


def test_a_reviewer_who_gives_no_answer_has_approved_nothing(scope: Scoped) -> None:
    scope.phase("testers")
    scope.phase("implementers")
    scope.done("begin", "auth")
    scope.done("complete", "auth", "--phase", "reviewers", "--outcome", "timed_out")
    assert scope.status()["phase"] == "reviewers"
    assert scope("complete", "auth") == 3


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["complete", "auth"], 3, "batch_not_begun"),
        (["complete", "auth", "--phase", "testers"], 3, "batch_not_begun"),
        (["begin", "nothing"], 2, "batch_scope_missing"),
        (["begin", "auth", "--accept", "all"], 2, "invalid_value"),
        (["complete", "auth", "--phase", "testers", "--outcome", "rejected"], 2, "conflicting_options"),
        (["complete", "auth", "--defer", "high: a hole"], 3, "batch_issue_not_deferrable"),
        (["restore", "auth"], 3, "batch_not_begun"),
    ],
)
def test_each_refusal_has_its_code(scope: Scoped, words: list[str], status: int, code: str) -> None:
    assert (scope(*words), code in scope.said) == (status, True), scope.said


def test_a_stage_that_was_not_begun_cannot_end(scope: Scoped) -> None:
    scope.done("begin", "auth")
    assert scope("complete", "auth", "--phase", "reviewers") == 3
    assert "batch_stage_not_begun" in scope.said


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("status: pending   # to do", "status: pending\n    depends_on: [T003]", 1), "batch_dependency_cycle"),
        (("pending", "deferred", 2), "batch_dependency_deadlock"),
        (("depends_on: [T001", "depends_on: [T009", 1), "batch_dependency_unknown"),
        (("id: T002", "id: T001", 1), "batch_task_twice"),
    ],
)
def test_what_makes_a_plan_impossible_has_its_own_code(scope: Scoped, change: tuple[str, str, int], code: str) -> None:
    scope.write("tasks.yaml", TASKS.replace(*change))
    assert scope("begin", "auth") == 1
    assert code in scope.said


def test_a_pair_that_nobody_can_order_is_refused(scope: Scoped) -> None:
    scope.write("dependencies.yaml", "edges:\n  - {from: T001, to: T002}\n")
    assert scope("begin", "auth") == 1
    assert "batch_dependency_undecided" in scope.said


@pytest.mark.parametrize(
    "text", ["graph:\n  T003: {blocked_by: [T001]}\n", "dependencies:\n  T003:\n    requires: [T001]\n"]
)
def test_no_batch_begins_while_dependencies_are_written_in_an_unknown_form(scope: Scoped, text: str) -> None:
    scope.write("dependencies.yaml", text)
    for command in ("next", "begin"):
        assert scope(command, "auth") == 1
        assert "batch_dependencies_unread" in scope.said
    scope.write("dependencies.yaml", "version: 1\ndescription: no dependencies\n")
    assert scope("next", "auth") == 0


# ---- not as it was -------------------------------------------------------------------------------------------------


def test_a_task_that_is_no_longer_done_blocks_until_it_is_accepted(scope: Scoped) -> None:
    scope.phases()
    scope.done("complete", "auth")
    scope.write("tasks.yaml", scope.text("tasks.yaml").replace("status: completed", "status: pending", 1))
    assert scope("begin", "auth") == 65
    assert "tasks: T001 was done" in scope.said
    scope.done("begin", "auth", "--accept", "tasks")
    assert scope.status()["view"]["next"]["tasks"] == ["T001"]


def test_a_done_task_that_demands_something_else_now_blocks(scope: Scoped) -> None:
    scope.phases()
    scope.done("complete", "auth")
    scope.write("tasks.yaml", scope.text("tasks.yaml").replace("Add the model", "Add two models"))
    assert scope("begin", "auth") == 65
    assert "its requirements have changed" in scope.said


def test_another_branch_and_a_lost_commit_are_named(scope: Scoped) -> None:
    scope.phases()
    scope.done("complete", "auth")
    scope.git("checkout", "-q", "-b", "other")
    assert scope("begin", "auth") == 64
    assert "branch: work on the scope is on branch main" in scope.said
    scope.git("checkout", "-q", "main")
    scope.git("commit", "-q", "--allow-empty", "-m", "x")
    scope.git("reset", "-q", "--soft", "HEAD~2")
    assert scope("begin", "auth") == 64
    assert "commit: commit" in scope.said


def test_a_hand_edit_of_the_view_blocks_and_can_be_undone_or_adopted(scope: Scoped) -> None:
    scope.done("begin", "auth")
    before = scope.text("checkpoint.yaml")
    scope.write("checkpoint.yaml", before.replace("last_batch: null", 'last_batch: "5a"'))
    assert scope("begin", "auth") == 69
    assert "view_conflict" in scope.said
    scope.done("restore", "auth")
    assert "5a" not in scope.text("checkpoint.yaml")
    scope.write("checkpoint.yaml", before.replace("last_batch: null", 'last_batch: "5a"'))
    scope.done("adopt", "auth")
    assert scope.status()["view"]["last_batch"] == "5a"


def test_a_checkpoint_without_a_log_is_its_beginning_and_keeps_its_comments(scope: Scoped) -> None:
    text = "checkpoint:  # ours\n  spec_name: auth\n  branch: main\n  last_batch: 5a\n  note: kept\n"
    text += "  tasks:\n    done: []\n    pending: [T001, T002, T003]\n"
    scope.write("checkpoint.yaml", text)
    scope.done("begin", "auth")
    after = scope.text("checkpoint.yaml")
    assert after.startswith("checkpoint:  # ours\n")
    assert "note: kept" in after
    assert scope.status()["view"]["next"]["label"] == "5b"


def test_yaml_that_cannot_be_read_is_refused_with_its_line(scope: Scoped) -> None:
    scope.write("checkpoint.yaml", "checkpoint:\n  branch: [main\n")
    assert scope("begin", "auth") != 0
    assert "checkpoint.yaml:" in scope.said


def test_a_file_that_cannot_be_edited_alone_is_left_as_it_is(scope: Scoped, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> bytes:
        raise CannotEdit("checkpoint.yaml:1:1: this change cannot be made without changing other text")

    monkeypatch.setattr("workpacket.bridges.batch_acts.written", cannot)
    assert scope("begin", "auth") == 4
    assert "batch_file_unwritable" in scope.said


# ---- labels and the bridge -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "following"),
    [("", "1"), ("3", "4"), ("5a", "5b"), ("5z", "5z-2"), ("docs", "docs-2"), ("docs-2", "docs-3")],
)
def test_labels_are_text_and_still_count(last: str, following: str) -> None:
    assert label_after(last) == following


def test_a_canonical_file_comes_back_byte_for_byte(scope: Scoped) -> None:
    scope.done("begin", "auth")
    data = scope.text("checkpoint.yaml").encode()
    read = BatchBridge().read("specs/active/auth/checkpoint.yaml", data)
    (checkpoint,) = read
    assert isinstance(checkpoint, Foreign)
    assert BatchBridge().write([checkpoint]) == data
