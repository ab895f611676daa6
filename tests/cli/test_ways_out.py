"""What an error of the runtime says to do is done, and leads out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from cli.places import Place, environment
from workpacket.cli.commands import resolve
from workpacket.cli.main import load
from workpacket.model.reason_tables.stops import REASONS
from workpacket.runtime.errors import LeaseHeld, RunBlocked, RuntimeFault, usual_remedy
from workpacket.runtime.holders import this_process

pytestmark = pytest.mark.share(5)

# A command, a call, a setting, or the start of the program itself.
LEADS = re.compile(
    r"workpacket (?:runtime|resume|audit) |\b(?:run|runtime|graph|saver)\.\w+\(|\bWORKPACKET_\w+=|\bgit \w+|\bpip \w+"
    r"|the program|time limit|worker"
)
# What only a person outside of the program can do.
ELSEWHERE = {"thread_version_invalid", "view_conflict", "run_cancelled"}

PROGRAM = """
import os, signal, sys
from pathlib import Path
from workpacket.runtime import Runtime, Settings

def pay():
    raise TimeoutError("no answer")

with Runtime.open() as runtime, runtime.run("job", key="1", inputs={"month": Path("month").read_text()}) as run:
    run.step("load", int)
    BODY
"""
BODIES = {
    "needs_confirmation": 'run.confirm("Delete?", {"path": "/old"})',
    "effect_outcome_unknown": 'run.effect("pay", pay, recovery="manual")',
    "inputs_changed": 'Path("month").write_text("2026-11") if Path("month").read_text() == "2026-10" else None\n'
    '    Path("once").exists() or (Path("once").write_text(""), os.kill(os.getpid(), signal.SIGKILL))',
    "receipt_unkept": 'run.effect("pay", object)',
}


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.code)
def test_the_usual_remedy_of_every_code_names_a_way_out(reason: Any) -> None:
    assert LEADS.search(usual_remedy(reason.code)) or reason.code in ELSEWHERE


def commands_in(text: str) -> list[list[str]]:
    """The commands that a sentence names: from `workpacket` up to a comma, a semicolon, or a word that is none."""
    found = re.findall(r"\bworkpacket ((?:runtime|resume|audit)\b[^,;:()|`]*)", text)
    return [shlex.split(re.sub(r" (?:names|says|lists|shows|again)\b.*", "", one)) for one in found]


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.code)
def test_the_commands_that_remedies_name_exist(reason: Any) -> None:
    for remedy in reason.remedies:
        for words in commands_in(remedy):
            name, _ = resolve(words)
            assert name, words
            options = {option.name for option in load(name).options}
            assert {word[2:] for word in words if word.startswith("--")} <= options, words


def started(place: Place, body: str) -> subprocess.CompletedProcess[str]:
    (place.root / "job.py").write_text(PROGRAM.replace("BODY", body))
    return subprocess.run(
        [sys.executable, "job.py"], cwd=place.root, env=environment(), capture_output=True, text=True, check=False
    )


def typed(place: Place, line: str) -> str:
    """Type the first command of a line, and say what comes next."""
    words = commands_in(line)[0]
    if words[-1] == "--mark-done" and "JSON" not in line:
        words += ["--value", '"paid"']
    ended = place(*('"paid"' if word == "JSON" else word for word in words))
    found = re.search(r"^next: (.*)$", ended.stdout, re.MULTILINE)
    return found[1] if found else ""


@pytest.mark.share(4)
@pytest.mark.parametrize("code", BODIES)
def test_what_an_uncaught_error_says_is_typed_and_the_program_ends(place: Place, code: str) -> None:
    (place.root / "month").write_text("2026-10")
    said = ""
    for _ in range(6):
        done = started(place, BODIES[code])
        if done.returncode == 0:
            assert said.endswith("; then: python job.py"), said
            return
        last = done.stderr.splitlines()[-1] if done.stderr else ""
        if not last.startswith("("):
            continue  # killed, or an error of the program's own: it is started again
        said = said or last
        assert last.startswith(f"({code}) -> "), last
        assert "workpacket resume job@1" in last
        then = typed(place, last)
        if then.startswith("workpacket"):  # what `resume RUN` says is typed next; it answers the question
            typed(place, then)
    pytest.fail(f"what {said!r} says does not lead out")


def test_a_busy_run_is_one_type_and_says_who_works_on_it_since_when(place: Place) -> None:
    from runtime.worlds import World

    world = World()
    with world.runtime.run("job", key="1"), pytest.raises(LeaseHeld) as held:
        world.runtime.run("job", key="1")
    host, pid, *_ = this_process().split("/")
    assert held.value.message.startswith(f"process {pid} on {host} has been working on job@1 since 20")
    assert isinstance(held.value, RunBlocked)
    assert held.value.way_out == "Wait for the process, or cancel the run: workpacket runtime cancel job@1."


def test_an_error_without_a_hint_ends_with_the_usual_remedy_of_its_run() -> None:
    fault = RuntimeFault("it is over", code="lease_lost", details={"run": "job@1"})
    assert "workpacket runtime runs show job@1" in fault.__notes__[0]
    fault.add_note("and more")
    assert fault.__notes__[1:] == ["and more"]
