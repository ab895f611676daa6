"""The first founding document, checkpoint and resume of a step: each requirement, by the real thing.

Sessions are processes of their own, killed by SIGKILL; what one leaves behind, another takes up.
"""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from corpora.seeds.user import PATIENCE, ROOT, Repository, Said, environment, python, ran
from guided_tour.terminal import at_terminal
from workpacket.runtime import RunBlocked
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
from workpacket.runtime.step.pipeline import Pipeline

pytestmark = pytest.mark.share(3)

FIELDS = {
    "mission_id": "str", "run_id": "str", "step_id": "str", "strictness": "Strictness", "scope_refs": "ScopeRef",
    "input_hash": "str", "cursor": "str", "retry_token": "str", "timestamp": "datetime",
}  # fmt: skip
# What the document's own two lines of Python give for these inputs.
HASHES = {
    "{}": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    '{"b": 1, "a": "ä"}': "a313805d22cf7d7b2b35eb4b730f89ba54571c504335cb64cce5040ec37b14e6",
}
# The same for {"a": "ä"}, by a writer that does not escape what is not ASCII.
UNICODE = "4ac51951506986fc6b6aaa56403aafc0e9dc24a1e7f1fc9e09dafed53752f4bc"
LOG = "mission.events.jsonl"
PROGRAM = """
import os, signal, sys
from workpacket.runtime.step import CheckpointEmitter, ResumeMiddleware, ScopeRef, StepContext, StepLog, Strictness
from workpacket.runtime.step.pipeline import Pipeline

month, gate = sys.argv[1:3]

def extract(context):
    print("extracted")
    context.state["terms"] = ["workspace"]
    context.strictness = Strictness.MAX
    context.scope_refs = (ScopeRef("team", "v3"),)
    return context

def generation_gate(context):
    if gate == "shut":
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return context

def generate(context):
    print("terms", context.state["terms"])
    print("strictness", context.strictness.value)
    print("scopes", [(ref.scope, ref.version_id) for ref in context.scope_refs])
    print("cursor", context.cursor)
    return context

log = StepLog("mission.events.jsonl")
Pipeline(log, [ResumeMiddleware(log), extract, CheckpointEmitter(log), generation_gate, generate]).run(
    StepContext("041", "run-1", "specify", inputs={"month": month}))
"""
PACKAGE = """\
---
work_package_id: WP07
title: Going on after a stop
lane: planned
dependencies: []
subtasks: [T030, T031]
history:
- event: created
  timestamp: '2026-02-16T00:00:00Z'
  actor: llm:model
---

# Work Package: Going on after a stop
"""


def session(folder: Path, month: str, gate: str) -> Said:
    return python(folder, PROGRAM, month, gate)


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / LOG).read_text("utf-8").splitlines()]


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder in which a session was killed in the generation gate."""
    assert session(tmp_path, "2026-10", "shut") == (-signal.SIGKILL, "extracted\n", "")
    return tmp_path


def made_by_hand(inputs: dict[str, Any], **changed: Any) -> StepCheckpoint:
    values = ("m", "r", "s", Strictness.MEDIUM, [ScopeRef("team", "v3")], compute_input_hash(inputs),
              "pre_generation_gate", "7f1f8f9c-6c1e-4d4b-9f0e-1a2b3c4d5e6f", datetime.now(UTC))  # fmt: skip
    return dataclasses.replace(StepCheckpoint(*values), **changed)


# ---- the work package ----------------------------------------------------------------------------------------------


def test_a_work_package_is_read_by_its_six_fields_and_one_that_lacks_a_field_is_found(repository: Repository) -> None:
    path = "kitty-specs/041-mission/tasks/WP07-going-on.md"
    repository.write(path, PACKAGE)
    sound = repository("check", "--json").codes
    assert repository("check", "--json").errors() == []
    listed = repository.done("list").out
    for shown in ("041-mission--WP07", "READY_FOR_DEV", "work_package", "Going on after a stop"):
        assert shown in listed
    for line, wrong in (("title: Going on after a stop\n", ""), ("lane: planned", "lane: nowhere"),
                        ("dependencies: []", "dependencies: WP05"), ("[T030, T031]", "T030"),
                        ("work_package_id: WP07\n", "")):  # fmt: skip
        repository.write(path, PACKAGE.replace(line, wrong))
        assert set(repository("check", "--json").codes) - set(sound), line


# ---- T030: the model -----------------------------------------------------------------------------------------------


def test_a_checkpoint_is_a_dataclass_with_the_nine_fields_in_their_order() -> None:
    fields = dataclasses.fields(StepCheckpoint)
    assert [field.name for field in fields][: len(FIELDS)] == list(FIELDS)
    for field in fields[: len(FIELDS)]:
        assert FIELDS[field.name] in str(field.type)
        assert field.default is dataclasses.MISSING
    for field in fields[len(FIELDS) :]:
        assert (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
    assert made_by_hand({}).scope_refs == [ScopeRef("team", "v3")]


# ---- T031: emission ------------------------------------------------------------------------------------------------


def test_the_checkpoint_is_on_disk_before_the_generation_gate_stops_the_session(left: Path) -> None:
    assert [(event["event_type"], event["cursor"]) for event in events(left)] == [
        ("StepCheckpointed", "pre_generation_gate")
    ]


def test_the_event_of_a_checkpoint_holds_the_nine_fields_in_valid_form(left: Path) -> None:
    (event,) = events(left)
    assert set(FIELDS) <= set(event)
    assert (event["mission_id"], event["run_id"], event["step_id"]) == ("041", "run-1", "specify")
    assert (event["strictness"], event["scope_refs"]) == ("max", [{"scope": "team", "version_id": "v3"}])
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", event["retry_token"])
    assert event["input_hash"] == compute_input_hash({"month": "2026-10"})
    assert datetime.fromisoformat(event["timestamp"]).tzinfo is not None


def test_the_log_of_events_only_grows_by_one_json_object_a_line(left: Path) -> None:
    before = (left / LOG).read_bytes()
    assert before.endswith(b"\n")
    assert session(left, "2026-10", "open").status == 0
    after = (left / LOG).read_bytes()
    assert after.startswith(before)
    assert [event["event_type"] for event in events(left)] == [
        "StepCheckpointed", "StepCheckpointed", "RetryTokenConsumed", "StepCompleted",
    ]  # fmt: skip


# ---- T033: the hash ------------------------------------------------------------------------------------------------


def test_inputs_hash_to_the_hex_of_their_sorted_json() -> None:
    assert {inputs: compute_input_hash(json.loads(inputs)) for inputs in HASHES} == HASHES
    assert compute_input_hash({"a": "ä", "b": 1}) == HASHES['{"b": 1, "a": "ä"}']


def test_a_checkpoint_verifies_the_inputs_it_was_made_for_in_both_written_forms_and_no_others() -> None:
    inputs = {"month": "2026-10", "pages": [1, 2], "name": "ä"}
    made = made_by_hand(inputs)
    assert verify_input_hash(made, dict(reversed(inputs.items()))) is True
    assert verify_input_hash(made, {**inputs, "pages": [2, 1]}) is False
    other = made_by_hand({"a": "ä"}, input_hash=UNICODE)
    assert verify_input_hash(other, {"a": "ä"}) is True


# ---- T032, T034: going on ------------------------------------------------------------------------------------------


def test_a_resume_loads_the_latest_checkpoint_verifies_its_inputs_and_restores_the_context(left: Path) -> None:
    session(left, "2026-10", "shut")
    tokens = [event["retry_token"] for event in events(left) if event["event_type"] == "StepCheckpointed"]
    loaded = load_checkpoint(left / LOG, "specify")
    assert loaded is not None
    assert loaded.retry_token == tokens[-1] != tokens[0]
    context = StepContext("041", "run-1", "specify", inputs={"month": "2026-10"})
    ResumeMiddleware(StepLog(left / LOG), ask=None).process(context)
    assert (context.strictness, list(context.scope_refs or ())) == (Strictness.MAX, [ScopeRef("team", "v3")])
    assert (context.state, context.cursor) == ({"terms": ["workspace"]}, "pre_generation_gate")
    with pytest.raises(RunBlocked, match="input month"):
        ResumeMiddleware(StepLog(left / LOG), ask=None).process(
            StepContext("041", "run-1", "specify", inputs={"month": "2026-11"})
        )


def test_a_resume_goes_on_at_the_cursor_and_repeats_no_layer_before_it(left: Path) -> None:
    second = session(left, "2026-10", "open")
    assert second.status == 0
    assert "extracted" not in second.out
    assert second.out.splitlines()[0] == "terms ['workspace']"
    assert second.out.splitlines()[-1] == "cursor pre_generation_gate"


def test_another_session_recovers_the_step_from_nothing_but_the_log(left: Path, tmp_path_factory: Any) -> None:
    elsewhere = tmp_path_factory.mktemp("another-machine")
    (elsewhere / LOG).write_bytes((left / LOG).read_bytes())
    assert session(elsewhere, "2026-10", "open") == (
        0,
        "terms ['workspace']\nstrictness max\nscopes [('team', 'v3')]\ncursor pre_generation_gate\n",
        "",
    )
    # The step is complete now: it begins again only because it is asked for again.
    assert session(elsewhere, "2026-11", "open").out.startswith("extracted\n")


@pytest.mark.long
def test_changed_inputs_ask_the_person_at_a_terminal_and_stop_a_session_without_one(left: Path) -> None:
    alone = session(left, "2026-11", "open")
    assert (alone.status, alone.out) == (1, "")
    assert 'input month: "2026-10" -> "2026-11"' in alone.err
    assert len(events(left)) == 1
    log = (left / LOG).read_bytes()
    for answer, goes_on in (("n", False), ("y", True)):
        (left / LOG).write_bytes(log)
        typed = at_terminal([sys.executable, "-c", PROGRAM, "2026-11", "open"], left, [("[y/N]", answer)],
                            environment())  # fmt: skip
        assert '"2026-10" -> "2026-11"?' in typed.screen
        assert (typed.status == 0) is goes_on
        assert ("terms ['workspace']" in typed.screen) is goes_on
        assert "extracted" not in typed.screen


# ---- T035, and the definition of done ------------------------------------------------------------------------------

ROW = re.compile(r"^\| (?P<subtask>T\d{3})[^|]* \| (?P<code>[^|]*) \| (?P<tests>[^|]*) \|$", re.MULTILINE)


def rows() -> dict[str, re.Match[str]]:
    """The table of the page about step checkpoints, which says where each subtask is and which tests show it."""
    return {row["subtask"]: row for row in ROW.finditer((ROOT / "docs/runtime/step.md").read_text("utf-8"))}


def written_tests() -> dict[str, Path]:
    """Every test that has to do with steps, by name."""
    files = [path for path in (ROOT / "tests").rglob("test_step*.py") if "seeds" not in path.parts]
    return {
        name: path for path in files for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }


def test_emission_loading_verification_and_resume_have_tests_of_their_own() -> None:
    known = written_tests()
    for subtask in ("T031", "T032", "T033", "T034", "T035"):
        named = re.findall(r"`(test_\w+)`", rows()[subtask]["tests"])
        assert named, subtask
        assert set(named) <= set(known), subtask


def test_each_of_the_six_subtasks_is_traced_to_code_and_tests() -> None:
    assert list(rows()) == [f"T{number:03d}" for number in range(30, 36)]
    for row in rows().values():
        assert re.search(r"`[\w.]+`", row["code"])
        assert re.search(r"`test_\w+`", row["tests"])


@pytest.mark.long
def test_the_tests_of_steps_take_more_than_nine_tenths_of_their_code(tmp_path: Path) -> None:
    named = [name for row in rows().values() for name in re.findall(r"`(test_\w+)`", row["tests"])]
    files = sorted({str(path) for name, path in written_tests().items() if name in named})
    measured = {"COVERAGE_FILE": str(tmp_path / "coverage")}
    # Those that ask for many examples take longer than all others together, and reach no line that they do not.
    measuring = ("coverage", "run", "--rcfile", "/dev/null", "--branch", "--source=workpacket.runtime.step")
    testing = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "-m", "not hypothesis")
    tests = ran(ROOT, *measuring, *testing, *files, **measured)
    assert tests.status == 0, tests
    said = ran(ROOT, "coverage", "report", "--rcfile", "/dev/null", "--fail-under=90", **measured)
    assert said.status == 0, said.out


# ---- what a careful reader of the document found missing -----------------------------------------------------------


MISSION = "kitty-specs/041-mission/tasks"


def package(name: str, dependencies: str = "[]") -> str:
    text = PACKAGE.replace("WP07", name).replace("dependencies: []", f"dependencies: {dependencies}")
    return text if name == "WP05" else text.replace("[T030, T031]", "[T032, T033]")


@pytest.fixture
def mission(repository: Repository) -> Repository:
    """A mission of two packages; the second builds on the first, whose branch has a commit of its own."""
    repository.commit("plan", {f"{MISSION}/WP05-first.md": package("WP05"),
                               f"{MISSION}/WP07-second.md": package("WP07", "[WP05]")})  # fmt: skip
    repository.git("switch", "--quiet", "--create", "041-mission-WP05")
    repository.commit("first", {"first.py": "first = 1\n"})
    repository.git("switch", "--quiet", "main")
    return repository


def test_a_work_package_that_is_listed_can_be_shown_explained_and_claimed(mission: Repository) -> None:
    name = "041-mission--WP05"
    shown = mission.done("show", name).out
    for words in ("Going on after a stop", "planned", "T030", f"{MISSION}/WP05-first.md"):
        assert words in shown
    assert f"workpacket claim {name}" in mission.done("why", name).out
    assert "WP05" in mission("why", "041-mission--WP07").text
    assert "next: workpacket list --kind work_package --lane READY_FOR_DEV" in mission.done("next").out
    mission.done("claim", name, "--as", "ann")
    text = mission.read(f"{MISSION}/WP05-first.md")
    assert "lane: doing\n" in text
    assert re.search(r"^  actor: .*ann", text, re.MULTILINE)
    assert text.partition("\n---\n")[2] == package("WP05").partition("\n---\n")[2]
    assert mission("check", "--json").errors() == []
    assert mission("claim", name, "--as", "bob").status == 3


def test_implement_makes_branch_and_work_tree_from_the_base_and_moves_the_lane(mission: Repository) -> None:
    assert mission("packet", "implement", "WP07").status == 3
    assert ".worktrees/ to .gitignore" in mission.done("packet", "implement", "WP07", "--on", "WP05").err
    tree = mission.root / ".worktrees" / "041-mission-WP07"
    assert (tree / "first.py").is_file()
    assert mission.git("-C", str(tree), "branch", "--show-current") == "041-mission-WP07"
    assert "lane: doing\n" in mission.read(f"{MISSION}/WP07-second.md")
    mission.done("packet", "implement", "WP07", "--on", "WP05")
    assert mission.git("worktree", "list").count("041-mission-WP07") == 2
    # The branch of a finished base may be merged and gone.
    mission.git("worktree", "remove", "--force", ".worktrees/041-mission-WP07")
    mission.git("branch", "--quiet", "--delete", "--force", "041-mission-WP07")
    mission.commit("done", {f"{MISSION}/WP05-first.md": package("WP05").replace("lane: planned", "lane: done"),
                            f"{MISSION}/WP07-second.md": package("WP07", "[WP05]")})  # fmt: skip
    mission.git("merge", "--quiet", "041-mission-WP05")
    mission.git("branch", "--quiet", "--delete", "041-mission-WP05")
    mission.done("packet", "implement", "WP07", "--on", "WP05")
    assert (tree / "first.py").is_file()


def step(folder: Path, **changed: Any) -> tuple[StepLog, StepContext]:
    values = {"mission_id": "m", "run_id": "r", "step_id": "s", "inputs": {"month": "10"}, **changed}
    return StepLog(folder / LOG), StepContext(**values)


def test_the_payload_of_a_checkpoint_stays_small_however_many_inputs_there_are(tmp_path: Path) -> None:
    log, context = step(tmp_path, inputs={f"key {number:04}": "x" * 40 for number in range(5000)})
    CheckpointEmitter(log).process(context)
    assert (tmp_path / LOG).stat().st_size < 64 * 1024
    resumed = step(tmp_path, inputs=dict(context.inputs))[1]
    assert ResumeMiddleware(log, ask=None).process(resumed).cursor == "pre_generation_gate"
    with pytest.raises(RunBlocked, match="inputs"):
        ResumeMiddleware(log, ask=None).process(step(tmp_path, inputs={**context.inputs, "key 0007": "y"})[1])


def test_the_data_model_is_in_checkpoint_py() -> None:
    from workpacket.runtime.step import checkpoint

    assert checkpoint.StepCheckpoint is StepCheckpoint
    assert checkpoint.compute_input_hash is compute_input_hash
    assert checkpoint.verify_input_hash is verify_input_hash


def test_checkpoint_py_has_about_a_hundred_lines() -> None:
    from workpacket.runtime.step import checkpoint

    lines = Path(str(checkpoint.__file__)).read_text("utf-8").splitlines()
    assert 80 <= len(lines) <= 120


def test_a_cursor_is_whatever_text_the_pipeline_uses(tmp_path: Path) -> None:
    log, context = step(tmp_path)
    CheckpointEmitter(log, "my_gate").process(context)
    again = step(tmp_path)[1]
    layers: list[Any] = [ResumeMiddleware(log), lambda one: pytest.fail("repeated"), CheckpointEmitter(log, "my_gate")]
    assert Pipeline(log, layers).run(again).cursor == "my_gate"
    with pytest.raises(ValueError, match="cursor"):
        CheckpointEmitter(log, "")


BAD = {"mission_id": "", "run_id": 7, "step_id": "", "strictness": "high", "scope_refs": (ScopeRef("team", ""),),
       "state": ["no", "mapping"]}  # fmt: skip


def test_what_the_emitter_writes_its_reader_accepts_and_bad_values_are_not_written(tmp_path: Path) -> None:
    log = StepLog(tmp_path / LOG)
    for name, value in BAD.items():
        log, context = step(tmp_path, **{name: value})
        with pytest.raises(ValueError, match=name):
            CheckpointEmitter(log).process(context)
    with pytest.raises(ValueError, match="retry_token"):
        CheckpointEmitter(log, tokens=lambda: "again").process(step(tmp_path)[1])
    assert not (tmp_path / LOG).exists()
    log, context = step(tmp_path, strictness="max")
    CheckpointEmitter(log).process(context)
    (resumed,) = [ResumeMiddleware(log, ask=None).process(step(tmp_path)[1])]
    assert resumed.strictness is Strictness.MAX


class GenerationGateMiddleware:
    def process(self, context: StepContext) -> StepContext:
        return context


def test_no_gate_is_reached_without_a_checkpoint_before_it_whatever_it_is_made_of(tmp_path: Path) -> None:
    log, context = step(tmp_path)

    class GenerationGate(GenerationGateMiddleware):
        pass

    for gate in (GenerationGateMiddleware(), GenerationGate(), GenerationGateMiddleware().process,
                 partial(lambda gate, one: gate.process(one), GenerationGate())):  # fmt: skip
        if not isinstance(gate, partial):
            for layers in ([gate, CheckpointEmitter(log)], [gate]):
                with pytest.raises(
                    ValueError, match="the checkpoint pre_generation_gate must come before generation_gate"
                ):
                    Pipeline(log, layers)
        Pipeline(log, [CheckpointEmitter(log), gate])
    assert Pipeline(log, [CheckpointEmitter(log), GenerationGate()]).run(context) is context


def test_a_new_run_of_the_same_step_is_told_about_the_checkpoint_of_the_old_one(tmp_path: Path) -> None:
    log, context = step(tmp_path, run_id="run-1")
    CheckpointEmitter(log).process(context)
    assert load_checkpoint(log, "s").run_id == "run-1"  # type: ignore[union-attr]
    begun = step(tmp_path, run_id="run-2")[1]
    ResumeMiddleware(log, ask=None).process(begun)
    assert begun.cursor == ""
    (note,) = begun.notes
    assert "run-1" in note
    assert "pre_generation_gate" in note
    other = step(tmp_path, run_id="run-2", mission_id="other")[1]
    assert ResumeMiddleware(log, ask=None).process(other).notes == []


@pytest.mark.long
def test_a_denied_confirmation_is_shown_with_who_denied_it_and_can_be_taken_back(left: Path) -> None:
    Repository(left).git("init", "--quiet")
    environ = environment(WORKPACKET_ACTOR="ann")
    denied = at_terminal([sys.executable, "-c", PROGRAM, "2026-11", "open"], left, [("[y/N]", "n")], environ)
    assert denied.status == 1
    again = session(left, "2026-11", "open")
    assert "ann answered no" in again.err
    (row,) = Repository(left).json("resume")["unfinished"]
    assert [stop["code"] for stop in row["blocked_by"]] == ["confirmation_denied"]
    assert "ann" in row["blocked_by"][0]["message"]
    assert "2026-11" in row["blocked_by"][0]["message"]
    Repository(left).done("resume", "step/041/run-1/specify", "--yes")
    assert session(left, "2026-11", "open").status == 0


def test_a_resume_restores_a_state_with_ordinary_names_as_it_was(tmp_path: Path) -> None:
    state = {"max_tokens": 4096, "tokens": ["a", "b"], "tokenizer": "bpe", "secretary": "Ann", "tokens_used": 17}
    log, context = step(tmp_path, state=dict(state), inputs={"max_tokens": 5, "secretary": "Ann"})
    CheckpointEmitter(log).process(context)
    resumed = ResumeMiddleware(log, ask=None).process(step(tmp_path, inputs=dict(context.inputs))[1])
    assert resumed.state == state


RESUMING = """
import os, sys, time
from workpacket.runtime import RunBlocked
from workpacket.runtime.step import ResumeMiddleware, StepContext, StepLog

while not os.path.exists("begin"):
    time.sleep(0.002)
context = StepContext("041", "run-1", "specify", inputs={"month": "2026-10"})
try:
    ResumeMiddleware(StepLog("mission.events.jsonl"), ask=None).process(context)
    open(f"resumed-{os.getpid()}", "w").close()
except RunBlocked as error:
    open(f"refused-{os.getpid()}-{error.code}", "w").close()
while not os.path.exists("end"):
    time.sleep(0.002)
"""


@pytest.mark.long
def test_one_of_several_sessions_wins_the_token(left: Path) -> None:
    command = [sys.executable, "-c", RESUMING]
    sessions = [subprocess.Popen(command, cwd=left, env=environment()) for _ in range(3)]
    (left / "begin").touch()
    ends = time.monotonic() + PATIENCE
    while len([*left.glob("re[sf]*ed-*")]) < len(sessions):
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert len([*left.glob("resumed-*")]) == 1
    assert {path.name.rpartition("-")[2] for path in left.glob("refused-*")} == {"run_busy"}
    (left / "end").touch()
    assert [one.wait() for one in sessions] == [0, 0, 0]
    assert session(left, "2026-10", "open").status == 0


def test_a_log_in_a_folder_that_git_ignores_is_found(repository: Repository) -> None:
    repository.commit("ignore", {".gitignore": ".kittify/events/\nnode_modules/\n"})
    (repository.root / ".kittify" / "events").mkdir(parents=True)
    log = StepLog(repository.root / ".kittify" / "events" / "mission.events.jsonl")
    CheckpointEmitter(log).process(StepContext("041", "run-1", "specify", inputs={}))
    assert "step/041/run-1/specify" in repository.done("resume").out
