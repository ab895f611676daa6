"""Batches and dependencies: what nobody gave leave for is not committed with a batch."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any, cast

import pytest

from bridges.scopes import FOLDER, Scoped, scoped
from bridges.test_dependencies import manifest
from workpacket.cli.main import main
from workpacket.runtime import Runtime
from workpacket.runtime.records.events import Event


@pytest.fixture
def scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scoped:
    made = scoped(tmp_path, capsys)
    (made.root / "package.json").write_text(manifest())
    made.git("add", "-A")
    made.git("commit", "-qm", "dependencies")
    return made


def test_a_batch_with_a_dependency_that_nobody_allowed_is_not_completed(scope: Scoped) -> None:
    scope.phases()
    (scope.root / "package.json").write_text(manifest(zod="^3.0.0"))
    scope.git("commit", "-qam", "by hand, to hide it")
    before = scope.git("rev-parse", "HEAD")
    assert scope("complete", "auth") == 11
    assert "lockfile_violation" in scope.said
    assert scope.git("rev-parse", "HEAD") == before
    assert scope.status()["completing"] is False
    (scope.root / "package.json").write_text(manifest())
    scope.done("complete", "auth")


def test_leave_for_a_batch_is_given_when_it_begins_and_only_narrowed_later(scope: Scoped) -> None:
    scope.done("begin", "auth", "--allow-deps", "zod,@org/*")
    scope.done("complete", "auth", "--phase", "testers")
    assert scope("begin", "auth", "--allow-deps", "left-pad") == 12
    assert "scope_widened" in scope.said
    scope.done("begin", "auth", "--allow-deps", "zod")
    scope.done("complete", "auth", "--phase", "implementers")
    scope.phase("reviewers")
    (scope.root / "package.json").write_text(manifest(**{"@org/a": "^1.0.0"}))
    assert scope("complete", "auth") == 11
    (scope.root / "package.json").write_text(manifest(zod="^3.0.0"))
    scope.done("complete", "auth")
    with Runtime.open(scope.root / ".git" / "workpacket" / "runs.db") as runtime:
        refused, event = (e for e in runtime.store.read("batch/specs/active/auth") if e.type == "lockfile_changed")
        assert [row["path"] for row in rows_of(refused)] == [row["path"] for row in rows_of(event)] == ["package.json"]
        assert event.values()["allow"] == ["zod"]


def rows_of(event: Event) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", event.values()["lockfiles"])


def test_the_next_batch_has_no_leave_of_the_one_before(scope: Scoped) -> None:
    scope.done("begin", "auth", "--allow-deps", "zod")
    scope.done("complete", "auth", "--phase", "testers")
    scope.phase("implementers")
    scope.phase("reviewers")
    scope.done("complete", "auth")
    (scope.root / "package.json").write_text(manifest(zod="^3.0.0"))
    scope.git("commit", "-qam", "between two batches")
    scope.phases()
    assert scope("complete", "auth") == 11


def test_a_completion_that_was_cut_short_is_judged_again_before_it_commits(scope: Scoped) -> None:
    scope.phases()
    scope.killed(2, "before", "complete", "auth")
    (scope.root / "package.json").write_text(manifest(zod="^3.0.0"))
    assert scope("complete", "auth") == 11
    assert scope.git("rev-list", "--count", "HEAD").strip() == "2"
    (scope.root / "package.json").write_text(manifest())
    scope.done("complete", "auth")


def test_of_a_batch_that_does_not_say_where_it_began_nothing_is_guessed(scope: Scoped) -> None:
    scope.write("checkpoint.yaml", IMPORTED_UNDER_WAY)
    with chdir(scope.root):
        assert main(["import", "batch", f"{FOLDER}/checkpoint.yaml"]) == 0
    assert scope("complete", "auth") == 3
    for phase in ("implementers", "reviewers"):
        scope.phase(phase)
    assert scope("complete", "auth") == 17
    assert "check_not_run" in scope.said


IMPORTED_UNDER_WAY = """\
checkpoint:
  spec_name: auth
  branch: main
  timestamp: "2026-03-01T10:00:00Z"
  tasks: {completed: [], in_progress: [T001], pending: [T002, T003]}
  next_batch: {number: 1, tasks: [T001]}
  phase_cursor: implementers
"""
