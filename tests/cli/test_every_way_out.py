"""For each code that a Python program can meet: what its message says is done, and the program comes to its end.

A command is typed, a setting is set, and a call is changed as the message says: the changed program is written here,
and the message must name what differs in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.places import Place, environment
from cli.test_ways_out import BODIES, commands_in, typed
from workpacket.model.reason_tables.stops import REASONS

pytestmark = pytest.mark.share(5)

HEAD = """
import os, signal, sys, time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from pathlib import Path
from workpacket.runtime import Runtime, Settings

SECRET = "ghp_" + "a1B2" * 9
first = not Path("first").exists()
Path("first").touch()

def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""
RUN = 'with Runtime.open() as runtime, runtime.run("job", key="1"{}) as run:\n    {}\n'
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


class Play(NamedTuple):
    """`before` meets the code; `after` is the same program as the message says it should be. `said` is what the message
    names, and `typing` the commands that lead to the code.
    """

    before: str
    after: str = ""
    said: str = ""
    typing: tuple[tuple[str, ...], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()  # of the first start


def run(body: str, options: str = "") -> str:
    return HEAD + RUN.format(options, body.replace("\n", "\n    "))


THREADS = """
def inside():
    with ThreadPoolExecutor() as pool:
        return pool.submit({}run.step, 'in', int).result()
run.step("out", inside)
"""
PLAYS = {
    "confirmation_denied": Play(run('run.confirm("Delete?")'), typing=(("resume", "job@1", "--no"),)),
    "step_changed": Play(
        run('run.step("load", int, "1" if first else "2")\nif first: die()'),
        run('run.using(changed="redo").step("load", int, "2")'),
        "run.using(changed='redo').step(",
    ),
    "code_changed": Play(run("run.step(int)\nif first: die()", ', code_version="1" if first else "2"')),
    "scope_widened": Play(
        run("run.step(int)\nif first: die()", ', scope=["a"] if first else ["a", "b"]'),
        run("run.step(int)", ', scope=["a"]'),
        "workpacket runtime runs show job@1",
    ),
    "max_ticks": Play(
        run('run.step(int)\nrun.step("more", int)', ", steps=1"),
        run('run.step(int)\nrun.step("more", int)', ", steps=9"),
        "runtime.run(..., steps=",
    ),
    "max_ticks, met again": Play(
        run('run.step(int)\nrun.step("more", int)', ", steps=1"),
        run('run.step(int)\nrun.step("more", int)', ", steps=9"),
        "runtime.run(..., steps=",
        typing=(("runtime", "runs", "show", "job@1"),),
    ),
    "timeout, met again": Play(
        run("run.step(int)", ", deadline=datetime.now(UTC)"),
        run("run.step(int)", ", deadline=datetime.now(UTC) + timedelta(hours=1)"),
        "runtime.run(..., deadline=",
        typing=(("runtime", "runs", "show", "job@1"),),
    ),
    "timeout": Play(
        run("run.step(int)", ", deadline=datetime.now(UTC)"),
        run("run.step(int)", ", deadline=datetime.now(UTC) + timedelta(hours=1)"),
        "runtime.run(..., deadline=",
    ),
    "budget_exhausted": Play(
        run("run.step(time.sleep, 0.05)\nif first: die()\nrun.step(int)", ", seconds=0.01"),
    ),
    "waiting": Play(
        HEAD + 'with Runtime.open(settings=Settings(patience=0)) as runtime, runtime.run("job", key="1") as run:\n'
        '    run.wait_for("paid")\n'
    ),
    "step_without_context": Play(
        run(THREADS.format("")),
        run(THREADS.format("copy_context().run, ")),
        "copy_context().run",
    ),
    "effect_key_reused": Play(
        run('run.effect("mail", str, "a", key="k")\nrun.effect("pay", str, "b", key="k")'),
        run('run.effect("mail", str, "a", key="k")\nrun.effect("pay", str, "b", key="other")'),
        "its own key",
    ),
    "receipt_redacted": Play(run('run.effect("login", lambda: {"token": SECRET}, key="k")\nif first: die()')),
    "redaction_failed": Play(
        run("run.step(SECRET, int)"), run('run.step("load", int)'), "choose a name without the secret"
    ),
    "would_be_altered": Play(run('run.checkpoint({"token": SECRET})')),
    "payload_sealed": Play(
        run('run.checkpoint({"token": SECRET}) if first else run.cursor()\nif first: die()'),
        environment=(("WORKPACKET_PAYLOAD_KEY", KEY),),
    ),
    "payload_erased": Play(
        run('run.step("load", int)\nif first:\n    runtime.purge("job@1", 2, "no longer allowed")\n    die()'),
        run('run.using(changed="redo").step("load", int)'),
        "run.using(changed='redo').step(",
    ),
    "checkpoint_missing": Play(
        HEAD + 'with Runtime.open() as runtime:\n    with runtime.run("job", key="1"): pass\n'
        '    with runtime.resume("jop@1"): pass\n',
        HEAD + 'with Runtime.open() as runtime:\n    with runtime.resume("job@1"): pass\n',
        "workpacket runtime runs list",
    ),
    "retry_token_spent": Play(
        run(
            'Path("token").write_text(run.checkpoint(1, token=True).token) if first else None\ndie()',
            ', **({} if first else {"retry_token": Path("token").read_text()})',
        ),
        run("run.cursor()"),
        "run.checkpoint(cursor, token=True)",
    ),
    "key_conflict": Play(
        run("run.step(int)"),
        run("run.step(int)").replace('key="1"', 'key="2"'),
        "a different key",
        typing=(("runtime", "runs", "prune", "--older-than", "0", "--yes"),),
    ),
    "run_moved": Play(
        run('run.step(int)\nif first: sys.exit(3)'),
        typing=(("runtime", "runs", "export", "job@1", "--move", "--out", "job.jsonl"),),
    ),
    "storage_unsuitable": Play(
        HEAD + 'with Runtime.open(os.environ.get("WORKPACKET_STORE", ".")) as runtime: pass\n',
        HEAD + 'with Runtime.open("runs.db") as runtime: pass\n',
        "specify a file",
    ),
}  # fmt: skip

ELSEWHERE = Path(__file__).with_name("ways_out_elsewhere.txt")


def not_played() -> set[str]:
    """The codes of the file; a reason stands behind each of them."""
    lines = [line for line in ELSEWHERE.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert all(line.partition(": ")[2] for line in lines)
    return {line.partition(": ")[0] for line in lines}


def test_every_code_is_played_or_has_its_reason() -> None:
    played = {name.partition(",")[0] for name in PLAYS} | BODIES.keys()
    assert not played & not_played()
    assert played | not_played() == {reason.code for reason in REASONS}


def started(place: Place, program: str, settings: dict[str, str]) -> str | None:
    """Start the program; return the last line that it says, or None if it came to its end."""
    (place.root / "job.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "job.py"], cwd=place.root, env=environment() | settings, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return None if done.returncode == 0 else (done.stderr.splitlines() or [""])[-1]


def followed(place: Place, code: str, play: Play, said: str, settings: dict[str, str]) -> str:
    """Do what the last line says, and return the program to start next."""
    if play.after:
        assert play.said in said, said
        return play.after
    for name, value in re.findall(r"\b(WORKPACKET_\w+)=(\w+)", said):
        settings[name] = KEY if value == "KEY" else value
        return play.before
    if "openssl rand -base64 32" in said:
        settings["WORKPACKET_PAYLOAD_KEY"] = KEY
        return play.before
    assert commands_in(said), said
    then = typed(place, said)
    if commands_in(then):
        typed(place, then)
    return play.before


@pytest.mark.share(5)
@pytest.mark.parametrize("code", PLAYS)
def test_what_a_message_says_is_done_and_the_program_ends(
    place: Place, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("WORKPACKET_")]:
        monkeypatch.delenv(name)
    play, program = PLAYS[code], PLAYS[code].before
    settings: dict[str, str] = dict(play.environment)
    typing: Any = iter([play.typing])
    met, said = False, None
    for _ in range(7):
        said = started(place, program, settings)
        settings = {} if settings == dict(play.environment) else settings
        for words in next(typing, ()):
            assert place(*words).returncode in {0, 75}, words
            met, said = False, ""
        if said is None:
            assert met, f"{code} was not met"
            return
        if not said.startswith("("):
            continue  # killed: it is started again
        met = met or said.startswith(f"({code.partition(',')[0]}) -> ")
        program = followed(place, code, play, said, settings)
    pytest.fail(f"what {said!r} says does not lead out")
