"""Every command that `resume`, `runtime questions` and `runtime runs` print can be pasted into a shell as it is."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.places import CONSOLE, Ended, Place, environment
from workpacket.cli.commands import resolve
from workpacket.cli.main import load
from workpacket.model.reason_tables.stops import REASONS
from workpacket.runtime.errors import RunBlocked, StepFailed
from workpacket.runtime.records.failures import failure_again, failure_data

pytestmark = pytest.mark.share(5)

PROGRAM = """
import sys
from workpacket.runtime import RunBlocked, Runtime

def pay(amount):
    raise TimeoutError("no answer")

name, body = sys.argv[1:]
try:
    with Runtime.open() as runtime, runtime.run(name, key="a b") as run:
        run.step("load", int)
        if body == "confirm":
            run.confirm("Publish?", {"tag": "v1"})
        elif body == "act":
            run.effect("delete", str, "/old", target="backup", confirm=True, recovery="manual")
        elif body == "unknown":
            run.effect("pay", pay, 7, recovery="manual")
        elif body == "unkept":
            run.effect("pay", object)
        else:
            sys.exit(3)
except (RunBlocked, TimeoutError):
    pass
"""
BODIES = ("confirm", "act", "unknown", "unkept", "exit")
LABEL = re.compile(r"^\s*(?:next:|or:|help:|then:|answer  +)\s*(.*)$")
# What is in capitals in a printed command is replaced before it is typed.
PLACEHOLDERS = {"JSON": "7", "TEXT": "seen", "ARGUMENTS": "job exit", "ID": "'exit@a b'", "FILE": "runs.jsonl"}


def begin(place: Place, *bodies: str) -> None:
    (place.root / "job.py").write_text(PROGRAM)
    for body in bodies:
        subprocess.run([sys.executable, "job.py", body, body], cwd=place.root, env=environment(), check=False)


def printed(text: str) -> list[str]:
    """The commands of all lines that say what to do; a sentence may stand before a command, after a colon."""
    found = []
    for line in text.splitlines():
        told = LABEL.match(line)
        for part in re.split(r", or: |, then: ", told[1]) if told is not None else ():
            command = re.search(r"(?:^|: )((?:workpacket|python|git) .*)$", part)
            assert command is not None or "workpacket " not in part, line
            found += [command[1]] if command is not None else []
    return found


def in_shell(place: Place, line: str, folder: Path) -> Ended:
    """Type a line into a shell in which `workpacket` and `python` are commands, in a copy of the place as it is."""
    folder.mkdir()
    shutil.copytree(place.root, folder / "place")
    for name, words in {"workpacket": f"-c '{CONSOLE}' ", "python": ""}.items():
        (folder / name).write_text(f"#!/bin/sh\nexec '{sys.executable}' {words}\"$@\"\n")
        (folder / name).chmod(0o755)
    for word, value in PLACEHOLDERS.items():
        line = re.sub(rf"(?<= ){word}\b", value, line)
    path = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder / "place",
        env=environment() | path,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def everything(place: Place) -> dict[str, str]:
    """What the commands print about runs of every kind."""
    begin(place, *BODIES)
    place("resume", "confirm@a b", "--no")
    begin(place, "confirm", "act")
    cancelled = place("runtime", "cancel", "unknown@a b")
    assert cancelled.returncode == 0
    said = {"resume": place("resume"), "questions": place("runtime", "questions")}
    said["runs"] = place("runtime", "runs", "list")
    said["move"] = place("runtime", "runs", "export", "exit@a b", "--move", "--out", "one file.jsonl")
    said["moved"] = place("resume", "exit@a b")
    said["cancel"] = cancelled
    said["signal"] = place("runtime", "signal", "confirm@a b", "paid")
    for body in BODIES:
        said[f"resume {body}"] = place("resume", f"{body}@a b")
        said[f"show {body}"] = place("runtime", "runs", "show", f"{body}@a b")
    return {name: ended.stdout + ended.stderr for name, ended in said.items()}


def test_a_run_that_cannot_be_read_has_its_way_out_in_json_too(place: Place) -> None:
    begin(place, "exit")
    with sqlite3.connect(place.root / ".git/workpacket/runs.db") as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE events SET data = replace(data, 'load', 'lead')")
    database.close()
    (row,) = place.json("resume")["data"]["unfinished"]
    assert all(stop["command"] for stop in row["blocked_by"]), row


def test_every_printed_command_is_typed_into_a_shell(place: Place, tmp_path_factory: Any) -> None:
    bins = tmp_path_factory.mktemp("shells")
    said = everything(place)
    commands = {command for text in said.values() for command in printed(text)}
    assert len(commands) > 10
    assert any("--retry" in command for command in commands)
    assert any(command.startswith("python job.py") for command in commands)
    for number, command in enumerate(sorted(commands)):
        assert "..." not in command
        # Wrong usage ends with 2, an unknown command of the shell with 127; all others are answers.
        done = in_shell(place, command, bins / str(number))
        assert done.returncode not in {2, 126, 127}, (command, done)


def test_json_names_the_same_commands(place: Place) -> None:
    begin(place, "confirm", "unknown")
    for words in (("resume",), ("runtime", "questions"), ("resume", "confirm@a b"), ("resume", "unknown@a b")):
        text, data = place(*words).stdout, place.json(*words)["data"]
        assert set(printed(f"next: {data['next']}")) <= set(printed(text)), words
        assert printed(f"next: {data['next']}"), words


def test_each_question_has_its_own_commands(place: Place) -> None:
    begin(place, "confirm", "act", "unknown", "unkept")
    place("runtime", "cancel", "unknown@a b")
    said = place("runtime", "questions").stdout
    blocks = re.split(r"^(?=question )", said, flags=re.MULTILINE)[1:]
    assert len(blocks) == 4
    for block in blocks:
        run = re.match(r"question (\S+) of (.+?): ", block)
        assert run is not None
        answers = re.search(r"^  answers +(.*)$", block, re.MULTILINE)
        assert answers is not None
        typed = [shlex.split(one) for one in re.findall(r"^  answer  +(.*)$", block, re.MULTILINE)]
        assert [words[:4] for words in typed] == [["workpacket", "resume", run[2], run[1]]] * len(typed)
        assert [words[4] for words in typed] == answers[1].split(", ")


def test_a_cancelled_run_with_an_open_question_is_listed(place: Place) -> None:
    begin(place, "unknown")
    place("runtime", "cancel", "unknown@a b")
    (question,) = place.json("runtime", "questions")["data"]["questions"]
    assert question["run"] == "unknown@a b"
    assert place.json("resume", "unknown@a b")["data"]["questions"][0]["id"] == question["id"]


def test_a_run_of_a_program_is_continued_only_by_its_program(place: Place) -> None:
    begin(place, "exit")
    again = "start its program again: python job.py ARGUMENTS"
    assert place.json("resume", "exit@a b")["data"]["next"] == again
    (row,) = place.json("resume")["data"]["unfinished"]
    assert row["command"] == again
    assert row["where"] == "after 1 finished step"
    assert "run start" not in place("resume").stdout + place("resume", "--yes").stdout


def test_a_program_that_was_not_started_as_a_file_is_named_only_as_a_program(place: Place) -> None:
    program = 'from workpacket.runtime import Runtime\nwith Runtime.open() as r, r.run("job"): raise SystemExit(1)'
    subprocess.run([sys.executable, "-c", program], cwd=place.root, env=environment(), check=False)
    assert place.json("resume", "job")["data"]["next"] == "start its program again"


def test_a_run_of_a_shell_is_continued_by_the_command_that_began_it(place: Place) -> None:
    place.start("nightly", "--once", "a b", "--input", "month=10", "--scope", "src/a b", "--code-version", "v 1")
    place("runtime", "run", "stop", "nightly@a b#1", "--code", "user_stopped")
    command = place.json("resume", "nightly@a b")["data"]["next"]
    assert command == (
        "workpacket runtime run start nightly --once 'a b' --input month=VALUE --scope 'src/a b' --code-version 'v 1'"
    )
    words = [word.replace("VALUE", "10") for word in shlex.split(command)[4:]]
    assert place.start(*words) == "nightly@a b#2"


def test_the_commands_of_all_remedies_can_be_pasted() -> None:
    for reason in REASONS:
        for remedy in reason.remedies:
            for part in re.split(r", or: |, then: |: ", remedy):
                if not part.startswith("workpacket "):
                    continue
                assert not set("[]|;,") & set(part), remedy
                name, _ = resolve(shlex.split(part)[1:])
                assert name, remedy
                assert load(name).name == name.split()[-1], remedy


def test_the_hint_of_a_stop_is_what_its_text_says(place: Place) -> None:
    for reason in REASONS:
        blocked = RunBlocked("it stopped", code=reason.code, details={"run": "job@1"})
        assert blocked.hint
        assert blocked.hint == blocked.way_out
        assert blocked.hint.rstrip(".") in blocked.__notes__[0]
    assert RunBlocked("it stopped", hint="do this").hint == "do this"
    again = failure_again(failure_data(RunBlocked("it stopped", code="effect_failed")))
    assert isinstance(again, RunBlocked)
    assert again.hint.rstrip(".") in again.__notes__[0]
    assert StepFailed("x").hint


def test_the_start_of_the_own_program_has_no_dots(place: Place) -> None:
    (place.root / "job.py").write_text(PROGRAM.replace("except (RunBlocked, TimeoutError)", "except ZeroDivisionError"))
    done = subprocess.run(
        [sys.executable, "job.py", "a", "confirm"], cwd=place.root, env=environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1].endswith("; then: python job.py ARGUMENTS")
