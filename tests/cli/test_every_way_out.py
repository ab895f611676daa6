"""For each code that a Python program can meet: what its message says is done, and the program comes to its end.

A command is typed, a setting is set, and a call is changed as the message says: the changed program is written here,
and the message must name what differs in it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.places import Place, environment
from cli.test_ways_out import BODIES, commands_in, typed
from git.scratch import git
from workpacket.model.reason_tables.stops import REASONS

pytestmark = pytest.mark.share(5)

HEAD = """
import os, signal, sys, time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from pathlib import Path
from workpacket.runtime import NotDone, RunBlocked, Runtime, Settings

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
    shows: str = ""  # what the command that the message names must print
    does: Callable[[Path], object] | None = None  # what a person does in the folder


def run(body: str, options: str = "") -> str:
    return HEAD + RUN.format(options, body.replace("\n", "\n    "))


GOES_ON = run('run.step("work", int)')


def blocked(code: str, why: str) -> str:
    return run(f'def work():\n    raise RunBlocked({why!r}, code="{code}")\nrun.step("work", work)')


THREADS = """
def inside():
    with ThreadPoolExecutor() as pool:
        return pool.submit({}run.step, 'in', int).result()
run.step("out", inside)
"""
OBSERVED = (
    HEAD
    + """
import subprocess
from workpacket.git.repository import find_repository
from workpacket.runtime.commit_checkpoint import GitObserver
from workpacket.runtime.resume.observe import FactsObserver

def facts(what, one):
    return FactsObserver(what, {"one": one})

def git(*words):
    subprocess.run(["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *words], check=True)

def in_git():
    if first:
        git("add", ".")
        git("commit", "-q", "-m", "one")
        git("commit", "-q", "-m", "two", "--allow-empty")
    return GitObserver(find_repository(Path.cwd()))

with Runtime.open(settings=Settings(observers=(OBSERVER,))) as runtime, runtime.run("job", key="1") as run:
    if first:
        run.checkpoint("here")
        CHANGE
        die()
"""
)


SESSION = (
    HEAD
    + """
from workpacket.runtime.model_sessions.session import open_session

def ask(answer):
    list(answer.chunks(NUMBERS, number=int))
    return answer.text

with Runtime.open() as runtime, open_session(runtime, "1", model="m") as session:
    session.model_run(ask)
"""
)


# As a snapshot of a machine goes on beside its original: with a connection of its own, and all that it knew.
COPIED = run("""
from workpacket.runtime.run import session_of
from workpacket.runtime.stores.sqlite.store import SQLiteStore
run.step(int)
copied = first and os.fork() == 0
if copied:
    session_of(run).recorder.store = SQLiteStore(Path(".git/workpacket/runs.db"))
elif first:
    os.wait()
run.step("more", os.getpid)
if copied:
    os._exit(0)
""")


def observed(observer: str, change: str = "pass") -> str:
    """A program with a checkpoint that promises what an observer saw."""
    return OBSERVED.replace("OBSERVER", observer).replace("CHANGE", change)


def moved_back(root: Path) -> None:
    (root / "away").rename(root / ".git/workpacket/runs.db")


AGAIN = "start the program again"
PLAYS = {
    "guard_violation": Play(blocked("guard_violation", "nothing is pushed"), GOES_ON, AGAIN, shows="nothing is pushed"),
    "file_collision": Play(blocked("file_collision", "a.py belongs to other@1"), GOES_ON, AGAIN),
    "verification_failed": Play(blocked("verification_failed", "2 tests failed"), GOES_ON, AGAIN),
    "verification_timeout": Play(blocked("verification_timeout", "after 60 s"), GOES_ON, AGAIN),
    "verification_not_run": Play(blocked("verification_not_run", "make: not found"), GOES_ON, AGAIN),
    "review_loop_detected": Play(
        blocked("review_loop_detected", "too long, again"), GOES_ON, "Have a person decide", shows="too long, again"
    ),
    "review_rejected": Play(blocked("review_rejected", "name the limit"), GOES_ON, AGAIN),
    "worker_blocked": Play(blocked("worker_blocked", "no password"), GOES_ON, AGAIN),
    "stalled": Play(blocked("stalled", "nothing for an hour"), GOES_ON, "Start the program again"),
    "unregistered": Play(blocked("unregistered", "odd"), GOES_ON, AGAIN, shows="odd"),
    "run_cancelled": Play(run("run.step(int)\nif first: die()"), typing=(("runtime", "cancel", "job@1"),)),
    "environment_changed": Play(observed('facts("environment", "1" if first else "2")')),
    "definitions_changed": Play(observed('facts("digests", "1" if first else "2")')),
    "check_not_run": Play(
        observed('*([facts("environment", "1")] if first else [])'), observed('facts("environment", "1")'),
        "workpacket resume job@1 --plan", shows="environment",
    ),
    "dirty_worktree": Play(observed("in_git()", 'Path("stray").touch()')),
    "dirty_worktree, a tracked file": Play(observed("in_git()", 'Path("first").write_text("changed")')),
    "git_diverged": Play(observed("in_git()", 'git("reset", "-q", "--hard", "HEAD~1")')),
    "writer_conflict": Play(COPIED, said=AGAIN),
    "sequence_gap": Play(SESSION.replace("NUMBERS", "[0, 2] if first else [0, 1]")),
    "storage_failed": Play(
        run('Path(".git/workpacket/runs.db").rename("away") if first else None\nrun.step(int)'),
        run("run.step(int)"),
        "restore the files, then start again",
        does=moved_back,
    ),
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

# These programs end with an error of their own, or with none. The code and the way out are shown by the commands.
ENDED = {
    "worker_failed": run('run.step("work", lambda: 1 // (not first))'),
    "worker_timeout": run('def late():\n    if first: raise TimeoutError("late")\nrun.step("work", late)'),
    "worker_lost": run("run.step(int)\nif first: die()"),
    "user_stopped": run("run.step(int)\nif first: raise KeyboardInterrupt"),
}

TESTS = Path(__file__).parents[1]
ELSEWHERE = TESTS / "cli" / "ways_out_elsewhere.txt"


def named_elsewhere() -> dict[str, list[str]]:
    """The codes of the file, each with the tests that meet it, do what its message says, and go on."""
    lines = [line.partition(": ") for line in ELSEWHERE.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {code: named.split() for code, _, named in lines}


def test_every_code_is_played_here_or_by_a_test_that_is_named() -> None:
    played = {name.partition(",")[0] for name in PLAYS} | BODIES.keys() | ENDED.keys()
    assert not played & named_elsewhere().keys()
    assert played | named_elsewhere().keys() == {reason.code for reason in REASONS}


@pytest.mark.parametrize("code", named_elsewhere())
def test_the_tests_that_are_named_exist_and_quote_the_code(code: str) -> None:
    assert named_elsewhere()[code]
    for named in named_elsewhere()[code]:
        path, _, name = named.partition("::")
        text = (TESTS / path).read_text("utf-8")
        assert re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE), f"{path} has no {name}"
        assert re.search(rf"[\"'(]{code}\b", text), f"{path} does not quote {code}"


@pytest.mark.parametrize("code", ENDED)
def test_after_an_error_of_its_own_a_program_is_started_as_the_commands_say(place: Place, code: str) -> None:
    assert started(place, ENDED[code], {}) is not None
    shown = place.json("runtime", "runs", "show", "job@1")["data"]
    assert shown["attention"] == code
    said = place(*shlex.split(shown["next"])[1:]).stdout
    assert "\nnext: start its program again: python job.py\n" in said
    assert started(place, ENDED[code], {}) is None


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
    if play.shows:
        assert any(play.shows in place(*words).stdout for words in commands_in(said)), said
    if play.does is not None:
        play.does(place.root)
    for words in re.findall(r"\((git [^)]*)\)", said) if not commands_in(said) else ():
        git(place.root, *shlex.split(words)[1:])
        return play.before
    if play.said:
        assert play.said in said, said
        return play.after or play.before
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
