"""Checkpoint and resume of a step: the seed's T030 to T035, and what may go wrong. See docs/runtime/step.md."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.runtime.errors import LogDamaged, RedactionFailed, RunBlocked, StoreUnavailable
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.step import (
    CheckpointEmitter,
    ResumeMiddleware,
    ScopeRef,
    StepCheckpoint,
    StepContext,
    StepLog,
    Strictness,
    compute_input_hash,
    load_checkpoint,
    verify_input_hash,
)
from workpacket.runtime.step.checkpoint import hash_variant
from workpacket.runtime.step.log import checkpoint_of, event_of, identity_of, line_of
from workpacket.runtime.step.pipeline import Pipeline

NOON = datetime(2026, 2, 16, 12, tzinfo=UTC)
INPUTS = {"b": [1, 2.5], "a": {"ä": None}}
REFS = (ScopeRef("team", "v3"), ScopeRef("mission", "v1"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Blocked(Exception):
    """What the gate raises when a person has to clarify something first."""


class World:
    """A log, and a pipeline whose gate is shut until somebody opens it."""

    def __init__(self, folder: Path, ask: Callable[[str, str], bool | None] | None = None) -> None:
        self.log = StepLog(folder / "mission.events.jsonl")
        self.ask = ask
        self.calls: list[str] = []
        self.open = False
        self.numbers = count(1)

    def token(self) -> str:
        return f"00000000-0000-4000-8000-{next(self.numbers):012d}"

    def emitter(self, cursor: str = "pre_generation_gate") -> CheckpointEmitter:
        return CheckpointEmitter(self.log, cursor, Redactor(), lambda: NOON, self.token)

    def resume(self) -> ResumeMiddleware:
        return ResumeMiddleware(self.log, self.ask, "tester", Redactor(), lambda: NOON, self.token)

    def pipeline(self) -> Pipeline:
        def extract(context: StepContext) -> StepContext:
            self.calls.append("extract")
            context.state["terms"] = ["workspace"]
            return context

        def generation_gate(context: StepContext) -> StepContext:
            self.calls.append("gate")
            assert load_checkpoint(self.log, context.step_id) is not None, "the gate came before the checkpoint"
            if not self.open:
                raise Blocked
            return context

        def generate(context: StepContext) -> StepContext:
            self.calls.append(f"generate {context.state['terms']}")
            return context

        return Pipeline(self.log, [self.resume(), extract, self.emitter(), generation_gate, self.emitter("post_gate"),
                                   generate])  # fmt: skip

    def run(self, **changed: Any) -> StepContext:
        return self.pipeline().run(replace(context(), **changed))

    def block(self) -> str:
        """Run into the shut gate; the token of the checkpoint."""
        with pytest.raises(Blocked):
            self.run()
        self.calls.clear()
        self.open = True
        return self.latest().retry_token

    def latest(self) -> StepCheckpoint:
        checkpoint = load_checkpoint(self.log, "step-1")
        assert checkpoint is not None
        return checkpoint


def context() -> StepContext:
    return StepContext("mission", "run", "step-1", INPUTS, Strictness.MEDIUM, REFS)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def refused(world: World, **changed: Any) -> RunBlocked:
    """The refusal, after which nothing was done and nothing was written."""
    before = world.log.path.read_bytes()
    with pytest.raises(RunBlocked) as caught:
        world.run(**changed)
    assert world.calls == []
    assert world.log.path.read_bytes() == before
    return caught.value


# ---- T030: the model ---------------------------------------------------------------------------------------------


def test_a_checkpoint_has_the_fields_of_the_seed_in_their_order() -> None:
    checkpoint = StepCheckpoint("m", "r", "s", Strictness.MAX, list(REFS), "0" * 64, "post_gate", "t", NOON)
    assert checkpoint.strictness == "max"
    assert list(event_of(checkpoint)) == [
        "event_type", "mission_id", "run_id", "step_id", "strictness", "scope_refs", "input_hash", "cursor",
        "retry_token", "timestamp",
    ]  # fmt: skip


def test_a_checkpoint_comes_back_from_its_line(world: World) -> None:
    checkpoint = world.emitter().checkpoint(context())
    assert checkpoint_of(json.loads(line_of(event_of(checkpoint)))) == checkpoint


@pytest.mark.parametrize(
    ("field", "value"),
    [("mission_id", ""), ("strictness", "high"), ("scope_refs", [{"scope": "a"}]), ("input_hash", "abc"),
     ("retry_token", "1"), ("timestamp", "2026-02-16"), ("timestamp", "noon"), ("input_hash_variant", "both"),
     ("cursor", None), ("input_hashes", {"a": "b"})],
)  # fmt: skip
def test_a_field_of_another_form_is_named(world: World, field: str, value: object) -> None:
    event = {**event_of(world.emitter().checkpoint(context())), field: value}
    with pytest.raises(ValueError, match=f"^{field}: it must be"):
        checkpoint_of(event)  # type: ignore[arg-type]  # that is the point


# ---- T031: emission ----------------------------------------------------------------------------------------------


def test_the_checkpoint_is_durable_before_the_gate_is_asked(world: World) -> None:
    with pytest.raises(Blocked):
        world.run()
    assert world.calls == ["extract", "gate"]
    assert world.latest().cursor == "pre_generation_gate"


def test_if_the_checkpoint_cannot_be_written_the_gate_is_not_asked(world: World, tmp_path: Path) -> None:
    world.log.path = tmp_path / "no folder" / "log"
    with pytest.raises(StoreUnavailable):
        world.run()
    assert world.calls == ["extract"]


def test_a_full_disk_leaves_no_half_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.emitter().process(context())
    before = world.log.path.read_bytes()
    monkeypatch.setattr("workpacket.runtime.step.log.os.fsync", _full)
    with pytest.raises(StoreUnavailable) as caught:
        world.emitter().process(context())
    assert caught.value.code == "disk_full"
    assert world.log.path.read_bytes() == before


def _full(_: int) -> None:
    raise OSError(28, "No space left on device")


def noop(context: StepContext) -> StepContext:
    return context


def gate() -> Callable[[StepContext], StepContext]:
    def generation_gate(context: StepContext) -> StepContext:
        return context

    return generation_gate


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        (lambda w: [gate(), w.emitter()], "the checkpoint pre_generation_gate must come before"),
        (lambda w: [gate()], "the checkpoint pre_generation_gate must come before"),
        (lambda w: [w.emitter("post_gate"), w.emitter(), gate()], "the checkpoint post_gate must come after"),
        (lambda w: [noop, w.resume()], "the resume layer must come first"),
        (lambda w: [w.emitter(), w.emitter()], "two checkpoints have the same cursor"),
    ],
    ids=["late", "none", "post-before", "resume-late", "twice"],
)
def test_a_pipeline_in_the_wrong_order_is_refused(world: World, layers: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Pipeline(world.log, layers(world))


def test_a_cursor_is_any_text_but_not_none(world: World) -> None:
    assert world.emitter("somewhere").cursor == "somewhere"
    with pytest.raises(ValueError, match="a cursor must be a non-empty string"):
        world.emitter("")


@pytest.mark.parametrize(
    "state", [{"note": "ghp_" + "a" * 36}, {"auth": {"password": "hunter2"}}], ids=["looks-like-one", "named-like-one"]
)
def test_a_state_that_holds_a_secret_is_not_stored(world: World, state: dict[str, Any]) -> None:
    with pytest.raises(RedactionFailed):
        world.emitter().process(replace(context(), state=state))
    assert world.log.read().lines == ()


def test_inputs_are_kept_to_be_shown_without_their_secrets(world: World) -> None:
    inputs = {"api_key": "k" * 9, "deep": {"token": "t" * 9}, "note": "ghp_" + "a" * 36, "long": "x" * 999, "n": 1}
    world.emitter().process(replace(context(), inputs=inputs))
    shown = world.latest().inputs
    assert shown == {"api_key": "[not shown]", "deep": "[not shown]", "note": "[redacted:github-token]",
                     "long": "[1001 characters]", "n": 1}  # fmt: skip
    assert verify_input_hash(world.latest(), inputs)


def test_a_state_that_is_too_large_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="the limit for a checkpoint is 32,768"):
        world.emitter().process(replace(context(), state={"x": "y" * 40_000}))


# ---- T032: loading -----------------------------------------------------------------------------------------------


def test_the_latest_checkpoint_of_a_step_is_found_among_those_of_others(world: World) -> None:
    for step, run in [("step-1", "one"), ("step-1", "two"), ("step-2", "two")]:
        world.emitter().process(replace(context(), step_id=step, run_id=run))
    assert world.latest().run_id == "two"
    found = load_checkpoint(str(world.log.path), "step-1", run_id="one", mission_id="mission")
    assert found is not None
    assert found.run_id == "one"
    assert load_checkpoint(world.log, "step-3") is None
    assert load_checkpoint(world.log.path.with_name("none.jsonl"), "step-1") is None


def test_a_line_with_nothing_but_the_nine_fields_is_read(world: World) -> None:
    event = {name: value for name, value in event_of(world.emitter().checkpoint(context())).items()
             if name not in {"input_hash_variant", "input_hashes", "inputs"}}  # fmt: skip
    world.log.path.write_text(json.dumps({**event, "event_id": "7"}) + "\n\n")
    assert verify_input_hash(world.latest(), INPUTS)
    broken = {**event, "cursor": ""}
    world.log.path.write_text(f"{json.dumps(event)}\n{json.dumps(broken)}\n")
    assert world.latest().cursor == "pre_generation_gate"


# ---- T033: the hash of the inputs --------------------------------------------------------------------------------


def seed_hash(inputs: Any) -> str:
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_the_hash_is_the_one_of_the_seed(inputs: dict[str, Any]) -> None:
    assert compute_input_hash(inputs) == seed_hash(inputs)


def test_the_hash_is_known() -> None:
    assert compute_input_hash({"b": 1, "a": "ä"}) == "a313805d22cf7d7b2b35eb4b730f89ba54571c504335cb64cce5040ec37b14e6"


def test_both_variants_are_accepted_and_told_apart() -> None:
    bare = StepCheckpoint("m", "r", "s", Strictness.OFF, (), "", "post_gate", "t", NOON)
    escaped = replace(bare, input_hash=compute_input_hash(INPUTS))
    plain = replace(bare, input_hash=compute_input_hash(INPUTS, "unicode"))
    assert escaped.input_hash != plain.input_hash
    assert (hash_variant(escaped, INPUTS), hash_variant(plain, INPUTS)) == ("ascii", "unicode")
    assert not verify_input_hash(replace(plain, input_hash_variant="ascii"), INPUTS)
    assert not verify_input_hash(plain, {"half": "\ud800"})


# ---- T034: resume ------------------------------------------------------------------------------------------------


def test_a_resume_restores_the_context_and_goes_on_at_the_cursor(world: World) -> None:
    world.block()
    done = world.run(strictness=None, scope_refs=None)
    assert world.calls == ["gate", "generate ['workspace']"]
    assert (done.strictness, done.scope_refs, done.cursor) == (Strictness.MEDIUM, REFS, "pre_generation_gate")


def test_a_gate_that_blocks_again_leaves_a_checkpoint_with_a_new_token(world: World) -> None:
    first = world.block()
    world.open = False
    with pytest.raises(Blocked):
        world.run()
    assert world.latest().retry_token != first
    world.open = True
    world.run()
    assert world.calls[-1] == "generate ['workspace']"


def test_after_the_gate_the_step_goes_on_behind_it(world: World) -> None:
    world.block()
    world.emitter("post_gate").process(replace(context(), state={"terms": ["later"]}))
    world.run()
    assert world.calls == ["generate ['later']"]


def test_a_step_that_is_completed_begins_anew(world: World) -> None:
    token = world.block()
    world.run()
    world.calls.clear()
    world.run()
    assert world.calls[0] == "extract"
    assert refused_code(world, retry_token=token) == "retry_token_spent"


def refused_code(world: World, **changed: Any) -> str:
    world.calls.clear()
    return refused(world, **changed).code


def test_changed_inputs_block_by_name_with_old_and_new_value(world: World) -> None:
    world.block()
    fault = refused(world, inputs={"b": [1, 3], "c": "new"})
    assert fault.code == "inputs_changed"
    assert fault.details["changes"] == {
        "a": {"old": {"ä": None}},
        "b": {"old": [1, 2.5], "new": [1, 3]},
        "c": {"new": "new"},
    }
    assert 'input b: [1, 2.5] -> [1, 3]; input c: not there -> "new"' in fault.message


def test_of_a_bare_hash_it_is_said_that_no_key_can_be_named(world: World) -> None:
    event = {name: value for name, value in event_of(world.emitter().checkpoint(context())).items()
             if not name.startswith("input") or name == "input_hash"}  # fmt: skip
    world.log.path.write_text(line_of(event) + "\n")
    assert "a single hash for all keys" in refused(world, inputs={"a": 1}).message


def test_a_person_is_asked_and_the_answer_goes_with_the_resume(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(question: str, subject: str) -> bool:
        asked.append(question)
        return True

    world = World(tmp_path, ask)
    world.block()
    world.run(inputs={**INPUTS, "b": 2})
    assert asked == ["mission/run/step-1: continue although input b: [1, 2.5] -> 2?"]
    world.calls.clear()
    assert [line.event["event_type"] for line in world.log.read().lines][-5:] == [
        "StepCheckpointed", "StepResumeConfirmed", "RetryTokenConsumed", "StepCheckpointed", "StepCompleted",
    ]  # fmt: skip


def test_a_no_is_recorded_and_holds(tmp_path: Path) -> None:
    world = World(tmp_path, lambda *_: False)
    world.block()
    with pytest.raises(RunBlocked) as caught:
        world.run(inputs={})
    assert caught.value.code == "confirmation_denied"
    world.ask = None
    assert refused_code(world, inputs={}) == "confirmation_denied"
    assert refused_code(world, inputs={"other": 1}) == "inputs_changed"


def test_without_a_terminal_it_blocks_and_an_answer_from_outside_lets_it_go_on(world: World) -> None:
    world.block()
    fault = refused(world, inputs={})
    world.resume().confirm(identity_of(context()), str(fault.details["subject"]), yes=True)
    world.run(inputs={})
    assert world.calls == ["gate", "generate ['workspace']"]


def test_an_answer_holds_for_exactly_what_was_shown(world: World) -> None:
    world.block()
    fault = refused(world, inputs={})
    world.resume().confirm(identity_of(context()), str(fault.details["subject"]), yes=True)
    assert refused_code(world, inputs={"a": 2}) == "inputs_changed"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"strictness": Strictness.OFF}, "scope_widened"),
        ({"strictness": Strictness.MAX}, ""),
        ({"scope_refs": (*REFS, ScopeRef("org", "v1"))}, "scope_widened"),
        ({"scope_refs": REFS[:1]}, ""),
        ({"scope_refs": (ScopeRef("team", "v4"),)}, "definitions_changed"),
        ({"retry_token": "00000000-0000-4000-8000-00000000dead"}, "checkpoint_missing"),
        ({"run_id": "another", "retry_token": "00000000-0000-4000-8000-000000000001"}, "checkpoint_missing"),
    ],
    ids=["weaker", "stricter", "wider", "narrower", "moved", "token-unknown", "token-of-another"],
)
def test_what_may_have_changed_since_the_checkpoint(world: World, changed: dict[str, Any], code: str) -> None:
    world.block()
    if code:
        assert refused_code(world, **changed) == code
    else:
        world.run(**changed)
        assert world.calls[0] == "gate"


def test_a_token_of_a_log_that_is_gone_never_starts_afresh(world: World) -> None:
    world.log.path.write_bytes(b"")
    assert refused_code(world, retry_token="00000000-0000-4000-8000-000000000001") == "checkpoint_missing"


def test_a_token_is_good_once(world: World) -> None:
    token = world.block()
    world.open = False
    with pytest.raises(Blocked):
        world.run(retry_token=token)
    consumed = [line.event for line in world.log.read().lines if line.event["event_type"] == "RetryTokenConsumed"]
    assert [(event["retry_token"], event["actor"]) for event in consumed] == [(token, "tester")]
    assert refused_code(world, retry_token=token) == "retry_token_spent"


def test_of_two_resumes_at_the_same_time_one_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.block()
    stale = world.log.read()
    world.resume().process(context())
    monkeypatch.setattr(world.log, "read", lambda: stale)  # the other had looked before the first one wrote
    assert refused_code(world) == "retry_token_spent"


@pytest.mark.parametrize("cursor", ["somewhere", "post_clarification"])
def test_a_cursor_that_the_pipeline_does_not_have_blocks(world: World, cursor: str) -> None:
    world.block()
    world.log.append({**event_of(world.latest()), "cursor": cursor, "retry_token": world.token()})
    assert refused_code(world) == "cursor_unknown"


def test_a_step_goes_on_with_the_pipeline_that_made_its_checkpoint(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.block()
    made = world.pipeline
    with monkeypatch.context() as patch:
        patch.setattr(world, "pipeline", lambda: Pipeline(world.log, [world.resume(), world.emitter("another_gate")]))
        stopped = refused(world)
    assert stopped.code == "cursor_unknown"
    assert stopped.message.endswith("'pre_generation_gate' is none of another_gate")
    assert stopped.way_out == "Start the program again with the pipeline that made the checkpoint."
    assert world.pipeline == made
    world.run()
    assert world.calls == ["gate", "generate ['workspace']"]


# ---- a log that was torn -----------------------------------------------------------------------------------------


def test_wherever_a_log_is_cut_off_nothing_whole_is_lost(world: World) -> None:
    for _ in range(2):
        world.emitter().process(context())
    whole = world.log.path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(len(whole)):
        world.log.path.write_bytes(whole[:cut])
        world.log.quarantine.unlink(missing_ok=True)
        world.emitter().process(context())
        lines = world.log.path.read_bytes().split(b"\n")
        kept = (cut >= first - 1) + (cut == len(whole) - 1)
        assert [bool(json.loads(line)) for line in lines[:-1]] == [True] * (kept + 1)
        torn = cut not in {0, first - 1, first, len(whole) - 1}
        assert world.log.quarantine.exists() == torn


def test_a_torn_line_is_quarantined_reported_and_can_be_had_back(world: World) -> None:
    world.block()
    with world.log.path.open("ab") as file:
        file.write(b'{"event_type": "StepCheck')
    assert [str(damage) for damage in world.log.read().damaged] == ["line 2 is incomplete (25 bytes)"]
    notes = world.run().notes
    assert notes == ["mission.events.jsonl: line 2 is incomplete (25 bytes); it is quarantined"]
    (record,) = [json.loads(line) for line in world.log.quarantine.read_text().splitlines()]
    assert (record["log"], record["base64"]) == ("mission.events.jsonl", "eyJldmVudF90eXBlIjogIlN0ZXBDaGVjaw==")
    assert world.log.read().damaged == ()


def test_a_line_that_somebody_glued_to_a_torn_one_is_read(world: World) -> None:
    world.block()
    line = world.log.path.read_bytes()
    world.log.path.write_bytes(line[: len(line) // 2] + line)
    assert world.latest().retry_token
    world.run()
    assert world.calls[0] == "gate"


def test_a_damaged_line_behind_the_checkpoint_blocks_and_one_before_it_does_not(world: World) -> None:
    world.block()
    whole = world.log.path.read_bytes()
    world.log.path.write_bytes(whole + b"\0\0\0\n")
    with pytest.raises(LogDamaged, match=r"line 2 is not JSON \(3 bytes\)"):
        world.run()
    world.log.path.write_bytes(b"\0\0\0\n" + whole)
    world.run()


def test_a_damaged_log_without_a_checkpoint_does_not_start_afresh(world: World) -> None:
    world.log.path.write_bytes(b"[]\n")
    with pytest.raises(LogDamaged):
        world.run()


def test_a_checkpoint_of_this_step_that_makes_no_sense_blocks_and_one_of_another_does_not(world: World) -> None:
    world.block()
    broken = {**event_of(world.latest()), "input_hash": "?"}
    world.log.append({**broken, "step_id": "another"})
    world.resume().process(context())
    world.log.append(broken)
    with pytest.raises(LogDamaged, match="input_hash: it must be"):
        world.run()


def test_a_line_longer_than_any_reader_takes_is_not_written(world: World) -> None:
    with pytest.raises(ValueError, match="exceed the limit for a log line"):
        world.log.append({"event_type": "x", "note": "y" * 300_000})


# ---- across sessions ---------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys
from workpacket.runtime.step import CheckpointEmitter, ResumeMiddleware, StepContext, StepLog
from workpacket.runtime.step.pipeline import Pipeline

def extract(context):
    print("extract", flush=True)
    context.state["terms"] = ["workspace"]
    return context

def generation_gate(context):
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    print("gate", context.state, flush=True)
    return context

log = StepLog(sys.argv[1])
Pipeline(log, [ResumeMiddleware(log), extract, CheckpointEmitter(log), generation_gate]).run(
    StepContext("mission", "run", "step-1", {"month": sys.argv[3]}))
"""


def play(folder: Path, *words: str) -> tuple[int, str, str]:
    command = [sys.executable, "-c", PROGRAM, str(folder / "log.jsonl"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def test_a_process_that_was_killed_in_the_gate_is_resumed_by_another(tmp_path: Path) -> None:
    assert play(tmp_path, "die", "10") == (-signal.SIGKILL, "extract\n", "")
    status, _, errors = play(tmp_path, "live", "11")
    assert status == 1
    assert 'RunBlocked: mission/run/step-1: input month: "10" -> "11"' in errors
    assert play(tmp_path, "live", "10") == (0, "gate {'terms': ['workspace']}\n", "")


# ---- sessions that meet --------------------------------------------------------------------------------------------


def test_while_one_session_is_alive_others_do_not_resume(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.block()
    resumed = context()
    world.resume().process(resumed)
    monkeypatch.setattr("workpacket.runtime.step.log.this_process", lambda: "another")
    assert refused(world).code == "run_busy"
    monkeypatch.setattr("workpacket.runtime.step.log.is_certainly_alive", lambda _: False)
    assert world.run().cursor == "pre_generation_gate"


def test_a_layer_that_raises_after_a_resume_releases_the_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.block()
    world.open = False
    with pytest.raises(Blocked):
        world.run()
    world.open = True
    monkeypatch.setattr("workpacket.runtime.step.log.this_process", lambda: "another")
    assert world.run().cursor == "pre_generation_gate"
    assert [line.event["event_type"] for line in world.log.read().lines].count("StepReleased") == 1
