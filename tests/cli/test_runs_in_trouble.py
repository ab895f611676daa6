"""What the commands say when something is wrong around a run: each trouble has one name, an exit status and choices.

No trouble strands a run: after each of them stands what is done about it, and that the run then goes on.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from cli.places import CONSOLE, Ended, Place, environment, expire_lease, until
from mounts import PRIVATE_MOUNT, can_mount
from workpacket.report.catalogue import catalogue
from workpacket.runtime.holders import SystemClock

SHORT_LEASE = f"from workpacket.runtime import scripted; scripted.LEASE_SECONDS = 0.4; {CONSOLE}"
# A program that is at work until it is told to end.
AT_WORK = ("sh", "-c", "touch up; while ! test -e go; do sleep 0.05; done; echo late >> done")


def assert_named(text: Ended, as_json: Ended, code: str) -> None:
    """The same in both forms: the code, its exit status, and what to do."""
    reason = catalogue()[code]
    assert text.returncode == as_json.returncode == reason.exit_code, text.stderr
    assert f"({code})" in text.stderr
    assert "help: " in text.stderr
    said = json.loads(as_json.stdout)
    assert (said["ok"], said["exit_code"]) == (False, reason.exit_code)
    (finding,) = said["findings"]
    assert (finding["code"], finding["hint"]) == (code, said["data"]["next"])
    assert said["data"]["next"]


def refused(place: Place, code: str, *words: str) -> None:
    assert_named(place(*words), place(*words, "--json"), code)


def store_of(place: Place) -> Path:
    return place.root / ".git" / "workpacket" / "runs.db"


def program(place: Place, *words: str, code: str = CONSOLE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=place.root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def mounted(place: Place, preparation: str, *commands: Sequence[str]) -> list[Ended]:
    """The commands one after the other, where the store lies on a mount of their own."""
    if not can_mount():
        pytest.skip("this machine does not let us mount anything")
    script = """
import subprocess, sys, json
prepare, *commands = json.loads(sys.argv[1])
subprocess.run(["sh", "-ec", prepare], check=True)
def call(words):
    if isinstance(words, str):
        return [subprocess.run(["sh", "-c", words], capture_output=True).returncode, "", ""]
    done = subprocess.run([sys.executable, "-c", sys.argv[2], *words], capture_output=True, text=True)
    return [done.returncode, done.stdout, done.stderr]
print(json.dumps([call(words) for words in commands]))
"""
    every = json.dumps([preparation, *commands])
    done = subprocess.run(
        [*PRIVATE_MOUNT, sys.executable, "-c", script, every, CONSOLE],
        cwd=place.root, env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [Ended(*answer) for answer in json.loads(done.stdout)]


# ---- the place of the store ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["runtime", "run", "start", "other"],
        ["runtime", "run", "step", "nightly@00000001#1", "a", "--", "touch", "done"],
        ["runtime", "cancel", "nightly"],
        ["runtime", "runs", "list"],
        ["runs", "export", "--raw"],
        ["resume"],
        ["runtime", "doctor"],
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_a_place_that_can_only_be_read_is_named(place: Place, words: list[str]) -> None:
    run = place.start("nightly")
    if os.geteuid() == 0:  # whom permissions do not stop
        prepare = 'd=.git/workpacket; mount --bind "$d" "$d"; mount -o remount,bind,ro "$d"'
        at = words.index("--") if "--" in words else len(words)
        text, as_json = mounted(place, prepare, words, [*words[:at], "--json", *words[at:]])
        assert_named(text, as_json, "store_read_only")
    else:
        for path in (*store_of(place).parent.iterdir(), store_of(place).parent):
            path.chmod(0o555 if path.is_dir() else 0o444)
        refused(place, "store_read_only", *words)
        for path in (store_of(place).parent, *store_of(place).parent.iterdir()):
            path.chmod(0o700 if path.is_dir() else 0o600)
    assert not (place.root / "done").exists()  # what cannot be recorded is not begun
    assert place("runtime", "run", "step", run, "a", "--", "true").returncode == 0


FULL = """
d=.git/workpacket; cp -r "$d" saved
mount -t tmpfs -o size=1m tmpfs "$d"; cp -r saved/. "$d"
"""
FILL = "cat /dev/zero > .git/workpacket/fill"


def test_a_full_disk_is_named_and_the_run_goes_on_when_there_is_room(place: Place) -> None:
    run = place.start("nightly")
    step = ["runtime", "run", "step", run, "a"]
    answers = mounted(
        place, FULL, [*step, "--result", '"before"'], FILL,
        [*step[:-1], "b", "--", "touch", "done"], [*step[:-1], "b", "--json", "--", "touch", "done"],
        ["runtime", "runs", "list"], ["runtime", "runs", "list", "--json"],
        "rm .git/workpacket/fill", ["runtime", "runs", "verify"],
        [*step, "--result", '"other"'], [*step[:-1], "b", "--", "true"],
    )  # fmt: skip
    before, _, *full, _, verified, same, after = answers
    assert_named(full[0], full[1], "disk_full")
    assert_named(full[2], full[3], "disk_full")
    assert not (place.root / "done").exists()
    assert (before.stdout, same.stdout) == ('"before"\n', '"before"\n')
    assert (verified.returncode, after.returncode) == (0, 0), after.stderr


def test_a_damaged_store_is_named_and_a_backup_goes_on(place: Place) -> None:
    place("runtime", "run", "stop", place.start("nightly"), "--code", "stalled")
    good = store_of(place).read_bytes()
    store_of(place).write_bytes(good[:4096] + b"\xff" * (len(good) - 4096))
    for words in (
        ["runtime", "run", "start", "nightly"],
        ["runtime", "runs", "list"],
        ["resume", "nightly"],
        ["runtime", "doctor"],
    ):
        refused(place, "store_corrupt", *words)
    store_of(place).write_bytes(good)
    assert place.start("nightly") == "nightly@00000001#2"


def test_a_damaged_record_is_named_and_a_restored_backup_goes_on(place: Place) -> None:
    run = place.start("nightly")
    assert place("runtime", "run", "step", run, "a", "--result", "1").returncode == 0
    assert place("runtime", "run", "stop", run, "--code", "stalled").returncode == 43
    assert place("runtime", "runs", "back-up", "b.db").returncode == 0
    with closing(sqlite3.connect(store_of(place), isolation_level=None)) as db:
        db.execute("DROP TRIGGER events_stay_as_they_are")
        db.execute("UPDATE events SET data = '{}' WHERE type = 'step.completed'")
    refused(place, "log_damaged", "run", "start", "nightly")
    said = place("runtime", "run", "start", "nightly").stderr
    assert "workpacket runtime runs restore FILE" in said
    assert place("runtime", "runs", "restore", "b.db").returncode == 0
    again = place.start("nightly")
    assert again == "nightly@00000001#2"
    assert place("runtime", "run", "step", again, "a", "--result", "2").stdout == "1\n"


HOLDER = """
import sys
from pathlib import Path
from workpacket.runtime.stores.sqlite.files import SideFile

file = SideFile(Path(sys.argv[1]))
file.lock(1)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_locked_store_names_the_process_that_holds_it_and_goes_on_without_it(place: Place) -> None:
    run = place.start("nightly")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, f"{store_of(place)}.lock"],
        env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        said, as_json = place("runtime", "doctor"), place("runtime", "doctor", "--json")
        assert_named(said, as_json, "store_busy")
        assert f"was locked for 2 s by process {holder.pid} (store_busy)" in said.stderr
        assert f"help: wait for process {holder.pid} or end it (kill {holder.pid})" in said.stderr
    finally:
        holder.kill()
        holder.communicate()
    assert place("runtime", "run", "step", run, "a", "--", "true").returncode == 0


def test_a_newer_store_is_named_for_every_command_that_writes(place: Place) -> None:
    run = place.start("nightly")

    def schema(version: int) -> None:
        with closing(sqlite3.connect(store_of(place), isolation_level=None)) as db:
            db.execute(f"PRAGMA user_version = {version}")

    with closing(sqlite3.connect(store_of(place))) as db:
        (present,) = db.execute("PRAGMA user_version").fetchone()
    schema(99)
    for words in (
        ["runtime", "run", "start", "other"],
        ["runtime", "run", "checkpoint", run],
        ["runtime", "cancel", "nightly"],
    ):
        refused(place, "newer_schema", *words)
    assert place("runtime", "runs", "export", "--raw", "--out", "all.sql").returncode == 0
    schema(present)
    assert place("runtime", "run", "checkpoint", run).returncode == 0


@pytest.mark.on_disk
def test_an_older_copy_of_the_store_is_named_and_can_be_accepted(place: Place) -> None:
    run = place.start("nightly")
    older = store_of(place).read_bytes()
    assert place("runtime", "run", "step", run, "a", "--result", "1").returncode == 0
    store_of(place).write_bytes(older)
    refused(place, "store_rolled_back", "run", "start", "nightly")
    refused(place, "store_rolled_back", "runs", "list")
    assert place("runtime", "doctor", "--accept-rollback").returncode == 0
    assert place("runtime", "run", "step", run, "a", "--result", "2").stdout == "2\n"


def test_a_backup_is_restored_by_command(place: Place) -> None:
    run = place.start("nightly")
    assert place.json("runtime", "runs", "back-up", "b.db")["data"] == {
        "output": "b.db", "runs": 1, "problems": [], "next": "to restore it: workpacket runtime runs restore b.db",
    }  # fmt: skip
    place("runtime", "run", "step", run, "a", "--result", "1")
    place("runtime", "run", "stop", run, "--code", "stalled")
    assert place("runtime", "runs", "back-up", "b.db").returncode == catalogue()["file_unwritable"].exit_code
    done = place("runtime", "runs", "restore", "b.db")
    assert done.returncode == 0, done.stderr
    assert "nightly@00000001: had 3 events, has 1" in done.stdout
    assert place.start("nightly") == "nightly@00000001#2"


def test_what_is_no_backup_is_not_restored(place: Place) -> None:
    place("runtime", "run", "stop", place.start("nightly"), "--code", "stalled")
    (place.root / "b.db").write_text("no backup")
    refused(place, "store_corrupt", "runtime", "runs", "restore", "b.db")
    assert place("runtime", "runs", "restore", "missing.db").returncode == 2
    assert place("runtime", "runs", "back-up").returncode == 2
    assert place.start("nightly") == "nightly@00000001#2"


# ---- the run itself ------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_is_missing_is_named_and_begins_nothing(place: Place) -> None:
    place("runtime", "run", "stop", place.start("nightly"), "--code", "stalled")
    refused(place, "checkpoint_missing", "run", "start", "nightly", "--from", "nothing")
    refused(place, "checkpoint_missing", "run", "start", "nightly", "--retry-token", "0" * 32)
    assert place.json("runtime", "runs", "show", "nightly")["data"]["attempt"] == 1
    assert place.start("nightly") == "nightly@00000001#2"


def test_a_moved_repository_is_named(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    place("runtime", "run", "stop", place.start("nightly"), "--code", "stalled")
    moved = tmp_path_factory.mktemp("elsewhere") / "moved"
    place.root.rename(moved)
    there = Place(moved, place.capture)
    refused(there, "identity_changed", "run", "start", "nightly")
    assert there.confirm("nightly") == 0
    assert there.start("nightly") == "nightly@00000001#2"
    moved.rename(place.root)


def test_a_clock_that_goes_back_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    run = place.start("nightly")
    real = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: real(clock) - 10**14)  # three years
    assert place("runtime", "run", "step", run, "a", "--result", "1").returncode == 0
    refused(place, "run_busy", "run", "start", "nightly", "--owner", str(os.getppid()))
    assert place("runtime", "run", "stop", run, "--code", "stalled").returncode == 43
    assert place.start("nightly") == "nightly@00000001#2"
    assert place("runtime", "runs", "verify").returncode == 0
    events = place.json("runtime", "runs", "show", "nightly")["data"]["events"]
    assert [event["version"] for event in events] == list(range(1, len(events) + 1))
    assert events[1]["time"] < events[0]["time"]  # said as it was


def test_a_run_is_taken_over_only_where_it_never_was(place: Place) -> None:
    run = place.start("nightly")
    place("runtime", "run", "stop", run)
    assert place("runtime", "runs", "export", "nightly", "--out", "one").returncode == 0
    refused(place, "view_conflict", "runs", "import", str(place.root / "one"))
    assert place("runtime", "runs", "prune", "--older-than", "0", "--yes").returncode == 0
    refused(place, "view_conflict", "runs", "import", str(place.root / "one"))
    assert place.start("nightly") == "nightly@00000002#1"  # the name of a run that is gone is not given again


# ---- several processes ---------------------------------------------------------------------------------------------


def test_two_scripts_do_not_work_on_one_run(place: Place) -> None:
    run = place.start("nightly")
    refused(place, "run_busy", "run", "start", "nightly", "--owner", str(os.getppid()))
    assert place("runtime", "run", "stop", run).returncode == 0
    assert place.start("nightly") == "nightly@00000002#1"


def test_commands_at_the_same_time_with_one_handle_lose_nothing(place: Place) -> None:
    run = place.start("nightly")
    names = [f"part-{number}" for number in range(4)]
    owner = str(os.getpid())
    at_once = {
        name: program(place, "runtime", "run", "step", run, name, "--owner", owner, "--", "true") for name in names
    }
    ended = {name: (step.communicate(timeout=60), step.returncode) for name, step in at_once.items()}
    assert {status for _, status in ended.values()} <= {0, catalogue()["run_busy"].exit_code}, ended
    events = place.json("runtime", "runs", "show", "nightly")["data"]["events"]
    done = {event["data"]["step"] for event in events if event["type"] == "step.completed"}
    assert done >= {name for name, (_, status) in ended.items() if status == 0}
    assert [place("runtime", "run", "step", run, name, "--", "true").returncode for name in names] == [0] * 4
    assert place("runtime", "runs", "verify").returncode == 0


@pytest.mark.on_disk
def test_a_stopped_step_that_wakes_up_after_its_lease_cannot_write(place: Place) -> None:
    run = place.start("nightly")
    zombie = program(
        place, "runtime", "run", "step", run, "late", "--owner", str(os.getpid()), "--", *AT_WORK, code=SHORT_LEASE
    )
    try:
        until((place.root / "up").exists)
        zombie.send_signal(signal.SIGSTOP)
        until(
            lambda: place("runtime", "run", "start", "nightly").returncode == 47
        )  # the lease is over, the program is not
        refused(place, "orphan_alive", "run", "start", "nightly")
        planned = place("resume", "nightly", "--plan")
        assert (
            planned.returncode,
            "next: Stop the process that `workpacket runtime doctor` names" in planned.stdout,
        ) == (47, True)
        found = place.json("runtime", "doctor")
        assert (found["exit_code"], "orphan_alive" in {row["code"] for row in found["data"]["checks"]}) == (47, True)
        before = len(place.json("runtime", "runs", "show", "nightly")["data"]["events"])
        (place.root / "go").touch()  # the program ends while nobody can record its result
        until((place.root / "done").exists)
        zombie.send_signal(signal.SIGCONT)
        _, said = zombie.communicate(timeout=60)
    finally:
        zombie.kill()
        zombie.communicate()
    assert (zombie.returncode, "(lease_lost)" in said) == (73, True), said
    assert len(place.json("runtime", "runs", "show", "nightly")["data"]["events"]) == before
    assert place.start("nightly") == "nightly@00000001#2"
    again = place("runtime", "run", "step", "nightly@00000001#2", "late", "--", *AT_WORK)
    assert (again.returncode, (place.root / "done").read_text()) == (0, "late\nlate\n")
    assert "step.completed late (possibly done before)" in place("runtime", "runs", "show", "nightly").stdout


def test_a_tail_follows_a_run_until_it_ends(place: Place) -> None:
    run = place.start("nightly")
    tail = program(place, "runtime", "runs", "tail", "nightly", "--follow")
    as_json = program(place, "runtime", "runs", "tail", "nightly", "--follow", "--json")
    assert tail.stdout is not None
    assert "run.started" in tail.stdout.readline()
    place("runtime", "run", "step", run, "a", "--result", "1")
    assert "step.completed a" in tail.stdout.readline()
    assert tail.poll() is None
    place("runtime", "run", "stop", run)
    assert "run.completed" in tail.stdout.readline()
    assert (tail.communicate(timeout=60), tail.returncode) == (("", ""), 0)
    said = json.loads(as_json.communicate(timeout=60)[0])
    assert [event["type"] for event in said["data"]["events"]] == ["run.started", "step.completed", "run.completed"]


def test_a_tail_ends_with_a_run_that_was_lost(place: Place) -> None:
    place.start("nightly")
    tail = program(place, "runtime", "runs", "tail", "nightly", "--follow")
    assert tail.stdout is not None
    assert "run.started" in tail.stdout.readline()
    expire_lease(place)  # its script is gone without a word
    out, _ = tail.communicate(timeout=60)
    assert (out, tail.returncode) == ("", 0)
