"""`workpacket runtime session`: what an operator sees and decides, and going on with a session of another machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from git.scratch import make_repository
from workpacket.bridges.checkpoint_files import artifact_of
from workpacket.cli.main import main
from workpacket.runtime import RunBlocked, Runtime
from workpacket.runtime.errors import LogDamaged
from workpacket.runtime.model_sessions.record import LARGEST_INLINE, Artifact, artifact_id, carry_over
from workpacket.runtime.model_sessions.session import OpenSession, open_session

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Path, Path]:
    """Two machines: each with a clone and a store of its own."""
    places = tmp_path / "one", tmp_path / "two"
    for place in places:
        place.mkdir()
        make_repository(place)
    return places


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def called(place: Path, *words: str) -> tuple[int, str]:
        capsys.readouterr()
        with chdir(place):
            status = main([*words])
        return status, "".join(capsys.readouterr())

    return called


class Killed(BaseException):
    """Stands for the end of the process: nothing after it is executed."""


def working(place: Path, *, until: str = "", state: Any = None, messages: int = 2) -> list[str]:
    """A session that says something, calls a tool, and may be cut off in a second call; gives what the tools did."""
    did: list[str] = []

    def act(what: str) -> str:
        did.append(what)
        if what == until:
            raise Killed
        return f"{what} done"

    with chdir(place), Runtime.open() as runtime:
        session = open_session(runtime, "s", model="m", packet="WP-1-X-v1")
        session.restore()
        for number in range(len(session.messages) + 1, messages + 1):
            session.add("user", f"message {number}")
        with suppress(Killed):
            session.tool("call-1", act, "first")
            session.checkpoint(state=state or {"todo": ["second"]})
            session.tool("call-2", act, "second")
        session.checkpoint()
        session.run.__exit__(RuntimeError, RuntimeError("the machine is lost"), None)
    return did


def moved(call: Call, machines: tuple[Path, Path]) -> str:
    """The artifact of the session taken from the first machine to the second, and continued there."""
    file = str(machines[1] / "artifact.json")
    assert call(machines[0], "log", "export", "session", "WP-1-X-v1/s", "--out", file)[0] == 0
    assert call(machines[1], "log", "import", "session", file)[0] == 0
    status, said = call(machines[1], "runtime", "session", "continue", "WP-1-X-v1/s")
    assert (status, "unknown" in said) in {(0, False), (74, True)}, said
    return said


def opened_at(place: Path) -> Iterator[OpenSession]:
    with chdir(place), Runtime.open() as runtime, open_session(runtime, "s", model="m", packet="WP-1-X-v1") as session:
        yield session


def test_an_operator_sees_what_blocks_a_session_and_decides(machines: tuple[Path, Path], call: Call) -> None:
    here = machines[0]
    assert working(here, until="second") == ["first", "second"]
    status, said = call(here, "runtime", "session", "show", "WP-1-X-v1/session@s")
    assert status == 74
    assert "BLOCKED effect_outcome_unknown" in said
    assert "pending: tool-call-2 (call-2): unknown" in said
    assert "workpacket runtime session decide WP-1-X-v1/session@s repair" in said
    assert call(here, "runtime", "session", "show", "WP-1-X-v1/session@s")[1] == said
    status, said = call(here, "runtime", "session", "decide", "WP-1-X-v1/session@s", "repair", "--note", "looked")
    assert (status, "PAUSED" in said) == (0, True)
    assert working(here) == []
    assert "PAUSED" in call(here, "runtime", "session", "list")[1]


def test_a_decision_that_there_is_not_and_a_session_that_there_is_not_are_refused(
    machines: tuple[Path, Path], call: Call
) -> None:
    working(machines[0])
    assert "invalid_value" in call(machines[0], "runtime", "session", "decide", "WP-1-X-v1/session@s", "perhaps")[1]
    assert "checkpoint_missing" in call(machines[0], "runtime", "session", "show", "other")[1]
    assert "checkpoint_missing" in call(machines[0], "runtime", "session", "continue", "other")[1]
    assert call(machines[1], "runtime", "session", "list")[1] == "there are no sessions\n"


def test_a_session_goes_on_on_another_machine_and_repeats_no_call(machines: tuple[Path, Path], call: Call) -> None:
    assert working(machines[0], messages=3) == ["first", "second"]
    assert "PAUSED handed_over, 3 messages" in moved(call, machines)
    assert working(machines[1], messages=4) == []
    for session in opened_at(machines[1]):
        restored = session.restore()
        assert [message.content for message in restored.messages] == [f"message {n}" for n in (1, 2, 3, 4)]
        assert restored.state == {"todo": ["second"]}


def test_a_call_of_unknown_outcome_is_unknown_on_the_other_machine_too(machines: tuple[Path, Path], call: Call) -> None:
    working(machines[0], until="second")
    assert "pending: tool-call-2 (call-2): unknown" in moved(call, machines)
    with pytest.raises(RunBlocked, match="tool-call-2"):
        working(machines[1])
    assert call(machines[1], "runtime", "session", "decide", "WP-1-X-v1/session@s", "retry")[0] == 0
    assert working(machines[1]) == ["second"]


def test_messages_that_stayed_behind_are_counted_and_never_taken_for_new_ones(
    machines: tuple[Path, Path], call: Call
) -> None:
    working(machines[0], messages=11, state={"large": "x" * (LARGEST_INLINE + 1)})
    assert ", 11 messages" in moved(call, machines)
    for session in opened_at(machines[1]):
        with pytest.raises(RunBlocked, match="3 messages of session s are on another machine"):
            session.add("user", "message 1")
        assert [message.seq for message in session.restore().messages] == [4, 5, 6, 7, 8, 9, 10, 11]
        assert session.add("user", "message 12").seq == 12
    assert ", 12 messages" in call(machines[1], "runtime", "session", "list")[1]


def test_a_session_that_is_here_already_is_not_begun_again(machines: tuple[Path, Path], call: Call) -> None:
    working(machines[0])
    moved(call, machines)
    before = call(machines[1], "runtime", "session", "show", "WP-1-X-v1/session@s")
    status, said = call(machines[1], "runtime", "session", "continue", "WP-1-X-v1/s")
    assert (status, "view_conflict" in said) == (69, True)
    assert call(machines[1], "runtime", "session", "show", "WP-1-X-v1/session@s") == before
    assert "unchanged" in call(machines[1], "log", "import", "session", str(machines[1] / "artifact.json"))[1]


@pytest.mark.parametrize(
    "change",
    [
        {"messages": 1},
        {"tail": [{"seq": 7, "role": "user", "content": "x"}]},
        {"calls": [{"step": "tool-a", "status": "succeeded"}]},
    ],
    ids=["fewer-messages", "other-numbers", "call-without-key"],
)
def test_an_artifact_that_cannot_be_right_begins_nothing(machines: tuple[Path, Path], change: dict[str, Any]) -> None:
    body = {"session_id": "s", "packet": "", "model": "m", "kind": "periodic", "schema_version": 1, "messages": 2,
            "tail": [{"seq": n, "role": "user", "content": "x"} for n in (1, 2)], "calls": [], **change}  # fmt: skip
    with chdir(machines[0]), Runtime.open() as runtime:
        with pytest.raises(LogDamaged):
            carry_over(runtime, Artifact(artifact_id(body), body))
        assert list(runtime.store.heads()) == []
        with pytest.raises(RunBlocked, match="not this artifact's id"):
            carry_over(runtime, Artifact("0" * 64, body))


def test_the_artifact_of_a_file_is_what_the_session_wrote(machines: tuple[Path, Path], call: Call) -> None:
    working(machines[0])
    values = json.loads(call(machines[0], "log", "export", "session", "WP-1-X-v1/s")[1])
    artifact = artifact_of(values)
    calls = cast("list[dict[str, str]]", artifact.body["calls"])
    assert [(row["step"], row["status"]) for row in calls] == [
        ("tool-call-1", "succeeded"),
        ("tool-call-2", "succeeded"),
    ]
