"""Sessions with a model: what a crash leaves behind, what is known of it afterwards, and what may be decided."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from architecture.source_tree import ROOT
from git.scratch import bare_bones
from runtime.test_tutorial import BLOCK, play
from runtime.worlds import World
from workpacket.runtime import RunBlocked, RunCancelled, Runtime, Settings
from workpacket.runtime.errors import WouldBeAltered
from workpacket.runtime.model_sessions.record import LARGEST_INLINE, last_valid, operator_decides, session_points
from workpacket.runtime.model_sessions.session import ModelRun, OpenSession, assess, open_session
from workpacket.runtime.records.redaction import Redactor

PROGRAM = Path(__file__).with_name("session_program.py")
STREAM = "session@s"


def live(store: Path, where: str = "") -> tuple[int, str, str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(PROGRAM), str(store), where], env=environment,
                          capture_output=True, text=True, check=False)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def opened(store: Path) -> Callable[[], Runtime]:
    return lambda: Runtime.open(store, Settings(actor="operator"))


def outbox(store: Path) -> list[str]:
    path = store.with_name("outbox")
    return path.read_text().splitlines() if path.exists() else []


ANSWER = "0 1 2 3 4 5 "


# ---- golden crashes: real processes, SIGKILL ---------------------------------------------------------------------


def test_killed_between_chunks_the_answer_is_asked_for_anew(store: Path, opened: Callable[[], Runtime]) -> None:
    assert live(store, "mid-chunk") == (-signal.SIGKILL, "partial ''\n", "")
    report = assess(opened(), STREAM)
    assert (report.session.status, report.session.reason) == ("PAUSED", "worker_lost")
    assert [(call.step, call.pending) for call in report.pending] == [("message-000002", "repeatable")]
    assert report.session.last_checkpoint_kind == "periodic"
    assert report.artifact is not None
    assert report.artifact.id == report.session.checkpoint_artifact_id
    assert report.artifact.body["partial"] == {"message": 2, "chunks": 4, "text": "0 1 2 3 "}
    assert report.artifact.body["of"] == "model_run"
    assert live(store) == (0, "partial '0 1 2 3 '\nsent\n", "")
    assert outbox(store) == [ANSWER]
    assert assess(opened(), STREAM).session.status == "CLOSED"


@pytest.mark.parametrize(
    ("where", "choice", "in_the_end"),
    [("mid-tool", "retry", [ANSWER]), ("after-effect", "repair", [ANSWER]), ("mid-tool", "repair", [])],
)
def test_killed_around_a_tool_call_nobody_repeats_it_unasked(
    store: Path, opened: Callable[[], Runtime], where: str, choice: Any, in_the_end: list[str]
) -> None:
    assert live(store, where)[0] == -signal.SIGKILL
    before = outbox(store)
    first = assess(opened(), STREAM)
    assert (first.session.status, first.session.reason) == ("BLOCKED", "effect_outcome_unknown")
    assert [(call.step, call.pending) for call in first.pending] == [("tool-c1", "unknown")]
    for _ in range(2):
        status, _, errors = live(store)
        assert status == 1
        assert "RunBlocked: session@s: tool-c1: c1" in errors
    assert outbox(store) == before
    assert assess(opened(), STREAM).as_json() == first.as_json()
    assert operator_decides(opened(), STREAM, choice, "looked").session.status == "PAUSED"
    assert live(store)[0] == 0
    assert outbox(store) == in_the_end


def test_a_program_that_outlives_its_session_blocks_until_it_ends(store: Path, opened: Callable[[], Runtime]) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, str(PROGRAM), str(store), "orphan"], env=environment,
                          stdout=subprocess.DEVNULL) as parent:  # fmt: skip
        orphan = until(lambda: program_of(store))
        parent.send_signal(signal.SIGKILL)
    try:
        report = assess(opened(), STREAM)
        assert (report.session.status, report.session.reason) == ("BLOCKED", "orphan_alive")
        assert f"/{orphan}/" in report.details[0]
        status, _, errors = live(store)
        assert status == 1
        assert "tool-p" in errors
        assert outbox(store) == []
    finally:
        os.kill(orphan, signal.SIGKILL)
    report = until(lambda: r if (r := assess(opened(), STREAM)).session.status == "PAUSED" else None)
    assert [(call.step, call.target, call.pending) for call in report.pending] == [("tool-p", "program", "repeatable")]
    assert live(store)[0] == 0
    assert outbox(store) == [ANSWER]


def program_of(store: Path) -> int | None:
    if not store.with_name("up").exists():  # killed before that, its parent would take it along
        return None
    with closing(sqlite3.connect(store)) as connection:
        try:
            rows = connection.execute("select data from events where type='step.started' and data like '%tool-p%'")
            found = [row[0] for row in rows]
        except sqlite3.OperationalError:
            return None
    return int(found[0].split('"processes":[')[1].split('","')[1].split("/")[1]) if found else None


def until(look: Callable[[], Any]) -> Any:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        found = look()
        if found is not None:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen within a minute")


def damage(store: Path, payload: str) -> None:
    with closing(sqlite3.connect(store)) as connection:
        for (name,) in connection.execute("select name from sqlite_master where type='trigger'").fetchall():
            connection.execute(f'drop trigger "{name}"')
        changed = connection.execute("update payloads set bytes = x'7b7d' where digest = ?", (bytes.fromhex(payload),))
        assert changed.rowcount == 1
        connection.commit()


def test_a_damaged_artifact_gives_way_to_the_one_before_it(store: Path, opened: Callable[[], Runtime]) -> None:
    assert live(store, "oversize")[0] == -signal.SIGKILL
    state = opened().state(STREAM)
    points = session_points(state)
    large = state.steps[f"artifact-{points[-1].name}"].event.payload
    assert large is not None
    damage(store, large)
    report = assess(opened(), STREAM)
    assert (report.session.status, report.corrupt) == ("PAUSED", (points[-1].name,))
    assert report.session.checkpoint_artifact_id == points[-2].name
    for point in points[:-1]:
        assert point.event.payload is not None
        damage(store, point.event.payload)
    blocked = assess(opened(), STREAM)
    assert (blocked.session.reason, blocked.choices) == ("log_damaged", ("repair", "cancel"))
    assert live(store)[0] == 1
    assert operator_decides(opened(), STREAM, "repair").session.status == "PAUSED"
    assert live(store)[0] == 0


def test_a_state_that_is_too_large_for_a_checkpoint_becomes_an_artifact_of_its_own(
    store: Path, opened: Callable[[], Runtime]
) -> None:
    assert live(store, "oversize")[0] == -signal.SIGKILL
    report = assess(opened(), STREAM)
    assert report.artifact is not None
    assert len(str(report.artifact.body["state"])) > LARGEST_INLINE
    payload = opened().store.payload(session_points(opened().state(STREAM))[-1].event)
    assert payload is not None
    assert len(payload) < 200


# ---- in one process ----------------------------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    return World()


def session(world: World, **more: Any) -> OpenSession:
    return open_session(world.runtime, "s", model="m", **more)


@contextmanager
def interrupted(world: World) -> Iterator[OpenSession]:
    """A session that a person stops with Ctrl-C."""
    with suppress(KeyboardInterrupt), session(world) as one:
        yield one
        raise KeyboardInterrupt


def streamed(world: World, numbers: list[int]) -> Callable[[ModelRun], str]:
    def ask(answer: ModelRun) -> str:
        for number in answer.chunks(numbers, number=lambda chunk: chunk):
            world.note(str(number))
        return answer.text

    return ask


def test_a_gap_between_chunks_ends_the_answer_and_is_for_the_operator(world: World) -> None:
    with pytest.raises(RunBlocked, match="chunk 3 came after chunk 1"), session(world) as first:
        first.model_run(streamed(world, [0, 1, 3]))
    report = assess(world.runtime, STREAM)
    assert (report.session.status, report.session.reason) == ("BLOCKED", "sequence_gap")
    assert report.session.last_checkpoint_kind == "post_failure"
    with pytest.raises(RunBlocked) as caught:
        session(world)
    decide = f"workpacket runtime session decide {STREAM}"
    assert caught.value.hint == f"{decide} retry, or: {decide} repair, or: {decide} cancel"
    assert world.runtime.state(STREAM).blocks == ["sequence_gap"]
    operator_decides(world.runtime, STREAM, "retry")
    with session(world) as second:
        assert second.model_run(streamed(world, [0, 1, 2])).content == "012"


def test_what_came_before_a_gap_may_be_accepted(world: World) -> None:
    with pytest.raises(RunBlocked), session(world) as first:
        first.model_run(streamed(world, [0, 1, 3]))
    operator_decides(world.runtime, STREAM, "repair")
    with session(world) as second:
        assert second.model_run(streamed(world, [7])).content == "01"
        assert second.model_run(streamed(world, [7])).content == "7"


def test_a_missing_message_blocks(world: World) -> None:
    with interrupted(world) as first:
        first.add("user", "one")
        first._position = 2  # as a damaged import would have it
        first.add("user", "three")
    report = assess(world.runtime, STREAM)
    assert (report.session.reason, report.details) == ("sequence_gap", ("message 3 follows message 1",))


def test_a_cancellation_takes_effect_between_two_chunks_and_around_a_tool_call(world: World) -> None:
    def ask(answer: ModelRun) -> str:
        first.checkpoint(state="x" * 40_000)
        for chunk in answer.chunks("abc"):
            world.note(chunk)
            world.runtime.cancel(STREAM, "enough")
        return answer.text

    with pytest.raises(RunCancelled), session(world) as first:
        first.model_run(ask)
    assert world.calls == ["a"]
    report = assess(world.runtime, STREAM)
    assert (report.session.status, report.session.last_checkpoint_kind) == ("CANCELLED", "pre_shutdown")


def test_a_tool_call_whose_session_was_cancelled_is_not_begun_and_a_begun_one_keeps_its_outcome(world: World) -> None:
    def act() -> str:
        world.runtime.cancel(STREAM, "enough")
        return world.note("acted")

    with pytest.raises(RunCancelled), session(world) as first:
        first.tool("c1", act)
    assert [effect.status for effect in world.runtime.state(STREAM).effects.values()] == ["succeeded"]
    assert world.calls == ["acted"]


def test_a_session_that_fails_again_and_again_is_stopped(world: World) -> None:
    def fail(_: ModelRun) -> str:
        world.note("try")
        raise OSError("no answer")

    for _ in range(3):
        with pytest.raises(OSError, match="no answer"), session(world) as one:
            one.model_run(fail)
    with pytest.raises(RunBlocked) as caught:
        session(world)
    assert caught.value.code == "stalled"
    assert len(world.calls) == 3
    operator_decides(world.runtime, STREAM, "retry")
    with session(world) as one:
        one.add("user", "go on")


def test_what_was_said_is_compared_and_restore_goes_on_behind_it(world: World) -> None:
    with interrupted(world) as first:
        first.add("user", "one")
        first.checkpoint(state={"todo": [1]})
    with (
        pytest.raises(RunBlocked, match="message 1 of session s differs from the stored one"),
        session(world) as second,
    ):
        second.add("user", "two")
    with session(world) as third:
        restored = third.restore()
        assert ([m.content for m in restored.messages], restored.state, restored.partial) == (
            ["one"],
            {"todo": [1]},
            "",
        )
        assert third.add("user", "two").seq == 2
    assert [message.content for message in session(world).messages] == ["one", "two"]


def test_secrets_reach_neither_messages_nor_artifacts(world: World) -> None:
    world.redactor = Redactor(values=("hunter2hunter2",))
    with session(world) as one:
        said = one.add("user", "it is hunter2hunter2")
        one.checkpoint(state={"at": 1})
        for name, value in (("password", "short"), ("note", "hunter2hunter2"), ("deep", [{"api_key": "short"}])):
            with pytest.raises(WouldBeAltered, match=name):
                one.checkpoint(state={"at": 2, name: value})
        with pytest.raises(WouldBeAltered, match="the state"):
            one.checkpoint(state="hunter2hunter2")
    assert (said.content, said.redactions) == ("it is [redacted:environment]", 1)
    report = assess(world.runtime, STREAM)
    assert report.artifact is not None
    assert report.artifact.body["state"] == {"at": 1}
    stored = b"".join(world.store.payload(event) or event.data.encode() for event in world.store.read(STREAM))
    assert b"hunter2" not in stored
    assert b"short" not in stored


def test_an_artifact_under_an_id_that_is_not_its_own_is_passed_over(world: World) -> None:
    with interrupted(world) as one:
        one.add("user", "one")
    own = assess(world.runtime, STREAM).session.checkpoint_artifact_id
    with session(world) as one:
        one.run.checkpoint({"artifact": "f" * 64, "inline": {"state": 1}}, name="f" * 64, kind="session.periodic")
        found = last_valid(world.store, one.run.state)
        assert found[0] is not None
        assert (found[0].id, found[1]) == (own, ("f" * 64,))


def test_a_decision_that_does_not_answer_the_reason_is_refused(world: World) -> None:
    with session(world):
        pass
    with pytest.raises(RunBlocked, match="repair does not resolve"):
        operator_decides(world.runtime, STREAM, "repair")


def test_a_session_that_somebody_works_on_is_active(world: World) -> None:
    with session(world):
        assert assess(world.runtime, STREAM).session.status == "ACTIVE"


# ---- the page ----------------------------------------------------------------------------------------------------


def blocks() -> Iterator[tuple[str, str]]:
    page = (ROOT / "docs" / "runtime" / "session.md").read_text("utf-8")
    return ((match["info"], match["body"]) for match in BLOCK.finditer(page))


def test_the_page_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bare_bones(tmp_path)
    played = 0
    for info, body in blocks():
        if info.startswith("python file="):
            (tmp_path / info.partition("file=")[2]).write_text(body, "utf-8")
        elif info.startswith("console"):
            assert play(tmp_path, info, body) == body.splitlines()[1:]
            played += 1
    assert played == 4
