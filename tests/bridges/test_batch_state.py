"""What must hold of every batch and every scope, however its stages end and in whatever order."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.scopes import FOLDER, Scoped, scoped
from workpacket.bridges.batch_state import OUTCOMES, PHASES, BatchUnderWay, Phase
from workpacket.documents.batch import SATISFIED, BatchCheckpoint, BatchTasks, Task
from workpacket.documents.batch_scope import BatchScope, normal_path, overlap, scope_of
from workpacket.documents.batch_writing import Words, differences, view_of, written
from workpacket.text.source import Source
from workpacket.text.yaml_edit import CannotEdit

TASK_IDS = ("T1", "T2", "T3")
MOVES = st.lists(
    st.tuples(st.sampled_from(OUTCOMES), st.sets(st.integers(0, 2)), st.sets(st.sampled_from(TASK_IDS))), max_size=25
)


def played(batch: BatchUnderWay, moves: list[tuple[str, set[int], set[str]]]) -> list[BatchUnderWay]:
    """The batch after each move: some of the open units are begun and end so."""
    states = [batch]
    for word, chosen, about in moves:
        phase = batch.cursor
        if phase is None:
            break
        units = [unit for number, unit in enumerate(batch.open_units) if number in chosen]
        outcome = next(one for one in OUTCOMES if one == word)
        if outcome == "rejected" and phase != "reviewers":
            outcome = "failed"
        batch = batch.begun(phase, batch.open_units, "me").ended(phase, units, outcome, sorted(about) if units else ())
        if not units and outcome == "rejected":
            continue
        states.append(batch)
    return states


@given(moves=MOVES, reviewers=st.sampled_from([(), ("ann",), ("ann", "bob")]))
def test_a_phase_is_never_passed_with_something_open_and_reviews_are_of_the_last_work(
    moves: list[tuple[str, set[int], set[str]]], reviewers: tuple[str, ...]
) -> None:
    for batch in played(BatchUnderWay("1", TASK_IDS, True, reviewers), moves):
        cursor = batch.cursor
        before = PHASES if cursor is None else PHASES[: PHASES.index(cursor)]
        assert all(batch.stage(phase, unit).state == "ok" for phase in before for unit in batch.units(phase))
        assert cursor is None or set(batch.open_units) <= set(batch.units(cursor))
        if any(batch.stage("implementers", task).state == "rejected" for task in TASK_IDS):
            assert {batch.stage("reviewers", one).state for one in batch.units("reviewers")} == {"waiting"}


@given(moves=MOVES, reviewers=st.sampled_from([("ann",), ("ann", "bob")]))
def test_a_batch_that_lost_its_log_goes_on_in_the_phase_and_with_the_stages_that_its_file_names(
    moves: list[tuple[str, set[int], set[str]]], reviewers: tuple[str, ...]
) -> None:
    for batch in played(BatchUnderWay("1", TASK_IDS, True, reviewers), moves):
        phase: Phase | None = batch.cursor
        if phase is None:
            continue
        again = BatchUnderWay("1", TASK_IDS, True, reviewers).as_far_as(phase, batch.incomplete())
        assert again.cursor == phase
        assert set(again.open_units) == set(batch.open_units)


_PATHS = st.sampled_from(["src/a", "src/b", "src", "./src/a", "docs/x.md"])


@st.composite
def scopes(draw: st.DrawFn) -> BatchScope:
    """A scope without cycles: a task waits only for earlier ones."""
    count = draw(st.integers(0, 7))
    statuses = st.sampled_from(["pending", "done", "completed", "descoped", "deferred", "in_progress"])
    lines = ["tasks:" if count else "tasks: []"]
    for number in range(count):
        waits = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        files = draw(st.lists(_PATHS, max_size=2, unique=True))
        lines += [f"  - id: T{number}", f"    content: task {number}", f"    status: {draw(statuses)}"]
        lines += [
            f"    depends_on: [{', '.join(f'T{one}' for one in sorted(waits))}]",
            f"    files: {json.dumps(files)}",
        ]
    return scope_of(BatchTasks(Source("tasks.yaml", "\n".join([*lines, ""]))), None)


@given(scope=scopes())
def test_the_groups_of_a_scope_are_its_tasks_and_the_next_batch_fits_them(scope: BatchScope) -> None:
    groups = scope.groups()
    members = [task for group in groups.values() for task in group]
    assert sorted(members) == sorted(scope.statuses)
    assert not set(groups["completed"]) & set(groups["pending"])
    by_id: dict[str, Task] = {task.id: task for task in scope.tasks}
    chosen = [by_id[name] for name in scope.next.batch]
    assert set(scope.next.batch) <= set(scope.next.pending)
    assert all(by_id[one].status in SATISFIED for task in chosen for one in task.depends_on)
    for number, task in enumerate(chosen):
        for other in chosen[number + 1 :]:
            assert not any(overlap(normal_path(a), normal_path(b)) for a in task.files for b in other.files)


@given(scope=scopes())
def test_doing_batch_after_batch_comes_to_an_end_with_nothing_ready(scope: BatchScope) -> None:
    for _ in range(len(scope.tasks) + 1):
        batch = scope.next.batch
        if not batch:
            break
        after = scope.with_done(set(batch))
        assert set(batch) <= set(after.groups()["completed"])
        scope = after
    assert not scope.next.ready


# ---- the files of a real repository --------------------------------------------------------------------------------


def corpus() -> list[Path]:
    folder = os.environ.get("WORKPACKET_CORPUS")
    files = sorted(Path(folder, "batch-checkpoints").glob("*.yaml")) if folder else []
    return [file for file in files if file.stem not in {"tasks", "dependencies", "validation"}]


@pytest.mark.parametrize("file", corpus(), ids=lambda file: file.stem)
def test_every_real_checkpoint_is_read_beside_its_tasks_and_rewritten_to_what_the_log_says(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scope = scoped(tmp_path, capsys)
    for name in ("tasks", "dependencies", "validation"):
        scope.write(f"{name}.yaml", file.with_name(f"{name}.yaml").read_text("utf-8"))
    scope.write("checkpoint.yaml", file.read_text("utf-8"))
    status = scope.status()
    document = BatchCheckpoint(Source.from_bytes("checkpoint.yaml", file.read_bytes()))
    view = view_of(document)
    assert status["view"] == json.loads(json.dumps(view.as_json()))
    moved = view.__class__(**{**{name: getattr(view, name) for name in view._fields}, "last_batch": "99z"})
    try:
        made = written(document, FOLDER, moved, Words({}, {}))
    except CannotEdit:
        return
    assert not differences(moved, view_of(BatchCheckpoint(Source.from_bytes("checkpoint.yaml", made))))
    kept = iter(made.decode().splitlines())
    assert all(line in kept for line in file.read_text("utf-8").splitlines() if "last_batch" not in line)


# ---- what happens beside a batch -----------------------------------------------------------------------------------


def move_base(scope: Scoped, path: str) -> None:
    """Somebody else's commit on main, which is the base of the branch that the scope is worked on in."""
    scope.git("stash", "-q", "--include-untracked")
    scope.git("checkout", "-q", "main")
    (scope.root / path).parent.mkdir(exist_ok=True)
    (scope.root / path).write_text("theirs\n")
    scope.git("add", path)
    scope.git("commit", "-qm", "theirs")
    scope.git("checkout", "-q", "work")
    scope.git("stash", "pop", "-q")


@pytest.fixture
def scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scoped:
    made = scoped(tmp_path, capsys)
    made.git("checkout", "-q", "-b", "work")
    return made


def test_a_base_that_moved_beside_the_work_is_noted_and_one_that_moved_under_it_blocks(scope: Scoped) -> None:
    scope.done("begin", "auth")
    move_base(scope, "README")
    assert [(one["aspect"], one["blocks"]) for one in scope.status()["stale"]] == [("base", False)]
    move_base(scope, "src/a.py")
    assert scope("begin", "auth") == 64
    assert "changed files that belong to unfinished tasks: src/a.py (T001)" in scope.said
    scope.done("begin", "auth", "--accept", "base")


def test_other_reviewers_than_the_batch_began_with_block(scope: Scoped) -> None:
    scope.done("begin", "auth")
    scope.write("checkpoint.yaml", scope.text("checkpoint.yaml") + "  review_config:\n    reviewers: [ann]\n")
    assert scope("begin", "auth") == 65
    scope.done("begin", "auth", "--accept", "config")
    scope.done("complete", "auth", "--phase", "testers")
    scope.write("checkpoint.yaml", scope.text("checkpoint.yaml").replace("ann", "bob"))
    assert scope("begin", "auth") == 65
    assert "config: the reviewers or implementers in checkpoint.yaml have changed" in scope.said
    scope.done("begin", "auth", "--accept", "config")
    scope.done("complete", "auth", "--phase", "implementers")
    scope.done("begin", "auth")
    assert scope.status()["incomplete"] == [{"phase": "reviewers", "reviewer": "bob", "state": "begun"}]


def completed(scope: Scoped) -> None:
    scope.phases()
    (scope.root / "src" / "a.py").write_text("a = 1\n")
    scope.done("complete", "auth")


def test_a_rebased_or_amended_commit_is_the_same_work(scope: Scoped) -> None:
    completed(scope)
    scope.git("checkout", "-q", "main")
    scope.git("commit", "-q", "--allow-empty", "-m", "theirs")
    scope.git("checkout", "-q", "work")
    scope.git("rebase", "-q", "main")
    assert ("commit", False) in {(one["aspect"], one["blocks"]) for one in scope.status()["stale"]}
    scope.done("begin", "auth")


def test_squashed_commits_with_the_same_tree_are_the_same_work(scope: Scoped) -> None:
    scope.git("commit", "-q", "--allow-empty", "-m", "before")
    completed(scope)
    scope.git("reset", "-q", "--soft", "main")
    scope.git("commit", "-qm", "all of it")
    assert [one for one in scope.status()["stale"] if one["blocks"]] == []
    scope.done("begin", "auth")


def test_a_hook_that_refuses_the_commit_leaves_a_completion_that_the_next_call_finishes(scope: Scoped) -> None:
    scope.phases()
    hook = scope.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert scope("complete", "auth") != 0
    assert scope.git("rev-list", "--count", "HEAD").strip() == "1"
    assert scope.status()["completing"]
    hook.unlink()
    scope.done("complete", "auth")
    assert scope.git("rev-list", "--count", "HEAD").strip() == "2"


def test_somebodys_commit_during_a_completion_is_the_parent_that_the_file_names(scope: Scoped) -> None:
    scope.phases()
    scope.killed(2, "before", "complete", "auth")
    scope.git("commit", "-q", "--allow-empty", "-m", "meanwhile")
    parent = scope.git("rev-parse", "HEAD").strip()
    scope.done("complete", "auth")
    assert scope.status()["view"]["last_commit"] == parent
    assert scope.git("rev-parse", "HEAD^").strip() == parent
