"""Runs on the command line, as scripts and people call them: real processes, real kills, every exit status."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.commands import STUB, STUB_PATH
from cli.places import CONSOLE, Place, environment, expire_lease, until
from workpacket.report.catalogue import catalogue
from workpacket.runtime.records.events import Event
from workpacket.runtime.stores.sqlite.store import SQLiteStore

# ---- run ---------------------------------------------------------------------------------------------------------


def test_a_step_is_done_once_and_then_answered_from_the_store(place: Place) -> None:
    run = place.start("nightly")
    assert run == "nightly@00000001#1"
    first = place("runtime", "run", "step", run, "count", "--", "sh", "-c", "echo x >> seen; wc -l < seen")
    again = place("runtime", "run", "step", run, "count", "--", "sh", "-c", "echo x >> seen; wc -l < seen")
    assert (first.returncode, first.stdout.strip(), again.stdout.strip()) == (0, "1", "1")
    assert (place.root / "seen").read_text() == "x\n"


def test_a_step_records_status_digest_and_tail(place: Place) -> None:
    answer = json.loads(
        place("runtime", "run", "step", place.start("nightly"), "say", "--json", "--", "printf", "abc").stdout
    )
    stored = answer["data"]["result"]
    assert stored["exit_code"] == 0
    assert stored["stdout"] == {
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "length": 3, "tail": "abc",
    }  # fmt: skip
    assert answer["data"]["done_before"] is False


def test_options_behind_two_dashes_belong_to_the_program(place: Place) -> None:
    done = place("runtime", "run", "step", place.start("nightly"), "say", "--", "echo", "--help", "--json")
    assert done.stdout == "--help --json\n"


def test_a_step_that_fails_may_be_tried_again(place: Place) -> None:
    run = place.start("nightly")
    program = ("--", "sh", "-c", "test -e ready || { echo not ready >&2; exit 3; }")
    failed = place("runtime", "run", "step", run, "wait", *program)
    assert failed.returncode == 41
    assert "exit status 3: not ready (worker_failed)" in failed.stderr
    (place.root / "ready").touch()
    assert place("runtime", "run", "step", run, "wait", *program).returncode == 0


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["step", "RUN", "done", "--", "echo", "other"], 63, "step_changed"),
        (["step", "RUN", "slow", "--timeout", "0.3", "--", "sleep", "30"], 42, "worker_timeout"),
        (["step", "RUN", "no", "--", "no-such-program"], 41, "worker_failed"),
        (["step", "nightly@00000001#7", "a", "--", "true"], 73, "lease_lost"),
        (["step", "nobody@00000001#1", "a", "--", "true"], 68, "checkpoint_missing"),
        (["step", "RUN", "a"], 2, "missing_argument"),
        (["step", "RUN", "a/b", "--", "true"], 2, "invalid_value"),
        (["step", "RUN", "a", "--result", "{"], 2, "invalid_value"),
        (["stop", "RUN", "--reason", "verification_faild"], 2, "unknown_code"),
        (["stop", "RUN", "--reason", "verification_failed"], 20, ""),
        (["stop", "RUN", "--reason", "run_cancelled"], 130, ""),
        (["start", "other", "--from", "nothing"], 68, "checkpoint_missing"),
        (["start", "a/b"], 2, "invalid_value"),
        (["start", "other", "--input", "x"], 2, "invalid_value"),
        (["start", "other", "--owner", "me"], 2, "invalid_value"),
        (["pause", "RUN"], 2, "invalid_value"),
        ([], 2, "missing_argument"),
    ],
)
def test_each_refusal_has_its_exit_status(place: Place, words: list[str], status: int, code: str) -> None:
    run = place.start("nightly")
    place("runtime", "run", "step", run, "done", "--", "echo", "this")
    ended = place("runtime", "run", *[run if word == "RUN" else word for word in words])
    assert ended.returncode == status, ended.stderr
    assert not code or f"({code})" in ended.stderr


def test_values_checkpoints_and_the_end_are_recorded(place: Place) -> None:
    run = place.start("nightly", "--input", "month=10,11")
    assert place("runtime", "run", "step", run, "rows", "--result", '{"n": 2}').stdout == '{"n": 2}\n'
    assert place("runtime", "run", "step", run, "rows", "--result", '{"n": 9}').stdout == '{"n": 2}\n'
    token = place(
        "runtime", "run", "checkpoint", run, "--cursor", '{"page": 7}', "--name", "seven", "--token"
    ).stdout.strip()
    assert place("runtime", "run", "stop", run, "--code", "stalled").returncode == 43
    again = place.json("runtime", "run", "start", "nightly", "--input", "month=10,11", "--retry-token", token)
    assert (again["data"]["attempt"], again["data"]["cursor"]) == (2, {"page": 7})
    ended = place("runtime", "run", "stop", again["data"]["handle"])
    assert (ended.returncode, ended.stdout) == (0, "nightly@00000001 completed\n")
    assert place("runtime", "run", "step", again["data"]["handle"], "new", "--", "true").returncode == 63


def test_nobody_can_start_from_a_stub(place: Place) -> None:
    stub = place.root / STUB_PATH
    stub.parent.mkdir(parents=True)
    stub.write_text(STUB, "utf-8")
    refused = place("runtime", "run", "start", "work", "--packet", "WP-1-Parser-v1")
    assert (refused.returncode, "is only a stub (packet_not_active)" in refused.stderr) == (3, True)
    assert place("runtime", "run", "start", "work", "--packet", "WP-1-Nothing-v1").returncode == 3
    (place.root / ".GOV/task_packets/WP-1-Parser-v1.md").write_text("# Packet\n", "utf-8")
    assert place.start("work", "--packet", "WP-1-Parser-v1") == "WP-1-Parser-v1/work@00000001#1"


def test_a_script_that_was_killed_goes_on_where_it_was(place: Place) -> None:
    text = """
        run=$(wp run start nightly --owner $$)
        wp run step "$run" one -- sh -c 'echo one >> done'
        wp run step "$run" two -- sh -c 'echo two >> done; test -e go || { touch waiting; sleep 30; }'
    """
    script = place.script(text)
    until((place.root / "waiting").exists)
    script.kill()
    for pipe in (script.stdout, script.stderr):
        assert pipe is not None
        pipe.close()  # the step goes on and has them open too
    script.wait()
    busy = place("runtime", "run", "start", "nightly")
    assert (busy.returncode, "(run_busy)" in busy.stderr) == (44, True)  # its program is still at work
    (step,) = children_of_step(place)
    os.kill(step, signal.SIGTERM)  # ends the step and its program
    until(lambda: place("resume", "nightly", "--plan").returncode == 0)
    (place.root / "go").touch()
    second = place.script(text + '\nwp run stop "$run"')
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert (place.root / "done").read_text().split() == ["one", "two", "two"]
    assert "step.completed two (possibly done before)" in place("runtime", "runs", "show", "nightly").stdout, out


def children_of_step(place: Place) -> list[int]:
    """The processes that record the step which is running now."""
    events = place.json("runtime", "runs", "show", "nightly")["data"]["events"]
    return [int(event["data"]["processes"][0].split("/")[1]) for event in events if event["type"] == "step.started"][
        -1:
    ]


def test_a_stopped_script_whose_run_was_taken_over_cannot_write(place: Place) -> None:
    first = place.start("nightly")
    with closing(sqlite3.connect(place.root / ".git/workpacket/runs.db")) as db:
        (holder,) = db.execute("SELECT holder FROM leases").fetchone()
    assert f"/{os.getpid()}/" in holder
    busy = place("runtime", "run", "start", "nightly")
    assert busy.returncode == 44
    expire_lease(place)  # an hour without a command: the owner was stopped
    second = place.start("nightly")
    assert second == "nightly@00000001#2"
    zombie = place("runtime", "run", "step", first, "late", "--", "touch", "late")
    assert (zombie.returncode, (place.root / "late").exists()) == (73, False)
    assert place("runtime", "run", "step", second, "late", "--", "true").returncode == 0


def test_a_step_that_is_told_to_end_stops_its_program(place: Place) -> None:
    run = place.start("nightly")
    command = [sys.executable, "-c", CONSOLE, "run", "step", run, "long", "--", "sh", "-c", "touch up; sleep 30"]
    step = subprocess.Popen(command, cwd=place.root, env=environment())
    until((place.root / "up").exists)
    place("runtime", "cancel", "nightly", "--reason", "wrong month")
    assert step.wait(60) == 130
    assert place("runtime", "run", "step", run, "next", "--", "true").returncode == 130


def test_a_signal_sent_on_the_command_line_reaches_the_program(place: Place) -> None:
    program = (
        "from workpacket.runtime import Runtime\n"
        "with Runtime.open() as runtime, runtime.run('order') as run:\n"
        "    print(run.wait_for('paid'))\n"
    )
    waiting = subprocess.Popen(
        [sys.executable, "-c", program], cwd=place.root, env=environment(), stdout=subprocess.PIPE, text=True
    )
    until(lambda: "waits" in place("runtime", "runs", "show", "order").stdout)
    assert "for the signal paid" in place("runtime", "runs", "show", "order").stdout
    for _ in range(2):
        sent = place("runtime", "signal", "order", "paid", "--value", '{"amount": 100}', "--once", "payment-7")
        assert (sent.returncode, sent.stdout.splitlines()[0]) == (0, "order@00000001 has the signal paid")
    assert waiting.communicate(timeout=60)[0] == "{'amount': 100}\n"
    assert place("runtime", "signal", "order", "paid").returncode != 0, "a finished run receives no signals"
    assert place("runtime", "signal", "order", "paid", "--value", "{").returncode == 2


# ---- looking -----------------------------------------------------------------------------------------------------


@pytest.mark.on_disk
def test_a_place_without_runs_is_looked_at_and_left_as_it_is(place: Place) -> None:
    assert place("runtime", "runs", "list").stdout == "no runs\n"
    assert place("resume").stdout == "nothing is unfinished\n"
    assert place("runtime", "runs", "verify").returncode == place("runtime", "doctor").returncode == 0
    assert place("runtime", "runs", "show", "x").returncode == 68
    assert not (place.root / ".git/workpacket").exists()


def test_what_a_run_published_is_shown_while_it_works_and_the_child_that_waits_is_named(place: Place) -> None:
    program = (
        "from workpacket.runtime import Runtime\n"
        "def month(run, name):\n"
        "    run.publish('rows', {'read': 12})\n"
        "    return run.wait_for('go')\n"
        "with Runtime.open() as runtime, runtime.run('year') as run:\n"
        "    run.child(month, 'May')\n"
    )
    working = subprocess.Popen([sys.executable, "-c", program], cwd=place.root, env=environment())
    until(lambda: "waits" in place("runtime", "runs", "show", "year").stdout)
    shown = place("runtime", "runs", "show", "year").stdout
    assert re.search(r"waits +for the signal go in month\n", shown)
    assert re.search(r'published month/rows +{"read": 12}\n', shown)
    assert place.json("runtime", "runs", "show", "year")["data"]["published"] == {"month/rows": {"read": 12}}
    assert place("runtime", "signal", "year", "go").returncode == 0
    assert working.wait(60) == 0


def test_runs_are_listed_shown_and_compared(place: Place) -> None:
    one = place.start("nightly", "--input", "month=10")
    place("runtime", "run", "step", one, "a", "--", "echo", "1")
    place("runtime", "run", "stop", one)
    two = place.start("nightly", "--input", "month=11")
    place("runtime", "run", "step", two, "a", "--", "echo", "2")
    place("runtime", "run", "stop", two, "--code", "stalled")
    listed = place.json("runtime", "runs", "list")["data"]["runs"]
    assert [(run["run"], run["state"], run["attention"]) for run in listed] == [
        ("nightly@00000001", "completed", ""), ("nightly@00000002", "stopped", "stalled"),
    ]  # fmt: skip
    assert [run["run"] for run in place.json("runtime", "runs", "list", "--state", "stopped")["data"]["runs"]] == [
        two[:-2]
    ]
    assert "next: workpacket resume nightly@00000002 --plan" in place("runtime", "runs", "list").stdout
    assert "stalled (Nothing happened for too long)" in place("runtime", "runs", "show", two[:-2]).stdout
    assert place("runtime", "runs", "show", "nightly").returncode == 68  # could be either
    differing = {
        row["what"] for row in place.json("runtime", "runs", "diff", one[:-2], two[:-2])["data"]["differences"]
    }
    assert differing == {"status", "input month", "step a"}
    tail = place.json("runtime", "runs", "tail", two[:-2], "--lines", "2")["data"]["events"]
    assert [event["type"] for event in tail] == ["step.completed", "run.stopped"]


def test_a_long_run_is_shown_in_pages(place: Place) -> None:
    run = place.start("nightly")
    place("runtime", "run", "step", run, "a", "--", "echo", "1")
    place("runtime", "run", "stop", run)
    every = [event["version"] for event in place.json("runtime", "runs", "show", "nightly")["data"]["events"]]
    last = place("runtime", "runs", "show", "nightly", "--lines", "2").stdout
    assert f"earlier events: workpacket runtime runs show {run[:-2]} --before {every[-2]}\n" in last
    assert "run.started" not in last
    before = place.json("runtime", "runs", "show", "nightly", "--before", str(every[-2]))["data"]["events"]
    assert [event["version"] for event in before] == every[:-2]
    assert "events before these" not in place("runtime", "runs", "show", "nightly").stdout


def test_a_run_moves_to_another_place_and_is_pruned(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    run = place.start("nightly")
    place("runtime", "run", "stop", run)
    assert place("runtime", "runs", "export", "nightly", "--out", "run.jsonl").returncode == 0
    other = Place(tmp_path_factory.mktemp("other"), place.capture)
    assert other("runtime", "runs", "import", str(place.root / "run.jsonl")).returncode == 0
    assert other.json("runtime", "runs", "show", "nightly")["data"]["state"] == "completed"
    (place.root / "bad.jsonl").write_text("{}\n")
    assert other("runtime", "runs", "import", str(place.root / "bad.jsonl")).returncode == 70
    assert "would be removed" in place("runtime", "runs", "prune", "--older-than", "0").stdout
    assert place.json("runtime", "runs", "prune", "--older-than", "0", "--yes")["data"]["removed"] == [
        "nightly@00000001"
    ]
    assert place("runtime", "runs", "list").stdout == "no runs\n"


def test_a_run_is_exported_as_cloudevents(place: Place) -> None:
    run = place.start("nightly")
    place("runtime", "run", "stop", run)
    events = [
        json.loads(line)
        for line in place("runtime", "runs", "export", "nightly", "--format", "cloudevents").stdout.splitlines()
    ]
    assert [event["type"] for event in events] == ["dev.workpacket.run.started", "dev.workpacket.run.completed"]
    assert {event["source"] for event in events} == {"/workpacket/nightly%4000000001"}
    assert place("runtime", "runs", "export", "--raw", "--format", "cloudevents").returncode == 2


def test_what_differs_is_asked_and_the_answer_is_kept(place: Place) -> None:
    run = place.start("nightly", "--code-version", "1")
    place("runtime", "run", "stop", run, "--code", "stalled")
    changed = place("runtime", "run", "start", "nightly", "--code-version", "2")
    assert (changed.returncode, "(code_changed)" in changed.stderr) == (61, True)
    assert place.confirm("nightly") == 0
    assert place("runtime", "run", "start", "nightly", "--code-version", "3").returncode == 61
    assert place.start("nightly", "--code-version", "2") == "nightly@00000001#2"
    place("runtime", "run", "stop", "nightly@00000001#2", "--code", "stalled")
    place("runtime", "cancel", "nightly")
    asked = place("resume", "nightly")
    assert (asked.returncode, "CONFIRM run_cancelled" in asked.stdout) == (130, True)
    assert place.confirm("nightly") == 0
    assert place.json("resume")["data"]["unfinished"][0]["decision"]["action"] == "RESUME"


# ---- stores that are not well ------------------------------------------------------------------------------------


def spoil(place: Place, statement: str) -> None:
    with closing(sqlite3.connect(place.root / ".git/workpacket/runs.db", isolation_level=None)) as db:
        for trigger in ("events_stay_as_they_are", "events_stay"):
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute(statement)


def test_a_changed_record_is_found_and_never_believed(place: Place) -> None:
    run = place.start("nightly")
    place("runtime", "run", "step", run, "a", "--result", "1")
    spoil(place, "UPDATE events SET data = replace(data, '\"a\"', '\"b\"') WHERE type = 'step.completed'")
    for words in (
        ["runtime", "runs", "verify"],
        ["runtime", "runs", "verify", "nightly"],
        ["runtime", "doctor"],
        ["resume", "nightly"],
    ):
        assert place(*words).returncode == 70, words
    assert place("runtime", "run", "step", run, "c", "--result", "1").returncode == 70


def test_a_store_that_is_no_database_is_named_and_a_newer_one_can_be_exported(place: Place) -> None:
    place.start("nightly")
    store = place.root / ".git/workpacket/runs.db"
    spoil(place, "PRAGMA user_version = 99")
    assert place("runtime", "run", "start", "other").returncode == 72
    assert place("runtime", "runs", "list").returncode == 0  # it is read as far as it can be
    assert "CREATE TABLE events" in place("runtime", "runs", "export", "--raw").stdout
    for name in ("runs.db-wal", "runs.db-shm"):
        store.with_name(name).unlink(missing_ok=True)
    store.write_bytes(b"this is no database" * 100)
    assert place("runtime", "runs", "list").returncode == place("runtime", "doctor").returncode == 71


def test_a_store_that_cannot_be_written_is_named(place: Place) -> None:
    (place.root / ".git/workpacket").write_text("in the way of the folder")  # also the superuser cannot pass it
    refused = place("runtime", "run", "start", "other")
    assert (refused.returncode, "(store_read_only)" in refused.stderr) == (54, True), refused.stderr


@pytest.mark.on_disk
def test_the_doctor_finds_a_store_that_git_would_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(tmp_path, capsys)
    place.start("nightly")
    assert place("runtime", "doctor").returncode == 0
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    found = place("runtime", "doctor")
    assert (found.returncode, "git does not ignore .workpacket/runs.db" in found.stdout) == (13, True)
    (tmp_path / ".gitignore").write_text(".workpacket/\n")
    assert place("runtime", "doctor").returncode == 0


@pytest.mark.on_disk
def test_the_doctor_finds_a_secret_that_was_stored(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    run = place.start("nightly")
    place("runtime", "run", "step", run, "a", "--result", '"correct-horse-battery-staple-9137"')
    assert place("runtime", "doctor").returncode == 0
    monkeypatch.setenv("SOME_API_TOKEN", "correct-horse-battery-staple-9137")
    found = place("runtime", "doctor")
    assert (found.returncode, "nightly@00000001, version 2" in found.stdout) == (77, True)


def test_the_doctor_finds_a_secret_in_a_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    run = place.start("nightly")
    place("runtime", "run", "step", run, "correct-horse-battery-staple-9137", "--result", "1")
    monkeypatch.setenv("SOME_API_TOKEN", "correct-horse-battery-staple-9137")
    found = place("runtime", "doctor")
    assert (found.returncode, "nightly@00000001, version 2" in found.stdout) == (77, True)


def test_an_effect_in_doubt_is_settled_by_a_person(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.root)
    program = """
import os, signal
from workpacket.runtime import Runtime
with Runtime.open() as runtime, runtime.run("mails") as run:
    run.effect("send", lambda: os.kill(os.getpid(), signal.SIGKILL))
"""
    environment_of = environment()
    assert (
        subprocess.run([sys.executable, "-c", program], env=environment_of, check=False).returncode == -signal.SIGKILL
    )
    assert place.json("runtime", "runs", "list")["data"]["runs"][0]["attention"] == "effect_outcome_unknown"
    assert place("resume", "mails").returncode == 74
    assert place("resume", "mails", "--mark-done", "sent").returncode == 2
    assert place("resume", "mails", "--mark-done", "send", "--note", "it is in the outbox").returncode == 0


EFFECT = """
import sys
from datetime import datetime
from pathlib import Path
from workpacket.runtime import Runtime

def act():
    with open("acts", "a") as acts:
        acts.write("act ")
    return {result}

with Runtime.open() as runtime, runtime.run("mails") as run:
    print(run.effect("send", act, key="k"))
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("result", "code", "status"),
    [('{"at": datetime.now()}', "receipt_unkept", 82), ('"ghp_" + "A1b2" * 9', "receipt_redacted", 81)],
)
def test_the_result_of_an_effect_that_was_not_kept_is_given_by_a_person(
    place: Place, monkeypatch: pytest.MonkeyPatch, result: str, code: str, status: int
) -> None:
    monkeypatch.chdir(place.root)
    command = [sys.executable, "-c", EFFECT.replace("{result}", result)]
    if code == "receipt_redacted":  # the first call has the result itself; its run is then stopped by the next line
        command[-1] = command[-1].replace(
            'run.effect("send", act, key="k"))', 'run.effect("send", act, key="k"))\n    1 / 0'
        )

    def start() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environment(), check=False, capture_output=True, text=True)

    for _ in range(3):
        assert start().returncode == 1
    assert (place.root / "acts").read_text() == "act "
    assert place.json("runtime", "runs", "list")["data"]["runs"][0]["attention"] == code
    assert "send happened and is not repeated" in start().stderr
    assert place("explain", code).returncode == 0
    assert catalogue()[code].exit_code == status
    assert place("resume", "mails", "--mark-done", "send").returncode == status
    assert place("resume", "mails", "--mark-done", "send", "--value", "{").returncode == 2
    assert place("resume", "mails", "--value", "1").returncode == 2
    assert place("resume", "mails", "--retry", "send").returncode == status
    assert place("resume", "mails", "--mark-done", "send", "--value", '{"id": 7}').returncode == 0
    assert start().stdout == "{'id': 7}\n"
    assert (place.root / "acts").read_text() == "act "


def test_a_process_killed_while_the_result_is_encoded_leaves_the_act_known(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.root)
    program = """
import os, signal
from workpacket.runtime import Runtime

class Killing:
    def encode(self, value):
        os.kill(os.getpid(), signal.SIGKILL)
    def decode(self, stored):
        return stored

with Runtime.open() as runtime, runtime.run("mails") as run:
    act = lambda: open("acts", "a").write("act ")
    run.using(codec=Killing()).effect("send", act, key="k", recovery="idempotent")
"""

    def start() -> int:
        return subprocess.run([sys.executable, "-c", program], env=environment(), check=False).returncode

    assert [start() for _ in range(3)] == [-signal.SIGKILL, 1, 1]
    assert (place.root / "acts").read_text() == "act "
    assert place.json("runtime", "runs", "list")["data"]["runs"][0]["attention"] == "receipt_unkept"
    assert place("resume", "mails", "--mark-done", "send", "--value", "4").returncode == 0
    assert start() == 0


def test_milestones_on_the_command_line(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    run = place.start("work")
    assert place("runtime", "run", "milestone", run).stdout == "-1\n"
    (place.root / "one").touch()
    reached = place.json("runtime", "run", "checkpoint", run, "--commit")
    assert (reached["data"]["how"], reached["data"]["milestone_index"]) == ("committed", 0)
    selected = place.json("runtime", "run", "milestone", run)["data"]
    assert (selected["source"], selected["sha"]) == ("sidecar", reached["data"]["commit"])
    assert place("runtime", "run", "checkpoint", run, "--commit", "--milestone", "x").returncode == 2
    assert place("runtime", "run", "checkpoint", run, "--commit", "--token").returncode == 2
    sidecar = place.root / ".runr" / "checkpoints" / f"{selected['sha']}.json"
    sidecar.write_text(sidecar.read_text().replace('"milestone_index": 0', '"milestone_index": 9'))
    assert place("runtime", "run", "milestone", run).returncode == 69
    assert "not ignored" in place("runtime", "doctor").stdout
    (place.root / ".gitignore").write_text("/.runr/\n")
    assert "not ignored" not in place("runtime", "doctor").stdout
    assert place("runtime", "run", "stop", run).returncode == 0
    assert place("runtime", "run", "checkpoint", run, "--commit", "--milestone", "1").returncode == 63


def test_what_ends_a_run_while_it_is_read_is_shown_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = place.start("nightly"), SQLiteStore.read
    stopped: list[int] = []

    def read_and_stop(store: SQLiteStore, stream: str, *bounds: Any) -> Iterator[Event]:
        events = list(read(store, stream, *bounds))
        if bounds == (0,) and not stopped:  # what the tail reads first
            stopped.append(place("runtime", "run", "stop", run).returncode)
        return iter(events)

    monkeypatch.setattr(SQLiteStore, "read", read_and_stop)
    assert "run.completed" in place("runtime", "runs", "tail", "nightly", "--follow").stdout
    assert stopped == [0]
