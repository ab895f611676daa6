"""Checkpoint commits in real repositories: what is committed, what is found again, what is never taken on trust."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from git.scratch import commit, git, make_repository
from runtime.worlds import World
from workpacket.cli.main import main
from workpacket.git.repository import find_repository
from workpacket.problem import WorkpacketError
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.commit_checkpoint import (
    OWN_FOLDERS,
    CheckpointMessage,
    CommitCheckpoints,
    CommitPoint,
    CommitReview,
    GitObserver,
    message_of,
    next_milestone,
    read_message,
)
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.run import Run
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.sqlite.store import SQLiteStore


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    make_repository(tmp_path / "r")
    commit(tmp_path / "r", "base", base="x\n")
    return tmp_path / "r"


def commits_of(run: Run, root: Path) -> CommitCheckpoints:
    return CommitCheckpoints(run._session, find_repository(root))


class OneRun(World):
    """A machine on which one run goes on and on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.run = self.runtime.run("work")


def reach(root: Path, world: OneRun, index: int, path: str = "") -> CommitPoint:
    if path:
        (root / path).write_text(f"{index}\n")
    return commits_of(world.run, root).reach(index, f"Milestone {index}", {"at": index})


def test_a_milestone_is_a_commit_with_a_trailer_and_a_sidecar(root: Path) -> None:
    world = OneRun()
    point = reach(root, world, 0, "one")
    assert point.how == "committed"
    assert point.sidecar_written
    message = git(root, "log", "-1", "--format=%B")
    assert message == message_of("work@00000001", 0, "Milestone 0", point.checkpoint).strip()
    sidecar = json.loads((root / ".runr" / "checkpoints" / f"{point.commit}.json").read_text())
    assert (sidecar["schema_version"], sidecar["sha"], sidecar["run_id"]) == (1, point.commit, "work@00000001")
    assert git(root, "status", "--porcelain") == "?? .runr/"  # its own files are never committed
    state = world.runtime.state("work@00000001")
    assert state.latest_checkpoint is not None
    assert state.latest_checkpoint.preconditions["commit"] == point.commit


def test_a_milestone_that_was_reached_is_not_committed_again(root: Path) -> None:
    world = OneRun()
    first = reach(root, world, 0, "one")
    (root / "two").write_text("half of the next milestone\n")
    again = reach(root, world, 0)
    assert (again.how, again.commit) == ("recorded", first.commit)
    assert git(root, "rev-list", "--count", "HEAD") == "2"


def test_a_milestone_without_changes_has_a_record_and_no_commit(root: Path) -> None:
    world = OneRun()
    point = reach(root, world, 0)
    assert (point.how, point.commit, point.sidecar_written) == ("unchanged", git(root, "rev-parse", "HEAD"), False)
    assert world.runtime.state("work@00000001").milestones.reached[0].changed is False


def test_only_what_lies_in_the_scope_is_committed(root: Path) -> None:
    world = World()
    git(root, "config", "user.name", "Ann")
    (root / "src").mkdir()
    (root / "src" / "a").write_text("mine\n")
    (root / "other").write_text("somebody else's\n")
    git(root, "add", "other")
    with world.runtime.run("work", scope=["src"]) as run:
        commits_of(run, root).reach(0)
    assert git(root, "show", "--format=", "--name-only", "HEAD") == "src/a"
    assert git(root, "diff", "--cached", "--name-only") == "other"


def test_a_sidecar_that_cannot_be_written_is_said_and_stops_nothing(root: Path) -> None:
    world = OneRun()
    (root / ".runr").write_text("a file in the way")
    point = reach(root, world, 0, "one")
    assert (point.how, point.sidecar_written) == ("committed", False)
    (event,) = [e for e in world.store.read("work@00000001") if e.type == "checkpoint_sidecar_write_failed"]
    assert event.values()["sha"] == point.commit
    assert Path(str(event.values()["path"])).is_absolute()
    assert event.values()["error"]


def test_nothing_is_written_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / ".runr").symlink_to(tmp_path / "elsewhere")
    assert not reach(root, OneRun(), 0, "one").sidecar_written
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_guard_is_heard_before_anything_is_committed(root: Path) -> None:
    world = World()
    drafts = (RecordDraft("resume_checkpoint_selected", {"source": "none"}),)
    (root / "one").touch()
    judged = CommitReview(drafts, RunBlocked("not like this", code="lockfile_violation"))
    with pytest.raises(RunBlocked, match="not like this"), world.runtime.run("work") as run:
        CommitCheckpoints(run._session, find_repository(root), lambda: judged).reach(0)
    types = [event.type for event in world.store.read("work@00000001")]
    assert "resume_checkpoint_selected" in types
    assert "checkpoint.prepared" not in types
    assert git(root, "rev-list", "--count", "HEAD") == "1"


def test_in_the_middle_of_a_merge_nothing_is_committed(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "other")
    commit(root, "theirs", base="theirs\n")
    git(root, "checkout", "-q", "main")
    commit(root, "ours", base="ours\n")
    git(root, "merge", "other", check=False)
    with pytest.raises(WorkpacketError, match="middle of a merge"):
        reach(root, OneRun(), 0, "one")


def test_a_hook_that_removes_the_trailer_is_noticed(root: Path) -> None:
    hook = root / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\necho emptied > "$1"\n')
    hook.chmod(0o755)
    with pytest.raises(RunBlocked, match="lacks the trailer"):
        reach(root, OneRun(), 0, "one")


def test_without_a_commit_and_without_changes_there_is_nothing_to_name(tmp_path: Path) -> None:
    make_repository(tmp_path)
    with pytest.raises(RunBlocked, match="no commit yet"):
        reach(tmp_path, OneRun(), 0)


def test_a_milestone_found_by_its_commit_leaves_another_that_was_prepared() -> None:
    with World().runtime.run("work") as run:
        recorder = run._session.recorder
        recorder.record(RecordDraft("checkpoint.prepared", {"checkpoint": "mine", "milestone_index": 2}))
        recorder.record(
            RecordDraft("checkpoint_complete", {"checkpoint": "other", "milestone_index": 1, "commit": "c"})
        )
        prepared = run.state.milestones.prepared
        assert prepared is not None
        assert (prepared.checkpoint, list(run.state.milestones.reached)) == ("mine", [1])


def test_a_finished_run_reaches_no_milestone(root: Path) -> None:
    world = World()
    with world.runtime.run("work", key="once"):
        pass
    with pytest.raises(RunBlocked, match="finished"), world.runtime.run("work", key="once") as run:
        commits_of(run, root).reach(0)


def test_a_title_of_two_lines_is_refused(root: Path) -> None:
    with pytest.raises(ValueError, match="one line"), World().runtime.run("work") as run:
        commits_of(run, root).reach(0, "a\nCheckpoint-Id: forged")


def test_the_next_milestone_is_the_one_that_is_open(root: Path) -> None:
    world = OneRun()
    reach(root, world, 4, "one")
    session = world.run._session
    assert next_milestone(session) == 5
    session.recorder.record(RecordDraft("checkpoint.prepared", {"checkpoint": "x", "milestone_index": 7}))
    assert next_milestone(session) == 7


# ---- what becomes of the commit --------------------------------------------------------------------------------------


def moved_main(root: Path) -> None:
    git(root, "checkout", "-q", "main")
    commit(root, "other", other="x\n")


def rebase(root: Path) -> None:
    moved_main(root)
    git(root, "checkout", "-q", "work")
    git(root, "rebase", "-q", "main")


def squash(root: Path) -> None:
    moved_main(root)
    git(root, "merge", "-q", "--squash", "work")
    git(root, "commit", "-q", "-m", "squashed")


def cherry_pick(root: Path) -> None:
    moved_main(root)
    git(root, "cherry-pick", "work")


def amend_message(root: Path) -> None:
    git(root, "commit", "-q", "--amend", "-m", "another message")


def amend_content_and_keep_the_message(root: Path) -> None:
    (root / "one").write_text("something else\n")
    git(root, "commit", "-q", "-a", "--amend", "--no-edit")


def amend_both(root: Path) -> None:
    (root / "one").write_text("something else\n")
    git(root, "commit", "-q", "-a", "--amend", "-m", "another message")


def reset(root: Path) -> None:
    git(root, "reset", "-q", "--hard", "HEAD~1")


def revert(root: Path) -> None:
    git(root, "revert", "--no-edit", "HEAD")
    commit(root, "more", more="x\n")


def revert_in_other_words(root: Path) -> None:
    git(root, "revert", "--no-commit", "HEAD")
    git(root, "commit", "-q", "-m", "Take it out again")


def revert_and_bring_back(root: Path) -> None:
    revert(root)
    git(root, "revert", "--no-edit", "HEAD~1")


def quoted(root: Path) -> None:
    """The commit is gone; another message quotes it, trailer and all, and then goes on."""
    body = git(root, "log", "-1", "--format=%B")
    reset(root)
    commit(root, f"Take back\n\n{body}\n\nIt was wrong.", unrelated="x\n")


@pytest.mark.parametrize(
    ("happens", "relation"),
    [
        (lambda root: None, "exact"),
        (lambda root: commit(root, "more", more="x\n"), "ahead"),
        (rebase, "rewritten"),
        (squash, "rewritten"),
        (cherry_pick, "rewritten"),
        (amend_message, "content_equal"),
        (amend_content_and_keep_the_message, "rewritten"),
        (amend_both, "unreachable"),
        (reset, "unreachable"),
        (quoted, "unreachable"),
        (revert, "unreachable"),
        (revert_in_other_words, "unreachable"),
        (revert_and_bring_back, "ahead"),
        (moved_main, "unreachable"),
    ],
)
def test_work_is_skipped_only_on_a_commit_that_is_there(
    root: Path, happens: Callable[[Path], None], relation: str
) -> None:
    world = OneRun()
    git(root, "checkout", "-q", "-b", "work")
    point = reach(root, world, 0, "one")
    happens(root)
    checkpoints = commits_of(world.run, root)
    if relation == "unreachable":
        with pytest.raises(RunBlocked) as refused:
            checkpoints.reach(0)
        assert refused.value.code == "git_diverged"
    else:
        assert checkpoints.reach(0) == point._replace(how="recorded")


def test_in_a_shallow_clone_a_commit_that_was_cut_off_is_not_believed(root: Path, tmp_path: Path) -> None:
    world = OneRun()
    reach(root, world, 0, "one")
    commit(root, "after", after="x\n")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", "shallow")
    with pytest.raises(RunBlocked, match="not in this history"):
        commits_of(world.run, tmp_path / "shallow").reach(0)


def test_a_work_tree_that_was_removed_takes_no_commit_with_it(root: Path, tmp_path: Path) -> None:
    world = OneRun()
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    point = reach(tmp_path / "side", world, 0, "one")
    git(root, "worktree", "remove", "--force", str(tmp_path / "side"))
    with pytest.raises(RunBlocked, match="not in this history"):
        commits_of(world.run, root).reach(0)
    git(root, "checkout", "-q", "side")
    assert commits_of(world.run, root).reach(0).commit == point.commit


@pytest.mark.parametrize(
    ("happens", "code"), [(lambda root: None, ""), (rebase, "git_diverged"), (reset, "git_diverged")]
)
def test_a_resume_asks_before_it_goes_on_from_another_history(
    root: Path, happens: Callable[[Path], None], code: str
) -> None:
    git(root, "checkout", "-q", "-b", "work")
    world = OneRun(observers=(GitObserver(find_repository(root), own=OWN_FOLDERS, promise=False),))
    reach(root, world, 0, "one")
    world.run._session.leave()
    world.clock.advance(60)
    happens(root)
    assert world.runtime.plan("work@00000001", "work").code == code


# ---- messages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "read"),
    [
        (message_of("WP-1-X-v1/run@00000001", 3, "T", "x"), CheckpointMessage("WP-1-X-v1/run@00000001", 3)),
        ("chore(runr): checkpoint 20260131 milestone 0", CheckpointMessage("20260131", 0)),
        ("chore(agent): checkpoint milestone 12\n\nbody", CheckpointMessage("", 12)),
        ("Revert\n\nchore(runr): checkpoint a milestone 1", None),
        ('Revert "chore(runr): checkpoint a milestone 1"', None),
        ("chore(runr): checkpoint a milestone 1 (again)", None),
        ("chore(runr): checkpoint a milestone \u0661", None),
        ("chore(agent): checkpoint\nmilestone 3", None),
        (" chore(agent): checkpoint milestone 3", None),
        ("", None),
    ],
)
def test_only_a_whole_first_line_is_a_checkpoint(message: str, read: CheckpointMessage | None) -> None:
    assert read_message(message) == read


# ---- kills -----------------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import workpacket.runtime.commit_checkpoint as module
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
def then_die(real):
    def act(*words):
        real(*words)
        die()
    return act
where = sys.argv.pop(1)
if where == "prepared": module.commit_paths = die
if where == "committed": module.commit_paths = then_die(module.commit_paths)
if where == "sidecar": module.write_sidecar = then_die(module.write_sidecar)
from workpacket.cli.main import console
console()
"""


@pytest.mark.parametrize(
    ("where", "how", "sidecars_before"),
    [("prepared", "committed", 0), ("committed", "found", 0), ("sidecar", "found", 1)],
)
def test_a_kill_at_each_step_is_repaired_by_the_next_call(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    where: str, how: str, sidecars_before: int,
) -> None:  # fmt: skip
    """Only the call that is killed needs a process of its own."""
    monkeypatch.chdir(root)

    def call(*words: str) -> str:
        assert main([*words]) == 0
        return capsys.readouterr().out

    run = call("run", "start", "work", "--owner", str(os.getpid())).strip()
    (root / "one").write_text("x\n")
    reached = ("run", "checkpoint", run, "--commit", "--milestone", "0", "--cursor", '{"at": 1}', "--json")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", KILLED, where, *reached], cwd=root, env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(root.glob(".runr/checkpoints/*.json"))) == sidecars_before
    done = json.loads(call(*reached))["data"]
    assert (done["how"], done["sidecar_written"]) == (how, True)
    assert git(root, "rev-list", "--count", "HEAD") == "2"
    again = json.loads(call(*reached))["data"]
    assert (again["how"], again["commit"]) == ("recorded", done["commit"])
    assert call("run", "milestone", run) == "0\n"
    with Runtime(SQLiteStore(root / ".git" / "workpacket" / "runs.db")) as runtime:
        state = runtime.state("work@00000001")
        points = [json.loads(runtime.store.payload(point.event) or b"null") for point in state.checkpoints]
    assert points == [{"cursor": {"at": 1}}]
