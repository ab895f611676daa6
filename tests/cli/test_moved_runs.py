"""`runs export --move`: a run that was moved continues in one store only, wherever the move is interrupted."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from cli.places import Ended, Place, run_here
from git.scratch import begin_repository
from langgraph_saver.worlds import conversation, put, texts, thread, values
from workpacket.runtime import RunBlocked
from workpacket.runtime.langgraph import WorkpacketSaver
from workpacket.runtime.stores.sqlite.store import SQLiteStore

MOVE = ("runtime", "runs", "export", "job@k", "--move", "--out", "job.jsonl")
PROGRAM = """
import os, sys
from workpacket.runtime import NotDone, Runtime

def pay() -> str:
    with open("{paid}", "a") as file:
        file.write("paid ")
    if "unknown" in sys.argv:
        raise OSError("the line broke")
    return "receipt"

with Runtime.open() as runtime, runtime.run("job", key="k") as run:
    run.step("first", lambda: 1)
    if "early" in sys.argv:
        raise SystemExit(3)
    print(run.effect("pay", pay))
    if "late" in sys.argv:
        raise SystemExit(3)
    run.step("last", lambda: 2)
"""


@pytest.fixture
def two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Place, Place]:
    for name in ("one", "two"):
        begin_repository(tmp_path / name)
    return Place(tmp_path / "one", capsys), Place(tmp_path / "two", capsys)


def play(place: Place, *words: str) -> Ended:
    try:
        return run_here(PROGRAM.replace("{paid}", str(place.root.parent / "paid")), place, *words)
    except RunBlocked as error:
        return Ended(1, "", error.code)
    except OSError as error:
        return Ended(1, "", str(error))


def paid(place: Place) -> int:
    path = place.root.parent / "paid"
    return len(path.read_text().split()) if path.exists() else 0


def take_over(one: Place, two: Place) -> int:
    return two("runtime", "runs", "import", str(one.root / "job.jsonl")).returncode


def test_a_moved_run_continues_in_the_other_store_only(two: tuple[Place, Place]) -> None:
    one, other = two
    play(one, "early")
    moved = one.json(*MOVE)["data"]
    assert (moved["moved"], moved["output"]) == (True, "job.jsonl")
    refused = play(one)
    assert ("run_moved" in refused.stderr, paid(one)) == (True, 0)
    assert take_over(one, other) == 0
    play(other)  # in another folder, which a person confirms
    assert other.confirm("job@k") == 0
    assert (play(other).stdout.strip(), paid(other)) == ("receipt", 1)
    assert "run_moved" in play(one).stderr
    assert [place("runtime", "runs", "verify").returncode for place in two] == [0, 0]
    assert paid(one) == 1


def test_what_is_shown_of_a_moved_run(two: tuple[Place, Place]) -> None:
    one, _ = two
    play(one, "early")
    one(*MOVE)
    assert [line["state"] for line in one.json("runtime", "runs", "list")["data"]["runs"]] == ["moved"]
    assert one.json("runtime", "runs", "list", "--state", "moved")["data"]["runs"][0]["attention"] == ""
    assert one("resume").stdout == "nothing is unfinished\n"
    assert one("runtime", "questions").stdout == "no questions\n"
    events = one.json("runtime", "runs", "show", "job@k")["data"]["events"]
    assert events[-1]["type"] == "run.handed_over"
    assert events[-1]["data"]["to"] == str(one.root / "job.jsonl")
    for words in (("cancel", "job@k"), ("signal", "job@k", "go")):
        assert one("runtime", *words).returncode == 85, words
    assert one("resume", "job@k").returncode == 85
    assert one("runtime", "runs", "verify").returncode == 0


def test_a_person_takes_back_a_run_that_no_other_store_continues(two: tuple[Place, Place]) -> None:
    one, _ = two
    play(one, "early")
    one(*MOVE)
    assert one.confirm("job@k") == 0
    assert (play(one).stdout.strip(), paid(one)) == ("receipt", 1)
    assert one.json("runtime", "runs", "list")["data"]["runs"][0]["state"] == "completed"


def test_taking_it_back_does_not_cover_a_later_move(two: tuple[Place, Place]) -> None:
    one, _ = two
    play(one, "early")
    one(*MOVE)
    assert one.confirm("job@k") == 0
    play(one, "late")
    assert one(*MOVE[:-1], "again.jsonl").returncode == 0
    assert "run_moved" in play(one).stderr
    assert paid(one) == 1


def test_a_move_that_was_cut_short_is_finished_by_the_same_command(
    two: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    play(one, "early")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device", "job.jsonl")))
        assert one(*MOVE).returncode == 6
    assert not (one.root / "job.jsonl").exists()
    assert "run_moved" in play(one).stderr
    assert one(*MOVE).returncode == 0
    first = (one.root / "job.jsonl").read_bytes()
    assert one(*MOVE[:-1], "again.jsonl").returncode == 0
    assert (one.root / "again.jsonl").read_bytes() == first
    assert take_over(one, other) == 0
    assert other.json("runtime", "runs", "list")["data"]["runs"][0]["state"] == "stopped"


def test_an_effect_of_unknown_outcome_is_still_unknown_where_it_was_moved_to(two: tuple[Place, Place]) -> None:
    one, other = two
    play(one, "unknown")
    assert one(*MOVE).returncode == 0
    assert one("resume").stdout == "nothing is unfinished\n"
    assert take_over(one, other) == 0
    assert other("resume", "job@k").returncode == 74
    assert paid(one) == 1


def test_a_finished_run_is_copied_and_stays_finished_in_both(two: tuple[Place, Place]) -> None:
    one, other = two
    play(one)
    assert one.json(*MOVE)["data"]["moved"] is False
    assert take_over(one, other) == 0
    states = [place.json("runtime", "runs", "list")["data"]["runs"][0]["state"] for place in two]
    assert states == ["completed", "completed"]
    assert paid(one) == 1


def test_what_is_refused_moves_nothing(two: tuple[Place, Place]) -> None:
    one, _ = two
    play(one, "early")
    before = one("runtime", "runs", "export", "job@k").stdout
    for words in (MOVE[:-2], (*MOVE, "--format", "cloudevents"), (*MOVE, "--raw")):
        assert one(*words).returncode == 2, words
    assert one(*MOVE[:-1], "no/such/folder").returncode == 6
    (one.root / "job.jsonl").write_text("mine")
    assert one(*MOVE).returncode == 6
    assert (one.root / "job.jsonl").read_text() == "mine"
    with closing(SQLiteStore(one.root / ".git/workpacket/runs.db")) as store:
        lease = store.acquire("job@k", f"{os.uname().nodename}/{os.getpid()}/0/busy", 30.0)
        assert one(*MOVE[:-1], "busy.jsonl").returncode == 44
        assert not (one.root / "busy.jsonl").exists()
        store.release(lease)
    assert one("runtime", "runs", "export", "job@k").stdout == before


def test_a_plain_export_of_a_moved_run_does_not_continue_by_itself(two: tuple[Place, Place]) -> None:
    one, other = two
    play(one, "early")
    one(*MOVE[:-1], "moved.jsonl")
    one("runtime", "runs", "export", "job@k", "--out", "job.jsonl")
    assert take_over(one, other) == 0
    assert "run_moved" in play(other).stderr


def test_a_moved_thread_is_continued_by_the_other_store_only(two: tuple[Place, Place]) -> None:
    one, other = two
    stores = [place.root / ".git/workpacket/runs.db" for place in two]
    with WorkpacketSaver.open(stores[0]) as stale, WorkpacketSaver.open(stores[0]) as saver:
        made = conversation(saver, "t", 3)
        assert values(stale, made[-1])["text"] == texts(2)  # has read the thread before it is moved
        move = (*MOVE[:3], "langgraph/t", *MOVE[4:])
        assert one.json(*move)["data"]["moved"] is True
        assert one(*move[:-1], "again.jsonl").returncode == 0
        assert (one.root / "again.jsonl").read_bytes() == (one.root / "job.jsonl").read_bytes()
        for late in (saver, stale):
            with pytest.raises(RunBlocked, match="was moved") as caught:
                put(late, made[-1], {"text": ["late"]})
            assert caught.value.code == "run_moved"
            with pytest.raises(RunBlocked, match="was moved"):
                late.put_writes(made[-1], [("text", "late")], "task")
        assert values(saver, made[-1])["text"] == texts(2)
        saver.copy_thread("t", "mine")
        assert saver.get_tuple(thread("mine")) is not None
    assert take_over(one, other) == 0
    with WorkpacketSaver.open(stores[1]) as saver:
        put(saver, made[-1], {"text": ["next"]})
        found = saver.get_tuple(thread("t"))
        assert found is not None
        assert found.checkpoint["channel_values"]["text"] == ["next"]
