"""Transactions in real repositories: what they refuse, what they keep, what they leave to a person."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from git.scratch import commit, git, make_repository
from ledger.stories import PACKET, TX, Story
from shell.simulated_disk import Killed
from workpacket.git.repository import Repository
from workpacket.model.events import LogEvent
from workpacket.model.plan import FileChange, FileSeen, FolderSeen, Plan, digest, log_seen
from workpacket.problem import WorkpacketError
from workpacket.shell.transactions import recovery, transaction
from workpacket.shell.transactions.journal import Entry, Record, open_workspace
from workpacket.shell.transactions.recovery import recover, unfinished
from workpacket.shell.transactions.storage import Folder, PosixStorage, Tree
from workpacket.shell.transactions.transaction import writing

BOARD = ".GOV/TASK_BOARD.md"
PACKET_FILE = f".GOV/task_packets/{PACKET}.md"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = make_repository(tmp_path / "repository")
    write(made, BOARD, b"board 1\n")
    write(made, PACKET_FILE, b"packet 1\n")
    return made


def write(repository: Repository, path: str, data: bytes) -> None:
    place = repository.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def read(repository: Repository, path: str) -> bytes:
    return (repository.root / path).read_bytes()


def edit(path: str, old: bytes | None, new: bytes | None) -> FileChange:
    return FileChange(path, None if old is None else digest(old), new)


def plan(
    *changes: FileChange, events: tuple[LogEvent, ...] = (), rests_on: tuple[FileSeen | FolderSeen, ...] = ()
) -> Plan:
    return Plan("claim", TX, changes, events, rests_on)


BOTH = plan(edit(BOARD, b"board 1\n", b"board 2\n"), edit(PACKET_FILE, b"packet 1\n", b"packet 2\n"))


def apply(repository: Repository, what: Plan, **how: bool) -> tuple[str, ...]:
    with writing(repository, what.command, wait=0.2, **how) as opened:
        return opened.apply(what)


def refused(repository: Repository, what: Plan) -> WorkpacketError:
    with pytest.raises(WorkpacketError) as caught:
        apply(repository, what)
    return caught.value


def die_while(repository: Repository, monkeypatch: pytest.MonkeyPatch, replaced: int, what: Plan = BOTH) -> None:
    """Leave a committed transaction behind with so many of its files in place."""
    left = [replaced + 1]  # the first replacement is the journal's commit

    class DyingDisk(PosixStorage):
        def replace(self, folder: Folder, name: str, new_name: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            super().replace(folder, name, new_name)

        def remove(self, folder: Folder, name: str) -> None:
            if name.endswith(".intent"):
                raise Killed
            super().remove(folder, name)

    with monkeypatch.context() as patch:
        patch.setattr(transaction, "platform_storage", DyingDisk)
        with pytest.raises(Killed):
            apply(repository, what)


def test_a_plan_changes_adds_and_deletes_together(repository: Repository) -> None:
    created = Story().add("created")
    write(repository, ".GOV/stub.md", b"stub\n")
    changed = apply(repository, plan(*BOTH.changes, edit(".GOV/stub.md", b"stub\n", None), events=(created,)))
    assert changed == (BOARD, PACKET_FILE, ".GOV/stub.md", created.path)
    assert read(repository, BOARD) == b"board 2\n"
    assert read(repository, created.path) == created.encode()
    assert not (repository.root / ".GOV/stub.md").exists()
    assert git(repository.root, "status", "--porcelain", "--untracked-files=all").count("\n") == 2
    assert unfinished(repository) == []


def test_permission_bits_survive_and_the_umask_decides_on_new_files(repository: Repository) -> None:
    (repository.root / BOARD).chmod(0o755)
    before = os.umask(0o027)
    try:
        apply(repository, plan(*BOTH.changes, edit("new/file.md", None, b"")))
    finally:
        os.umask(before)
    assert (repository.root / BOARD).stat().st_mode & 0o777 == 0o755
    assert (repository.root / "new/file.md").stat().st_mode & 0o777 == 0o640


def test_what_is_already_as_planned_is_left_alone(repository: Repository) -> None:
    before = (repository.root / BOARD).stat()
    assert apply(repository, plan(edit(BOARD, b"something else\n", b"board 1\n"))) == ()
    assert (repository.root / BOARD).stat() == before
    assert apply(repository, plan(edit("absent", None, None))) == ()


@pytest.mark.parametrize(
    "change",
    [
        edit(BOARD, b"board 0\n", b"board 2\n"),
        edit(BOARD, None, b"board 2\n"),
        edit("absent.md", b"x", b"y"),
        edit(BOARD, b"board 0\n", None),
    ],
)
def test_a_file_that_is_not_as_expected_stops_everything(repository: Repository, change: FileChange) -> None:
    error = refused(repository, plan(edit(PACKET_FILE, b"packet 1\n", b"packet 2\n"), change))
    assert (error.code, error.path) == ("changed_meanwhile", change.path)
    assert read(repository, PACKET_FILE) == b"packet 1\n"


def test_what_a_plan_rests_on_must_still_be_so(repository: Repository) -> None:
    created = Story().add("created")
    seen: list[tuple[FileSeen | FolderSeen, bool]] = [
        (FileSeen(BOARD, digest(b"board 1\n")), True),
        (FileSeen(BOARD, digest(b"board 0\n")), False),
        (FileSeen(BOARD, None), False),
        (FileSeen("absent", None), True),
        (log_seen(PACKET, []), True),
        (log_seen(PACKET, [created]), False),
        (FolderSeen(".GOV", frozenset({"TASK_BOARD.md", "task_packets"})), True),
    ]
    for number, (fact, holds) in enumerate(seen):
        change = plan(edit(f"{number}.md", None, b"x"), rests_on=(fact,))
        if holds:
            assert apply(repository, change)
        else:
            assert refused(repository, change).path == fact.path


def test_an_editor_that_is_faster_than_the_commit_wins(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    real = recovery.stage

    def stage_and_be_overtaken(tree: Tree, record: Record) -> None:
        real(tree, record)
        write(repository, BOARD, b"typed just now\n")

    monkeypatch.setattr(recovery, "stage", stage_and_be_overtaken)
    error = refused(repository, BOTH)
    assert (error.code, error.message.startswith(BOARD)) == ("changed_meanwhile", True)
    assert read(repository, BOARD) == b"typed just now\n"
    assert read(repository, PACKET_FILE) == b"packet 1\n"
    assert unfinished(repository) == []
    assert sorted(path.name for path in (repository.root / ".GOV").iterdir()) == ["TASK_BOARD.md", "task_packets"]


def test_a_governed_folder_that_is_a_link_is_refused_with_no_byte_changed(
    repository: Repository, tmp_path: Path
) -> None:
    (repository.root / ".GOV").rename(tmp_path / "elsewhere")
    (repository.root / ".GOV").symlink_to(tmp_path / "elsewhere")
    assert refused(repository, BOTH).code == "path_is_link"
    assert (tmp_path / "elsewhere" / "TASK_BOARD.md").read_bytes() == b"board 1\n"


def test_a_link_put_in_place_during_the_commit_is_not_followed(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = recovery.stage

    def stage_and_link(tree: Tree, record: Record) -> None:
        real(tree, record)
        (repository.root / BOARD).unlink()
        (repository.root / BOARD).symlink_to(tmp_path / "victim")

    (tmp_path / "victim").write_bytes(b"mine\n")
    monkeypatch.setattr(recovery, "stage", stage_and_link)
    error = refused(repository, BOTH)
    assert (tmp_path / "victim").read_bytes() == b"mine\n"
    assert read(repository, PACKET_FILE) == b"packet 1\n"
    assert error.code == "transaction_unfinished"
    (repository.root / BOARD).unlink()
    recover(repository, "old")
    assert read(repository, BOARD) == b"board 1\n"


@pytest.mark.parametrize("operation", ["merge", "rebase", "cherry-pick"])
def test_nothing_is_written_during_a_merge_but_projections(repository: Repository, operation: str) -> None:
    commit(repository.root, "one", a="1\n")
    git(repository.root, "checkout", "--quiet", "-b", "side")
    commit(repository.root, "two", a="2\n")
    git(repository.root, "checkout", "--quiet", "main")
    commit(repository.root, "three", a="3\n")
    git(repository.root, operation, "side", check=False)
    error = refused(repository, BOTH)
    assert (error.code, f"git {operation} --abort" in error.hint) == ("operation_in_progress", True)
    assert read(repository, BOARD) == b"board 1\n"
    assert apply(repository, BOTH, during_merge=True) == (BOARD, PACKET_FILE)


def test_an_unfinished_transaction_is_reported_and_the_next_writer_finishes_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_while(repository, monkeypatch, replaced=1)
    assert read(repository, BOARD) == b"board 2\n"
    assert read(repository, PACKET_FILE) == b"packet 1\n"
    (left,) = unfinished(repository)
    assert (left.tx, left.command, left.stage, left.paths, left.third_state) == (
        TX,
        "claim",
        "intent",
        (BOARD, PACKET_FILE),
        (),
    )
    assert read(repository, PACKET_FILE) == b"packet 1\n"
    with writing(repository, "next") as opened:
        assert [(done.tx, done.way) for done in opened.finished] == [(TX, "new")]
    assert read(repository, PACKET_FILE) == b"packet 2\n"
    assert unfinished(repository) == []


def test_who_only_reads_waits_for_a_writer_that_is_about_to_finish(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_while(repository, monkeypatch, replaced=1)
    answers = [True, True, False]
    monkeypatch.setattr(recovery, "writer_at_work", lambda _repository: answers.pop(0))
    assert len(unfinished(repository)) == 1
    assert answers == []


def test_cleaning_the_work_tree_takes_nothing_from_recovery(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_while(repository, monkeypatch, replaced=0)
    commit(repository.root, "as it was")
    git(repository.root, "clean", "--quiet", "-fdx")
    with writing(repository, "next"):
        pass
    assert (read(repository, BOARD), read(repository, PACKET_FILE)) == (b"board 2\n", b"packet 2\n")


@pytest.mark.parametrize(
    ("way", "ending"), [("new", (b"board 2\n", b"packet 2\n")), ("old", (b"board 1\n", b"packet 1\n"))]
)
@pytest.mark.parametrize("replaced", [0, 1, 2])
@pytest.mark.parametrize("strange", [BOARD, PACKET_FILE])
def test_a_third_state_waits_for_a_person_and_is_set_aside(
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    replaced: int,
    strange: str,
    way: recovery.Wanted,
    ending: tuple[bytes, bytes],
) -> None:
    die_while(repository, monkeypatch, replaced)
    write(repository, strange, b"typed since\n")
    before = (read(repository, BOARD), read(repository, PACKET_FILE))
    error = refused(repository, BOTH)
    assert (error.code, error.path, "recover --forward|--back" in error.hint) == ("third_state", strange, True)
    assert (read(repository, BOARD), read(repository, PACKET_FILE)) == before
    assert unfinished(repository)[0].third_state == (strange,)

    (done,) = recover(repository, way)
    assert (read(repository, BOARD), read(repository, PACKET_FILE)) == ending
    (aside,) = done.set_aside
    assert (repository.git_dir / aside).read_bytes() == b"typed since\n"
    assert unfinished(repository) == []
    assert recover(repository, way) == []


def test_a_third_state_that_is_a_missing_file_has_nothing_to_set_aside(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_while(repository, monkeypatch, replaced=0)
    (repository.root / BOARD).unlink()
    assert refused(repository, BOTH).code == "third_state"
    (done,) = recover(repository, "old")
    assert done.set_aside == ()
    assert read(repository, BOARD) == b"board 1\n"


def test_several_strange_versions_are_all_kept(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    for number in (b"first\n", b"second\n"):
        write(repository, BOARD, b"board 1\n")
        die_while(repository, monkeypatch, replaced=0)
        write(repository, BOARD, number)
        (done,) = recover(repository, "old")
        kept += done.set_aside
    assert [(repository.git_dir / name).read_bytes() for name in kept] == [b"first\n", b"second\n"]


@pytest.mark.parametrize("first", ["new", "old"])
@pytest.mark.parametrize("second", ["new", "old"])
def test_a_decision_that_was_interrupted_can_be_taken_again_either_way(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, first: recovery.Wanted, second: recovery.Wanted
) -> None:
    die_while(repository, monkeypatch, replaced=1)

    def fail(*_arguments: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "roll", fail)
        with pytest.raises(Killed):
            recover(repository, first)
    assert unfinished(repository)[0].stage == ("intent" if first == "new" else "back")
    recover(repository, second)
    number = b"2" if second == "new" else b"1"
    assert (read(repository, BOARD), read(repository, PACKET_FILE)) == (
        b"board %b\n" % number,
        b"packet %b\n" % number,
    )


def test_going_back_over_a_new_event_removes_it_and_its_folder(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = Story().add("created")
    die_while(repository, monkeypatch, replaced=3, what=plan(*BOTH.changes, events=(created,)))
    assert (repository.root / created.path).exists()
    recover(repository, "old")
    assert not (repository.root / ".GOV/log").exists()
    assert read(repository, BOARD) == b"board 1\n"


def test_a_failure_while_recovering_is_told_and_changes_nothing_for_the_next_try(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_while(repository, monkeypatch, replaced=1)

    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "roll", fail)
        for attempt in (lambda: apply(repository, BOTH), lambda: recover(repository, "old")):
            with pytest.raises(WorkpacketError, match="No space left") as caught:
                attempt()
            assert caught.value.code == "transaction_unfinished"
    recover(repository, "new")
    assert read(repository, PACKET_FILE) == b"packet 2\n"


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data + b"x", lambda _data: b"", bytes.upper])
def test_a_damaged_journal_stops_everything(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    die_while(repository, monkeypatch, replaced=1)
    (journal,) = (repository.git_dir / "workpacket" / "tx").iterdir()
    journal.write_bytes(damage(journal.read_bytes()))
    attempts: tuple[Callable[[], object], ...] = (
        lambda: apply(repository, BOTH),
        lambda: recover(repository, "new"),
        lambda: unfinished(repository),
    )
    for attempt in attempts:
        with pytest.raises(WorkpacketError) as caught:
            attempt()
        assert caught.value.code == "journal_damaged"
    assert read(repository, PACKET_FILE) == b"packet 1\n"


def test_a_journal_under_another_name_is_not_believed(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    die_while(repository, monkeypatch, replaced=1)
    (journal,) = (repository.git_dir / "workpacket" / "tx").iterdir()
    journal.rename(journal.with_name(f"{TX[:-1]}0.intent"))
    assert refused(repository, BOTH).code == "journal_damaged"


def test_each_work_tree_has_its_journal_and_all_share_the_lock(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository.root, "one")
    git(repository.root, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = Repository(tmp_path / "linked", repository.git_dir / "worktrees" / "linked", repository.common_dir)
    die_while(linked, monkeypatch, replaced=1)
    assert unfinished(repository) == []
    assert len(unfinished(linked)) == 1
    with writing(repository, "main"), pytest.raises(WorkpacketError) as caught:
        apply(linked, BOTH)
    assert caught.value.code == "lock_held"


def test_a_git_directory_that_is_gone_is_told(repository: Repository) -> None:
    gone = Repository(repository.root, repository.git_dir / "gone", repository.common_dir)
    assert refused(gone, BOTH).code == "disk_failed"


def test_a_journal_that_cannot_be_read_is_told(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    die_while(repository, monkeypatch, replaced=1)
    (journal,) = (repository.git_dir / "workpacket" / "tx").iterdir()
    journal.rename(journal.with_name("kept"))
    journal.mkdir()
    assert refused(repository, BOTH).code == "path_not_a_file"


def test_a_plan_names_each_file_once_and_leaves_the_log_to_events() -> None:
    with pytest.raises(ValueError, match=r"changes a\.MD twice"):
        plan(edit("A.md", None, b""), edit("a.MD", None, b""))
    with pytest.raises(ValueError, match="written once, and only from events"):
        plan(edit(".GOV/log/WP-1-X/a.json", b"x", None))
    with pytest.raises(ValueError, match="belongs to transaction"):
        Plan("claim", "another", events=(Story().add("created"),))


def test_temporary_files_of_a_command_that_changed_nothing_are_named_and_removed(repository: Repository) -> None:
    with open_workspace(repository, PosixStorage()) as folders:
        entries = (Entry(BOARD, b"board 1\n", b"board 2\n", 0o644),)
        record = Record(TX, "claim", entries, ())
        folders.journal.prepare()
        folders.journal.write_draft(record)
        recovery.stage(folders.work_tree, record)
    place = f".GOV/{record.temporary(0)}"
    assert [(left.path, left.command) for left in recovery.temporaries(repository)] == [(place, "claim")]
    assert read(repository, place) == b"board 2\n"
    with writing(repository, "claim"):
        assert recovery.temporaries(repository) == []  # they may be those of the command that is writing
    assert recovery.tidy(repository) == ()
    assert recovery.temporaries(repository) == []
    assert read(repository, BOARD) == b"board 1\n"
