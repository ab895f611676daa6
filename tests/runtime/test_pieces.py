"""The small pieces: processes, places, commands, transfer, upcasters, retention, the list of runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workpacket.runtime
from runtime.worlds import World
from workpacket.problem import WorkpacketError
from workpacket.runtime import Retry, RunBlocked, RunCancelled, Runtime, Settings
from workpacket.runtime.attempts.relay import run_command
from workpacket.runtime.attempts.steps import Scope, name_and_function
from workpacket.runtime.catalog import stream_name, stream_prefix
from workpacket.runtime.errors import LogDamaged, NewerSchema, RuntimeFault, StoreUnavailable
from workpacket.runtime.holders import SystemClock, boot_id, is_certainly_dead, this_process
from workpacket.runtime.records.events import KINDS, Event, NewEvent, RecordKind, current, sealed_event
from workpacket.runtime.records.state import fold
from workpacket.runtime.resume.observe import FactsObserver
from workpacket.runtime.stores.contract import Append
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.place import store_path, work_tree_of
from workpacket.runtime.stores.transfer import export_lines, import_lines
from workpacket.runtime.testing import ManualClock

# ---- processes and clocks ----------------------------------------------------------------------------------------


def test_this_process_is_not_dead() -> None:
    assert not is_certainly_dead(this_process())


def test_a_process_that_ended_is_dead_even_before_it_is_collected() -> None:
    program = "from workpacket.runtime.holders import this_process; print(this_process())"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        holder = child.stdout.readline().strip()
        os.kill(child.pid, signal.SIGKILL)  # not `send_signal`, which would collect a child that has ended by then
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has collected it
        assert is_certainly_dead(holder)
    assert is_certainly_dead(holder)


def test_another_process_with_the_same_number_is_another_process() -> None:
    host, pid, start, place = this_process().split("/")
    assert is_certainly_dead(f"{host}/{pid}/{int(start or 1) + 1}/{place}") == bool(start)


@pytest.mark.parametrize("holder", ["", "somebody", "host/1/2/another boot", "host/x/2/3"])
def test_of_a_process_elsewhere_nothing_is_known(holder: str) -> None:
    assert not is_certainly_dead(holder)


def test_a_process_of_another_user_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", denied)
    assert not is_certainly_dead(this_process())


def test_the_boot_has_a_name_even_where_the_system_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert boot_id()
    monkeypatch.setattr("workpacket.runtime.holders._BOOT_ID", tmp_path / "missing")
    assert boot_id().startswith("boot-")


def test_the_clock_of_the_system_tells_time_and_never_goes_back() -> None:
    clock = SystemClock()
    before = clock.ticks()
    clock.sleep(0.001)
    assert clock.ticks() > before
    assert clock.now() > 1_700_000_000_000_000


# ---- places ------------------------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_worktrees_share_the_store_of_their_repository(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(linked))
    (linked / "deep").mkdir()
    assert store_path(main) == main / ".git" / "workpacket" / "runs.db"
    assert store_path(linked / "deep").resolve() == store_path(main).resolve()
    assert work_tree_of(linked / "deep") == linked
    common = Path(git(linked, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    assert store_path(linked).parents[1] == common.resolve()


def test_a_separate_git_dir_is_followed_and_a_broken_one_is_named(tmp_path: Path) -> None:
    work = tmp_path / "work"
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "store"), str(work))
    assert store_path(work).parents[1] == (tmp_path / "store").resolve()
    (work / ".git").write_bytes(b"\xff\xfe")
    with pytest.raises(WorkpacketError) as caught:
        store_path(work)
    assert caught.value.code == "storage_unsuitable"


def test_outside_a_repository_the_store_is_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert store_path(tmp_path) == tmp_path / ".workpacket" / "runs.db"


def test_a_runtime_opens_where_it_is_and_refuses_what_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    with Runtime.open() as runtime, runtime.run("a") as run:
        assert run.step(len, [1, 2]) == 2
    assert (tmp_path / ".git" / "workpacket" / "runs.db").exists()
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RuntimeFault, match="psycopg"):
        Runtime.open("postgresql://localhost/x")


def test_a_repository_that_was_moved_asks_before_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").mkdir()
    monkeypatch.chdir(tmp_path / "old")
    git(Path.cwd(), "init", "-q")
    with Runtime.open() as runtime, pytest.raises(KeyError), runtime.run("a"):
        raise KeyError
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").rename(tmp_path / "new")
    monkeypatch.chdir(tmp_path / "new")
    with Runtime.open() as runtime, pytest.raises(RunBlocked) as caught:
        runtime.run("a")
    assert caught.value.code == "identity_changed"


def test_names_are_loaded_when_they_are_used() -> None:
    program = (
        "import sys, workpacket.runtime\n"
        "assert not {'asyncio', 'sqlite3', 'subprocess', 'workpacket.runtime.run'} & set(sys.modules)\n"
        "workpacket.runtime.Runtime\n"
        "assert not {'asyncio', 'sqlite3', 'subprocess'} & set(sys.modules)"
    )
    # Without the measuring of coverage, which loads some of them itself.
    bare = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    subprocess.run([sys.executable, "-c", program], check=True, env=bare)
    assert {getattr(workpacket.runtime, name).__name__ for name in workpacket.runtime.__all__}
    assert [name for name in dir(workpacket.runtime) if not name.startswith("_")] == workpacket.runtime.__all__
    with pytest.raises(AttributeError):
        workpacket.runtime.Nothing  # noqa: B018


# ---- commands ----------------------------------------------------------------------------------------------------


def test_a_command_is_a_step() -> None:
    world = World()
    with world.runtime.run("a") as run:
        outcome = run.command("hello", [sys.executable, "-c", "print('hello'); raise SystemExit(3)"])
    assert outcome == {"exit_code": 3, "stdout": "hello\n", "stderr": ""}


def test_a_cancellation_stops_the_whole_process_group(tmp_path: Path) -> None:
    spawn = (
        "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); time.sleep(60)"
    )
    report = tmp_path / "pid"

    def check() -> None:
        if report.exists() and report.read_text().endswith("\n"):
            raise RunCancelled("enough")

    with pytest.raises(RunCancelled):
        run_command(["sh", "-c", f'"{sys.executable}" -c "{spawn}" > "{report}"'], check)
    grandchild = int(report.read_text())
    stat = Path(f"/proc/{grandchild}/stat")
    ends = time.monotonic() + 60
    while stat.exists() and " Z " not in stat.read_text():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_command_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(TimeoutError):
        run_command(["sleep", "60"], lambda: None, timeout=0.2)


def test_a_cancellation_from_outside_reaches_a_running_command(tmp_path: Path) -> None:
    runtime = Runtime.open(tmp_path / "runs.db")
    began = tmp_path / "began"

    def cancel() -> None:
        while not began.exists():
            time.sleep(0.01)
        runtime.cancel("a@00000001", "enough")

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    with pytest.raises(RunCancelled), runtime.run("a") as run:
        run.command("sleep", ["sh", "-c", f'touch "{began}"; exec sleep 60'])
    cancelling.join()
    assert runtime.state("a@00000001").status == "cancelled"


# ---- transfer ----------------------------------------------------------------------------------------------------


def recorded() -> tuple[World, list[str]]:
    world = World()
    with world.runtime.run("a") as run:
        run.step("one", world.note, "ü")
        run.checkpoint({"at": 1.5})
    return world, list(export_lines(world.store, "a@00000001"))


def test_an_exported_run_is_imported_with_its_hashes() -> None:
    world, lines = recorded()
    target = MemoryStore(ManualClock())
    assert import_lines(target, lines) == "a@00000001"
    assert list(target.read("a@00000001")) == list(world.store.read("a@00000001"))
    assert list(export_lines(target, "a@00000001")) == lines


def test_an_erased_payload_stays_erased_when_the_run_moves() -> None:
    world, _ = recorded()
    world.runtime.purge("a@00000001", 2, "personal data")
    target = MemoryStore(ManualClock())
    import_lines(target, export_lines(world.store, "a@00000001"))
    with pytest.raises(RuntimeFault, match="erased"):
        target.payload(next(target.read("a@00000001", 1, 2)))


def test_an_altered_export_is_refused_as_a_whole() -> None:
    _, lines = recorded()
    for number, line in enumerate(lines):
        record = json.loads(line)
        if record["kind"] == "event":
            changed = [*lines[:number], json.dumps(record | {"actor": "somebody else"}), *lines[number + 1 :]]
            target = MemoryStore(ManualClock())
            with pytest.raises(LogDamaged):
                import_lines(target, changed)
            assert target.heads() == ()


@pytest.mark.parametrize("lines", [[], ["{"], ["[]"], ['{"kind": "event"}']])
def test_what_is_no_export_is_refused(lines: list[str]) -> None:
    with pytest.raises(LogDamaged):
        import_lines(MemoryStore(), lines)


# ---- records and their versions ----------------------------------------------------------------------------------


def event(kind: str, data: str, version: int) -> Event:
    return sealed_event(("a@1", 1, kind, version, 0, 0, "a", "w", 1, None, 0, data, None, "0" * 64))


def test_a_record_without_a_version_is_read_as_legacy() -> None:
    assert current(event("checkpoint", '{"id":"c"}', 0)) == {"id": "c", "name": ""}


def test_upcasters_run_one_after_the_other_and_the_record_stays_as_it_is() -> None:
    kinds = {"x": RecordKind("x", {}, 3, {1: lambda d: {**d, "b": 2}, 2: lambda d: {**d, "c": 3}})}
    old = event("x", '{"a":1}', 1)
    assert current(old, kinds) == {"a": 1, "b": 2, "c": 3}
    assert current(event("x", '{"a":1}', 3), kinds) == {"a": 1}
    assert old.data == '{"a":1}'


def test_a_gap_between_upcasters_is_refused_when_the_kind_is_made() -> None:
    with pytest.raises(ValueError, match="no upcaster"):
        RecordKind("x", {}, 3, {1: lambda d: d})


@pytest.mark.parametrize(("kind", "version"), [("checkpoint", 2), ("from.the.future", 1)])
def test_a_record_of_a_newer_version_is_refused_and_blocks_its_run_only(kind: str, version: int) -> None:
    with pytest.raises(NewerSchema):
        fold([event(kind, "{}", version)])
    world = World()
    with world.crashing(world.runtime.run("a")) as run:
        world.store.append(Append(run.id, (NewEvent(kind, "{}", version),), "future", 1, "a", 1, 2))
        world.crash()
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("a")
    assert caught.value.code == "newer_schema"
    with world.runtime.run("b"):
        pass
    assert {run.id: world.runtime.summary(run.id).attention for run in world.runtime.runs()} == {
        "a@00000001": "newer_schema",
        "b@00000001": "",
    }


def test_every_kind_of_record_is_listed_once() -> None:
    assert all(name == kind.type for name, kind in KINDS.items())


# ---- runs --------------------------------------------------------------------------------------------------------


def test_the_list_of_runs_says_what_needs_attention() -> None:
    world = World()
    with world.runtime.run("done"):
        pass
    with world.crashing(world.runtime.run("lost")):
        world.crash()
    with world.crashing(world.runtime.run("doubt")) as run:
        run.effect("send", world.crash)
    with pytest.raises(KeyError), world.runtime.run("failed", packet="WP-1"):
        raise KeyError
    with world.runtime.run("busy"):
        found = {run.id: (run.liveness, run.attention) for run in world.runtime.runs()}
    assert found == {
        "done@00000001": ("completed", ""),
        "lost@00000001": ("interrupted", "worker_lost"),
        "doubt@00000001": ("interrupted", "effect_outcome_unknown"),
        "WP-1/failed@00000001": ("stopped", "worker_failed"),
        "busy@00000001": ("live", ""),
    }


def test_retention_removes_finished_runs_only() -> None:
    world = World()
    with world.runtime.run("done"):
        pass
    with world.crashing(world.runtime.run("lost")):
        world.crash()
    world.clock.advance(10)
    assert world.runtime.prune(world.clock.now()) == ("done@00000001",)
    assert [head.stream for head in world.store.heads()] == ["lost@00000001"]


@pytest.mark.parametrize("name", ["", "a/b", "a@1", "a\n"])
def test_names_that_would_confuse_streams_are_refused(name: str) -> None:
    with pytest.raises(ValueError):
        stream_prefix(name, "")


@pytest.mark.parametrize("name", ["", "a/b", "a#2", "x" * 201])
def test_names_that_would_confuse_steps_are_refused(name: str) -> None:
    with pytest.raises(ValueError):
        Scope(None).next_key(name)


def test_a_step_needs_a_function() -> None:
    with pytest.raises(TypeError, match="needs a function"):
        name_and_function("fetch", ("not a function",))
    assert name_and_function(len, ([],))[0] == "len"
    assert name_and_function(lambda: 1, ())[0] == "lambda"


def test_promised_facts_are_compared_when_the_run_goes_on() -> None:
    world = World(
        observers=(FactsObserver("environment", {"python": "3.11"}), FactsObserver("digests", {"tasks": "1"}))
    )
    with world.crashing(world.runtime.run("a")) as run:
        run.checkpoint("here")
        world.crash()
    world.observers = (FactsObserver("environment", {"python": "3.12"}), FactsObserver("digests", {"tasks": "1"}))
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("a")
    assert caught.value.code == "environment_changed"
    world.observers = (FactsObserver("environment", {"python": "3.11"}),)
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("a")
    assert caught.value.code == "check_not_run"


def test_a_run_that_does_not_exist_is_never_begun_by_resuming() -> None:
    world = World()
    for action in (world.runtime.resume, world.runtime.state, world.runtime.plan):
        with pytest.raises(RunBlocked) as caught:
            action("nobody@00000001")
        assert caught.value.code == "checkpoint_missing"
    assert world.store.heads() == ()


def test_waits_grow_up_to_their_limit() -> None:
    policy = Retry(attempts=6, first=1, factor=3, most=10, on=(OSError,))
    assert [policy.wait_after(n, OSError()) for n in range(1, 7)] == [1, 3, 9, 10, 10, None]
    assert policy.wait_after(1, KeyError()) is None


def test_a_random_part_makes_waits_differ_and_never_longer() -> None:
    policy = Retry(attempts=100, first=10, factor=1, jitter=0.5)
    waits = [policy.wait_after(1, OSError()) or 0 for _ in range(200)]
    assert min(waits) >= 5
    assert max(waits) <= 10
    assert len(set(waits)) > 100


def test_no_try_begins_after_the_deadline() -> None:
    policy = Retry(attempts=100, first=10, factor=1, deadline=60)
    assert policy.wait_after(1, OSError(), 50) == 10
    assert policy.wait_after(1, OSError(), 51) is None


def test_the_lease_is_kept_while_a_step_takes_long(tmp_path: Path) -> None:
    runtime = Runtime.open(tmp_path / "runs.db", Settings(lease_seconds=0.3))
    with runtime.run("a") as run:
        run.step("long", lambda: time.sleep(1.0))
        assert run.step("after", lambda: "kept") == "kept"
    assert runtime.state(run.id).attempt == 1


def test_a_stopped_process_finds_its_run_taken_over_and_writes_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom workpacket.runtime import Runtime, Settings\n"
        "run = Runtime.open(Path(sys.argv[1]), Settings(lease_seconds=1)).run('a')\n"
        "print('ready', flush=True)\nsys.stdin.readline()\nrun.step('late', lambda: 'late')\n"
    )
    path = tmp_path / "runs.db"
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as zombie:
        assert zombie.stdout is not None
        assert zombie.stdout.readline() == "ready\n"
        zombie.send_signal(signal.SIGSTOP)
        runtime = Runtime.open(path)
        ends = time.monotonic() + 60
        while runtime.store.leases():
            assert time.monotonic() < ends
            time.sleep(0.02)
        with runtime.run("a") as run:
            assert run.attempt == 2
            zombie.send_signal(signal.SIGCONT)
            _, stderr = zombie.communicate("go on\n")
            assert "LeaseLost" in stderr
            run.step("mine", lambda: "mine")
        assert list(runtime.state("a@00000001").steps) == ["mine"]


def test_a_run_goes_on_with_a_narrower_scope_and_the_version_that_was_confirmed() -> None:
    world = World(ask=lambda _, __: True)
    with world.crashing(world.runtime.run("a", scope=["src", "docs"], code_version="1")):
        world.crash()
    with world.crashing(world.runtime.run("a", scope=["src"], code_version="2")):
        world.crash()
    state = world.runtime.state("a@00000001")
    assert (state.scope, state.code_version) == (("src",), "2")


def test_a_plan_names_who_works_on_the_run() -> None:
    world = World()
    with world.runtime.run("a") as run:
        assert world.runtime.plan(run.id, "a").code == "run_busy"


def test_an_answer_of_nobody_leaves_the_question_open() -> None:
    world = World(ask=lambda _, __: None)
    with world.crashing(world.runtime.run("a", inputs={"x": 1})):
        world.crash()
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("a", inputs={"x": 2})
    assert caught.value.code == "inputs_changed"


def test_a_no_stops_the_run_at_its_question() -> None:
    world = World(ask=lambda _, __: False)
    with pytest.raises(RunBlocked) as caught, world.runtime.run("a") as run:
        run.confirm("Deploy?")
    assert caught.value.code == "confirmation_denied"
    assert world.runtime.state("a@00000001").stop_code == "confirmation_denied"


def test_a_beginning_that_cannot_be_stored_leaves_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def full(_: Any) -> Any:
        raise StoreUnavailable("the disk is full", code="disk_full")

    monkeypatch.setattr(world.store, "append", full)
    with pytest.raises(StoreUnavailable):
        world.runtime.run("a")
    assert world.store.lease("a@00000001") is None


def test_the_error_of_the_work_is_not_hidden_by_an_error_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def full(_: Any) -> Any:
        raise StoreUnavailable("the disk is full", code="disk_full")

    def broken(run: Any) -> None:
        monkeypatch.setattr(world.store, "append", full)
        raise KeyError(run.id)

    with pytest.raises(KeyError), world.runtime.run("a") as run:
        broken(run)
    with pytest.raises(StoreUnavailable), world.runtime.run("b"):
        pass


def test_a_fault_of_the_runtime_inside_a_step_is_not_retried() -> None:
    world = World()

    def busy() -> None:
        world.note("try")
        raise StoreUnavailable("locked", code="store_busy")

    for act in ("step", "effect"):
        with pytest.raises(StoreUnavailable), world.runtime.run(act) as run:
            getattr(run.using(retry=Retry(attempts=3)), act)("s", busy)
    assert world.calls == ["try", "try"]


def test_a_deadline_ends_the_run() -> None:
    world = World()
    deadline = datetime.fromtimestamp(world.clock.now() / 1_000_000 + 10, UTC)

    def slow(run: Any) -> None:
        run.step("slow", lambda: world.clock.advance(20))
        run.step("late", world.note, "late")

    with pytest.raises(RunBlocked) as caught, world.runtime.run("a", deadline=deadline, seconds=500) as run:
        slow(run)
    assert caught.value.code == "timeout"
    assert world.calls == []


def test_a_codec_keeps_values_of_ones_own() -> None:
    class Dates:
        def encode(self, value: datetime) -> str:
            return value.isoformat()

        def decode(self, stored: Any) -> datetime:
            return datetime.fromisoformat(stored)

    world = World()
    moment = datetime(2026, 11, 18, tzinfo=UTC)
    with world.crashing(world.runtime.run("a")) as run:
        run.using(codec=Dates()).step("now", lambda: moment)
        world.crash()
    with world.runtime.run("a") as run:
        assert run.using(codec=Dates()).step("now", lambda: moment) == moment


def test_a_run_is_resumed_by_its_id_if_nothing_was_promised_that_cannot_be_checked() -> None:
    world = World()
    for name, inputs in (("without", {}), ("with", {"month": 10})):
        with world.crashing(world.runtime.run(name, inputs=inputs)):
            world.crash()
    with world.runtime.resume("without@00000001") as run:
        assert run.attempt == 2
    with pytest.raises(RunBlocked) as caught:
        world.runtime.resume("with@00000001")
    assert caught.value.code == "check_not_run"


def test_a_payload_that_vanished_is_damage_and_not_an_erasure() -> None:
    world, _ = recorded()
    store = world.store
    assert isinstance(store, MemoryStore)
    event = next(store.read("a@00000001", 1, 2))
    store._payloads.clear()
    with pytest.raises(LogDamaged, match="payload is missing"):
        store.payload(event)


# ---- ids of runs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "stream"),
    [("2026-10", "nightly@2026-10"), ("München (neu)", "nightly@München (neu)"), ("2026/10", "nightly@2026%2F10"),
     ("../../x", "nightly@..%2F..%2Fx"), ("ann@example.org", "nightly@ann%40example.org"), ("a%2Fb", "nightly@a%252Fb"),
     ("a\nb\0", "nightly@a%0Ab%00"), ("\udc80", "nightly@%ED%B2%80")],
)  # fmt: skip
def test_what_separates_or_cannot_be_seen_is_quoted_in_a_key(key: str, stream: str) -> None:
    world = World()
    with world.runtime.run("nightly", key=key) as run:
        run.step("work", world.note, "work")
    assert run.id == stream
    (line,) = world.runtime.runs()
    assert (line.id, line.name, line.packet) == (stream, "nightly", "")
    with world.runtime.run("nightly", key=key) as again:
        assert again.step("work", world.note, "work") == "work"
    assert world.calls == ["work"]


@given(keys=st.lists(st.text(st.characters(codec=None), min_size=1), min_size=2, max_size=2, unique=True))
def test_two_keys_never_name_the_same_run(keys: list[str]) -> None:
    one, two = (stream_name("nightly", "", key) for key in keys)
    assert one != two
    assert one.isprintable()
    assert one.count("@") == 1
    assert "/" not in one


def test_the_streams_of_threads_belong_to_no_packet() -> None:
    with pytest.raises(ValueError, match="reserved"):
        World().runtime.run("nightly", packet="langgraph")
