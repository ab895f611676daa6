"""Snapshots of runs: legacy ones are read, new ones say their version, newer ones are refused; timelines are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridges.samples import RUN_STATE, run_state
from bridges.test_import_and_export import Place, place
from runtime.worlds import World
from workpacket.bridges.checkpoint_files import SNAPSHOT_VERSION, RunStateBridge
from workpacket.bridges.foreign import Foreign
from workpacket.problem import Problem

__all__ = ["place"]

EVENTS: tuple[dict[str, Any], ...] = (
    {"payload": {"run_id": "20260131"}, "seq": 1, "source": "cli", "timestamp": "2026-01-31T09:30:00Z",
     "type": "run_started"},
    {"payload": {"commit": "a" * 40, "milestone_index": 0, "sidecar_written": True}, "seq": 2, "source": "supervisor",
     "timestamp": "2026-01-31T09:31:00Z", "type": "checkpoint_complete"},
    {"payload": {"anything": ["größe", 1.5]}, "seq": 3, "source": "supervisor", "timestamp": "2026-01-31T09:32:00Z",
     "type": "a type that nobody knows", "own": None},
)  # fmt: skip


def timeline(*events: dict[str, Any]) -> bytes:
    return "".join(f"{json.dumps(event, sort_keys=True, ensure_ascii=False)}\n" for event in events).encode()


def read(data: bytes, path: str = "state.json") -> Foreign:
    (found,) = RunStateBridge().read(path, data)
    assert isinstance(found, Foreign), found
    return found


def fault(data: bytes, path: str = "state.json") -> Problem:
    (found,) = RunStateBridge().read(path, data)
    assert isinstance(found, Problem), found
    return found


def test_a_snapshot_without_a_version_is_a_legacy_one_and_is_written_with_the_version() -> None:
    found = read(run_state(schema_version=None))
    assert found.values == RUN_STATE
    assert json.loads(RunStateBridge().write((found,)))["schema_version"] == SNAPSHOT_VERSION == "1.0.0"


def test_a_legacy_snapshot_needs_no_more_than_run_and_phase() -> None:
    found = read(b'{"run_id": "r", "phase": "INIT"}')
    assert found.stream == "runstate/r"


@pytest.mark.parametrize("version", ["1.0.1", "1.1.0"])
def test_a_later_version_of_the_same_form_is_read_with_all_its_fields(version: str) -> None:
    found = read(run_state(schema_version=version, later={"a": 1}))
    assert (found.values["schema_version"], found.values["later"]) == (version, {"a": 1})
    assert read(RunStateBridge().write((found,))).values == found.values


@pytest.mark.parametrize("version", ["2.0.0", "10.0.0"])
def test_a_newer_version_is_refused(version: str) -> None:
    found = fault(run_state(schema_version=version, phase="A PHASE OF THE FUTURE"))
    assert found.code == "newer_schema"
    assert version in found.message


@pytest.mark.parametrize("version", [1, "1", "1.0", "v1.0.0", "0.9.0", "01.0.0", ""])
def test_what_is_no_version_that_ever_was_is_malformed(version: object) -> None:
    message = fault(run_state(schema_version=version)).message
    assert message.startswith("`schema_version`")
    assert "must be `1.0.0` or empty" in message


@pytest.mark.parametrize(
    ("field", "value", "named", "wrong"),
    [
        ("run_id", "", "run_id", ""), ("run_id", 7, "run_id", 7), ("phase", "verify", "phase", "verify"),
        ("milestone_index", -1, "milestone_index", -1), ("milestone_index", True, "milestone_index", True),
        ("milestones", [{"goal": "x", "risk_level": "enormous"}], "risk_level", "enormous"),
        ("milestones", [{"risk_level": "low"}], "goal", {"risk_level": "low"}),
        ("milestones", [{"goal": "x", "done_checks": "all"}], "done_checks", "all"),
        ("scope_lock", {"allowlist": "src"}, "allowlist", "src"),
        ("checkpoint_commit_sha", "HEAD", "checkpoint_commit_sha", "HEAD"), ("retries", "many", "retries", "many"),
        ("started_at", "yesterday", "started_at", "yesterday"), ("stop_reason", 1, "stop_reason", 1),
        ("last_verification_evidence", {"commands_run": [{"command": "x", "exit_code": "0"}]}, "exit_code", "0"),
    ],
)  # fmt: skip
def test_a_field_that_does_not_fit_is_named_where_it_is(field: str, value: object, named: str, wrong: object) -> None:
    data = run_state(**{field: value})
    found = fault(data)
    assert found.code == "checkpoint_malformed"
    assert f"`{named}`" in found.message
    assert json.loads(data.decode()[found.start : found.end]) == wrong


def test_run_and_phase_have_to_be_there() -> None:
    found = RunStateBridge().read("state.json", b"{}")
    assert [one.message for one in found if isinstance(one, Problem)] == ["`run_id` is missing", "`phase` is missing"]


def test_a_timeline_is_carried_over_line_by_line(place: Place) -> None:
    file = place.write(timeline(*EVENTS), "timeline.jsonl")
    assert place("log", "import", "runstate", file)[0] == 0
    assert place.streams() == ["runstate/20260131/timeline"]
    assert place("log", "export", "runstate", "20260131/timeline")[1].encode() == timeline(*EVENTS)
    more = {**EVENTS[1], "seq": 4}
    status, said = place("log", "import", "runstate", place.write(timeline(*EVENTS, more), "timeline.jsonl"))
    assert (status, "3 known, 1 new" in said) == (0, True)


def test_a_timeline_that_names_no_run_belongs_to_the_one_of_its_folder() -> None:
    found = RunStateBridge().read(".runr/runs/20260131/timeline.jsonl", timeline(EVENTS[1]))
    assert [one.stream for one in found if isinstance(one, Foreign)] == ["runstate/20260131/timeline"]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((EVENTS[0], EVENTS[2]), "seq: the previous line has 1"),
        ((EVENTS[0], EVENTS[0]), "seq: the previous line has 1"),
        (
            ({**EVENTS[0], "timestamp": "now"},),
            "`timestamp` is not a valid RFC 3339 date and time: `now` (is not in the form YYYY-MM-DDThh:mm:ssZ)",
        ),
        (({**EVENTS[0], "payload": 1},), "`payload` must be a mapping or empty, not 1"),
    ],
    ids=["gap", "twice", "time", "payload"],
)
def test_a_timeline_that_cannot_be_right_is_refused(events: tuple[dict[str, Any], ...], message: str) -> None:
    data = timeline(*events)
    found = fault(data, "timeline.jsonl")
    assert found.message == message
    assert found.start > data.decode().rstrip("\n").rfind("\n")


def test_an_empty_timeline_and_a_torn_one_are_refused() -> None:
    assert fault(b"\n", "timeline.jsonl").message == "it contains no events"
    assert isinstance(RunStateBridge().read("timeline.jsonl", timeline(*EVENTS)[:-9])[0], Problem)


def test_a_run_of_this_store_is_written_as_a_new_snapshot() -> None:
    world = World()
    with world.runtime.run("work", scope=["src"]) as run:
        run.step("one", lambda: 1)
    stopped = world.runtime.run("other")
    stopped._session.leave()
    (done,) = RunStateBridge().from_runs(world.store, "work@00000001")
    assert done.values["schema_version"] == "1.0.0"
    assert (done.values["phase"], done.values["scope_lock"]) == ("FINALIZE", {"allowlist": ["src"], "denylist": []})
    assert read(RunStateBridge().write((done,))) == done
    assert RunStateBridge().from_runs(world.store, "no run") == ()


def test_a_stopped_run_says_its_reason_by_its_registered_code(place: Place) -> None:
    handle = place("runtime", "run", "start", "work")[1].strip()
    assert place("runtime", "run", "stop", handle, "--code", "review_failed")[0] == 31  # an alias
    run = handle.partition("#")[0]
    values = json.loads(place("log", "export", "runstate", run)[1])
    assert (values["phase"], values["stop_reason"]) == ("STOPPED", "review_rejected")
    assert Path(values.get("repo_path", "/")).is_absolute()
