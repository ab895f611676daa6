"""After an older store was accepted, nothing that was done in what it lost is done again without a word."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from workpacket.runtime import NotDone, Run, RunBlocked, Runtime
from workpacket.runtime.attempts.effects import Recovery
from workpacket.runtime.errors import StoreRolledBack
from workpacket.runtime.stores.contract import Lease
from workpacket.runtime.stores.sqlite.store import SQLiteStore, examine
from workpacket.runtime.testing import Writer


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store" / "runs.db"


class Program:
    """A program that acts on the world, killed in the middle; its store is then put back to where it was before."""

    def __init__(self, place: Path, recovery: Recovery = "manual") -> None:
        self.place = place
        self.recovery: Recovery = recovery
        self.done: list[str] = []
        self.probe: Callable[[], Any] | None = None

    def runtime(self) -> Runtime:
        return Runtime.open(self.place)

    def act(self, run: Run, name: str, **options: Any) -> Any:
        def done() -> str:
            self.done.append(name)
            return f"did {name}"

        return run.effect(name, done, **{"recovery": self.recovery, "probe": self.probe, **options})

    def copy(self) -> Path:
        copy = self.place.parent.with_name("copy")
        copy.mkdir()
        for suffix in ("", "-wal"):
            if (found := self.place.with_name(self.place.name + suffix)).exists():
                shutil.copy(found, copy / found.name)
        return copy

    def put_back(self, copy: Path) -> None:
        """The database as it was; the side file as it is."""
        for suffix in ("", "-wal", "-shm"):
            self.place.with_name(self.place.name + suffix).unlink(missing_ok=True)
        for file in copy.iterdir():
            shutil.copy(file, self.place.parent / file.name)
        with pytest.raises(StoreRolledBack):
            SQLiteStore(self.place)


class Died(BaseException):
    pass


def lost(program: Program, key: str = "k") -> None:
    """Effects a, b and c were done; the store that is put back knows of a only."""

    def acts(runtime: Runtime, run: Run) -> None:
        program.act(run, "a")
        runtime.store.release(present_lease(run))
        program.copy()
        run._session.recorder.lease = runtime.store.acquire(run.id, "x", 30)
        program.act(run, "b")
        program.act(run, "c", key="c")
        raise Died

    with pytest.raises(Died), program.runtime() as runtime, runtime.run("pay", key=key) as run:
        acts(runtime, run)
    program.put_back(program.place.parent.with_name("copy"))


def present_lease(run: Run) -> Lease:
    lease = run._session.recorder.lease
    assert lease is not None
    return lease


def accepted(program: Program) -> None:
    SQLiteStore(program.place, accept_rollback=True).close()
    with closing(SQLiteStore(program.place)) as store:
        assert examine(store) == ()


def events(program: Program, run: str = "pay@k") -> list[tuple[str, dict[str, Any]]]:
    with closing(SQLiteStore(program.place)) as store:
        return [(event.type, dict(event.values())) for event in store.read(run)]


def again(program: Program) -> list[Any]:
    with program.runtime() as runtime, runtime.run("pay", key="k") as run:
        return [program.act(run, "a"), program.act(run, "b"), program.act(run, "c", key="c")]


def test_the_run_is_told_what_it_lost(place: Path) -> None:
    program = Program(place)
    lost(program)
    accepted(program)
    told = events(program)
    assert told[-1] == ("rolled_back", {"had": 8, "has": 3})
    assert [kind for kind, _ in told] == ["run.started", "effect.started", "effect.succeeded", "rolled_back"]


def test_an_effect_that_the_log_does_not_know_waits_for_a_person(place: Path) -> None:
    program = Program(place)
    lost(program)
    accepted(program)
    for _ in range(2):
        with pytest.raises(RunBlocked) as caught:
            again(program)
        assert caught.value.code == "effect_outcome_unknown"
    assert program.done == ["a", "b", "c"]
    for step, choice in (("b", "mark_done"), ("c", "retry")):
        with program.runtime() as runtime:
            (record,) = runtime.state("pay@k").unknown_effects
            assert record.step == step
            runtime.settle("pay@k", record.effect, choice, **({"value": "by hand"} if step == "b" else {}))  # type: ignore[arg-type]
        if step == "b":
            with pytest.raises(RunBlocked):
                again(program)
    assert again(program) == ["did a", "by hand", "did c"]
    assert program.done == ["a", "b", "c", "c"]


def test_or_for_the_probe_of_its_author(place: Path) -> None:
    program = Program(place, "probe")

    def found() -> str:
        return "found"

    program.probe = found
    lost(program)
    accepted(program)
    assert again(program) == ["did a", "found", "found"]
    assert program.done == ["a", "b", "c"]


def test_and_what_the_probe_does_not_find_is_done(place: Path) -> None:
    program = Program(place, "probe")

    def not_found() -> str:
        raise NotDone

    program.probe = not_found
    lost(program)
    accepted(program)
    assert again(program) == ["did a", "did b", "did c"]


@pytest.mark.parametrize("recovery", ["read", "idempotent", "keyed"])
def test_what_its_author_lets_be_repeated_is_repeated_and_reported(place: Path, recovery: Recovery) -> None:
    program = Program(place, recovery)
    lost(program)
    accepted(program)
    with program.runtime() as runtime, runtime.run("pay", key="k") as run:
        for name in "ab":
            program.act(run, name)
        assert run.repeated == ("b",)


def test_a_question_that_was_asked_before_does_not_let_it_begin(place: Path) -> None:
    """What was intended is known, and what came of it may be lost."""
    program = Program(place)

    def asks() -> None:
        with program.runtime() as runtime, runtime.run("pay", key="k") as run:
            program.act(run, "a", confirm=True)

    with pytest.raises(RunBlocked):
        asks()
    copy = program.copy()
    with program.runtime() as runtime:
        runtime.confirm("pay@k", str(next(iter(runtime.state("pay@k").questions))), yes=True)
    asks()
    program.put_back(copy)
    accepted(program)
    with pytest.raises(RunBlocked) as caught:
        asks()
    assert (caught.value.code, program.done) == ("effect_outcome_unknown", ["a"])


def test_steps_of_what_was_lost_are_reported_as_possibly_repeated(place: Path) -> None:
    program = Program(place)
    lost(program)
    accepted(program)
    with program.runtime() as runtime, runtime.run("pay", key="k") as run:
        program.act(run, "a")
        run.step("one", lambda: 1)
        run.step("two", lambda: 2)
        assert run.repeated == ("one", "two")


def test_a_run_that_was_lost_as_a_whole_is_known_by_its_name(place: Path) -> None:
    program = Program(place)
    with program.runtime() as runtime:
        with runtime.run("other") as run:
            run.step("one", lambda: 1)
        copy = program.copy()
        with runtime.run("pay", key="k") as run:
            program.act(run, "a")
        with runtime.run("pay") as run:
            program.act(run, "numbered")
    program.put_back(copy)
    accepted(program)
    for request, name in (({"key": "k"}, "a"), ({}, "numbered")):
        with pytest.raises(RunBlocked) as caught, program.runtime() as runtime, runtime.run("pay", **request) as run:  # type: ignore[arg-type]
            program.act(run, name)
        assert caught.value.code == "effect_outcome_unknown"
    assert program.done == ["a", "numbered"]
    assert events(program)[1] == ("rolled_back", {"had": 4, "has": 0})
    with program.runtime() as runtime, runtime.run("never", key="k") as run:
        program.act(run, "new")
    assert program.done[-1] == "new"


def test_every_run_is_told_and_those_that_lost_nothing_are_not(place: Path) -> None:
    program = Program(place)
    with program.runtime() as runtime:
        with runtime.run("whole", key="k") as run:
            program.act(run, "w")
        first, second = (runtime.run("pay", key=key) for key in "kl")
        for run in (first, second):
            program.act(run, "a")
            run._session.leave()
        copy = program.copy()
        for run in (second, first):
            program.act(run, "b")
    program.put_back(copy)
    accepted(program)
    assert [events(program, f"pay@{key}")[-1] for key in "kl"] == [("rolled_back", {"had": 5, "has": 3})] * 2
    assert "rolled_back" not in [kind for kind, _ in events(program, "whole@k")]


def test_what_is_no_run_is_left_as_it_is(place: Path) -> None:
    store = SQLiteStore(place)
    writer = Writer("w", "batch/one")
    store.append(writer.request("batch.begun"))
    program = Program(place)
    copy = program.copy()
    store.append(writer.request("batch.begun"))
    store.close()
    program.put_back(copy)
    accepted(program)
    assert [kind for kind, _ in events(program, "batch/one")] == ["batch.begun"]


def test_by_a_side_file_of_before_every_unfinished_run_is_told(place: Path) -> None:
    program = Program(place)
    lost(program)
    side = place.with_name("runs.db.lock")
    side.write_bytes(side.read_bytes()[:64])
    accepted(program)
    assert events(program)[-1] == ("rolled_back", {"had": 8, "has": 3})


def test_a_second_rollback_is_told_too(place: Path) -> None:
    program = Program(place)
    lost(program)
    accepted(program)
    with pytest.raises(RunBlocked):
        again(program)
    shutil.rmtree(place.parent.with_name("copy"))
    copy = program.copy()
    with program.runtime() as runtime:
        (record,) = runtime.state("pay@k").unknown_effects
        runtime.settle("pay@k", record.effect, "mark_done")
    program.put_back(copy)
    accepted(program)
    assert [kind for kind, _ in events(program)].count("rolled_back") == 2


PROGRAM = """
import sys
from pathlib import Path
from workpacket.runtime import Runtime
place, until = Path(sys.argv[1]), int(sys.argv[2])

def act(name):
    with open(place.parent.parent / "world", "a") as world:
        world.write(name + chr(10))
    return name

with Runtime.open(place) as runtime, runtime.run("pay", key="k") as run:
    for number in range(6):
        if number == until:
            print("here", flush=True)
            sys.stdin.read()
        run.effect(f"pay-{number}", act, f"pay-{number}")
"""


@pytest.fixture
def killed() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.share(3)
@pytest.mark.parametrize("until", [1, 3, 5])
def test_a_killed_program_does_nothing_twice_on_a_store_that_was_put_back(
    place: Path, until: int, killed: list[subprocess.Popen[str]]
) -> None:
    program = Program(place)

    def live(number: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(place), str(number)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        killed.append(process)
        return process

    def kill_at(number: int) -> None:
        process = live(number)
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    kill_at(1)
    copy = program.copy()
    kill_at(until) if until > 1 else None
    _, said = live(9).communicate()
    assert said == ""
    program.put_back(copy)
    accepted(program)
    for _ in range(8):
        process = live(9)
        _, said = process.communicate()
        if process.returncode == 0:
            break
        assert "effect_outcome_unknown" in said or "RunBlocked" in said
        with program.runtime() as runtime:
            for record in runtime.state("pay@k").unknown_effects:
                runtime.settle("pay@k", record.effect, "mark_done", value=record.step)
    world = (place.parents[1] / "world").read_text().split()
    assert world == [f"pay-{number}" for number in range(6)]


def test_writers_that_take_turns_keep_how_far_each_run_had_come(place: Path) -> None:
    program = Program(place)
    runtimes = [program.runtime(), program.runtime()]
    runs = [runtime.run("pay", key=key) for runtime, key in zip(runtimes, "kl", strict=True)]
    for run in runs:
        run._session.leave()
    copy = program.copy()
    for name in "abc":
        for run in runs:
            program.act(run, name)
            program.act(run, f"{name}{name}")
    for runtime in runtimes:
        runtime.close()
    program.put_back(copy)
    accepted(program)
    assert [events(program, f"pay@{key}")[-1] for key in "kl"] == [("rolled_back", {"had": 13, "has": 1})] * 2
