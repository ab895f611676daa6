"""The first founding document, checkpoint and resume of a step: each thing it names, done by the real thing.

That each of its six subtasks has code and tests is shown by the table of docs/runtime/step.md and by
tests/runtime/test_step_page.py, which holds the table complete and every name in it real.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from guided_tour.terminal import Shown, at_terminal
from workpacket.runtime import step

FIELDS = {
    "mission_id": "str", "run_id": "str", "step_id": "str", "strictness": "Strictness", "scope_refs": "ScopeRef",
    "input_hash": "str", "cursor": "str", "retry_token": "str", "timestamp": "datetime",
}  # fmt: skip
# What the two lines of the document give for these inputs.
HASHES = {
    "{}": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    '{"b": 1, "a": "ä"}': "a313805d22cf7d7b2b35eb4b730f89ba54571c504335cb64cce5040ec37b14e6",
}

PROGRAM = """
import os, signal, sys
from workpacket.runtime.step import CheckpointEmitter, ResumeMiddleware, StepContext, StepLog
from workpacket.runtime.step.pipeline import Pipeline

month, gate = sys.argv[1:3]

def extract(context):
    print("extracted")
    context.state["terms"] = ["workspace"]
    return context

def generation_gate(context):
    if gate == "shut":
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return context

def generate(context):
    print("generated with", context.state["terms"], "at", context.cursor)
    return context

log = StepLog("mission.events.jsonl")
Pipeline(log, [ResumeMiddleware(log), extract, CheckpointEmitter(log), generation_gate, generate]).run(
    StepContext("041", "run-1", "specify", inputs={"month": month}))
"""


def command(month: str, gate: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, month, gate]


def session(folder: Path, month: str, gate: str) -> subprocess.CompletedProcess[str]:
    """One session without a terminal: a process of its own."""
    return subprocess.run(command(month, gate), cwd=folder, env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)  # fmt: skip


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def events(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "mission.events.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder in which a session was killed in the generation gate."""
    first = session(tmp_path, "2026-10", "shut")
    assert (first.returncode, first.stdout) == (-signal.SIGKILL, "extracted\n")
    return tmp_path


# ---- T030: the model -----------------------------------------------------------------------------------------------


def test_the_names_of_the_document_stand_in_one_module() -> None:
    named = ("StepCheckpoint", "Strictness", "ScopeRef", "compute_input_hash", "verify_input_hash", "ResumeMiddleware")
    assert set(named) <= set(step.__all__)
    assert len(inspect.getsource(step).splitlines()) < 220


def test_a_checkpoint_is_a_dataclass_with_the_nine_fields_in_their_order() -> None:
    fields = dataclasses.fields(step.StepCheckpoint)
    assert [field.name for field in fields][: len(FIELDS)] == list(FIELDS)
    for field in fields[: len(FIELDS)]:
        assert FIELDS[field.name] in str(field.type)
        assert field.default is dataclasses.MISSING
    for field in fields[len(FIELDS) :]:
        assert (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)


# ---- T033: the hash ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", HASHES)
def test_inputs_hash_to_the_hex_of_the_document(inputs: str) -> None:
    assert step.compute_input_hash(json.loads(inputs)) == HASHES[inputs]


def test_a_checkpoint_made_by_hand_verifies_its_inputs_and_no_others() -> None:
    inputs = {"month": "2026-10", "pages": [1, 2]}
    made = step.StepCheckpoint("m", "r", "s", step.Strictness.MEDIUM, [step.ScopeRef("team", "v3")],
                               step.compute_input_hash(inputs), "pre_generation_gate", "token",
                               datetime.now(UTC))  # fmt: skip
    assert step.verify_input_hash(made, dict(reversed(inputs.items()))) is True
    assert step.verify_input_hash(made, {**inputs, "pages": [2, 1]}) is False


# ---- T031, T032: emission and loading ------------------------------------------------------------------------------


def test_the_checkpoint_is_on_disk_before_the_gate_stops_the_session(left: Path) -> None:
    (event,) = events(left)
    assert set(FIELDS) <= set(event)
    assert event["event_type"] == "StepCheckpointed"
    assert event["cursor"] == "pre_generation_gate"
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(event["retry_token"]))
    assert event["input_hash"] == step.compute_input_hash({"month": "2026-10"})
    assert datetime.fromisoformat(str(event["timestamp"])).tzinfo is not None


def test_the_latest_checkpoint_of_the_step_is_loaded_from_the_log(left: Path) -> None:
    session(left, "2026-10", "shut")
    tokens = [event["retry_token"] for event in events(left) if event["event_type"] == "StepCheckpointed"]
    loaded = step.load_checkpoint(left / "mission.events.jsonl", "specify")
    assert loaded is not None
    assert loaded.retry_token == tokens[-1] != tokens[0]
    assert step.load_checkpoint(left / "mission.events.jsonl", "plan") is None


# ---- T034, T035: resume in another session -------------------------------------------------------------------------


def test_another_session_restores_the_state_and_goes_on_at_the_cursor(left: Path) -> None:
    second = session(left, "2026-10", "open")
    assert (second.returncode, second.stdout) == (0, "generated with ['workspace'] at pre_generation_gate\n")


def test_without_a_terminal_changed_inputs_stop_the_session_and_it_does_not_wait(left: Path) -> None:
    second = session(left, "2026-11", "open")
    assert (second.returncode, second.stdout) == (1, "")
    assert 'input month: "2026-10" -> "2026-11"' in second.stderr
    assert len(events(left)) == 1


def at_the_terminal(left: Path, answer: str) -> Shown:
    return at_terminal(command("2026-11", "open"), left, [("[y/N]", answer)], environment())


@pytest.mark.parametrize(("answer", "goes_on"), [("y", True), ("n", False), ("", False)])
def test_at_a_terminal_the_person_is_asked_whether_to_go_on_with_changed_inputs(
    left: Path, answer: str, goes_on: bool
) -> None:
    typed = at_the_terminal(left, answer)
    assert 'go on although input month: "2026-10" -> "2026-11"?' in typed.screen
    assert ("generated with ['workspace']" in typed.screen) is goes_on
    assert (typed.status == 0) is goes_on
    assert "extracted" not in typed.screen
    (said,) = (event for event in events(left) if event["event_type"] == "StepResumeConfirmed")
    assert said["answer"] == ("yes" if goes_on else "no")


# ---- the definition of done ----------------------------------------------------------------------------------------


def test_six_subtasks_are_traced_to_code_and_tests() -> None:
    page = (ROOT / "docs" / "runtime" / "step.md").read_text("utf-8")
    assert re.findall(r"^\| (T\d+) ", page, re.MULTILINE) == [f"T{number:03d}" for number in range(30, 36)]
