"""Every literal of the founding documents that the product writes is written, and every one that it reads is read.

`literals.toml` has the list. What is written is looked for in the output of a probe: a command, or a file that a
command wrote. Whether something is read is tried: with another word in its place the answer has to be another one.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from corpora.seeds import test_batches_of_a_spec as batches
from corpora.seeds import test_progress_of_roles as roles
from corpora.seeds import test_sessions_after_a_crash as sessions
from corpora.seeds import test_sprint_about_checkpoints as sprint
from corpora.seeds import test_step_of_a_pipeline as steps
from corpora.seeds.governed import BOARD, REFINEMENT, REGISTRY, STUB, Prepared
from corpora.seeds.user import Repository, new_repository, ran
from mounts import folder_on_disk
from workpacket.runtime import step
from workpacket.runtime.step.pipeline import Pipeline

pytestmark = pytest.mark.share(6)

LITERALS: list[dict[str, str]] = tomllib.loads(Path(__file__).with_name("literals.toml").read_text("utf-8"))["kept"]


class Place(NamedTuple):
    """Where probes are made: each in a folder of its own."""

    prepared: Prepared
    folder: Path

    def new(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        return path

    @cache  # noqa: B019 - one place, as long as the tests run
    def governed(self, stage: str) -> Repository:
        return self.prepared.at(stage, self.folder / stage)


@pytest.fixture(scope="module")
def place(prepared: Prepared) -> Iterator[Place]:
    with folder_on_disk() as folder:  # for `doctor`
        yield Place(prepared, Path(folder).resolve())


# ---- what is written -----------------------------------------------------------------------------------------------


def step_log(place: Place) -> str:
    folder = place.new("step-log")
    steps.session(folder, "2026-10", "shut")
    return (folder / steps.LOG).read_text("utf-8")


def step_api(place: Place) -> str:
    assert all(hasattr(step, name) for name in step.__all__)
    return " ".join((*step.__all__, *(field.name for field in dataclasses.fields(step.StepCheckpoint))))


def step_gate(place: Place) -> str:
    """A pipeline whose gate comes first is refused, by the name of the gate."""

    def generation_gate(context: step.StepContext) -> step.StepContext:
        return context

    log = step.StepLog(place.new("step-gate") / "log")
    with pytest.raises(ValueError, match="gate") as refused:
        Pipeline(log, [generation_gate, step.CheckpointEmitter(log)])
    return str(refused.value)


@cache
def completed(place: Place) -> batches.Scope:
    """A spec whose third batch was completed, with an issue put off."""
    scope = batches.Scope(place.new("batch"))
    place.prepared.copy(batches.third_batch_judged, scope.root)
    scope.complete("--defer", "low: a blank @ src/session.py:1")
    return scope


def batch_file(place: Place) -> str:
    return completed(place).read(batches.CHECKPOINT)


def batch_commit(place: Place) -> str:
    return completed(place).git("show", "--format=", "--name-only", "HEAD")


def skills(place: Place) -> str:
    repository = new_repository(place.new("skills"))
    repository.done("init", "--skills")
    return "\n".join(repository.files())


@cache
def worded(place: Place) -> tuple[str, Repository]:
    """What the milestones of a role answer in every phase and every status, and the repository."""
    repository = new_repository(place.new("role"))
    said = [
        repository.done(*roles.CLAIM, "--phase", phase).out
        for phase in ("research", "design", "review", "implementation", "testing")
    ]
    for words in (("review-requested",), ("blocked", "Waiting"), ("done",)):
        name, *text = words
        said.append(repository.done("runtime", "progress", name, *roles.ROLE, *text, "--instance", "a").out)
    return "".join(said), repository


def role_words(place: Place) -> str:
    return worded(place)[0]


def role_file(place: Place) -> str:
    return worded(place)[1].read(roles.FILE)


def role_path(place: Place) -> str:
    return "\n".join(worded(place)[1].files())


def stub(place: Place) -> str:
    return place.governed("stub").read(STUB)


def board_before(place: Place) -> str:
    return place.governed("stub").read(BOARD)


def refinement(place: Place) -> str:
    return place.governed("approved").read(REFINEMENT)


def board(place: Place) -> str:
    return place.governed("ready").read(BOARD)


def registry(place: Place) -> str:
    return place.governed("ready").read(REGISTRY)


def paths(place: Place) -> str:
    return "\n".join(place.governed("ready").files())


def protocol(place: Place) -> str:
    return place.governed("ready").read(sessions.PROTOCOL)


def recipes(place: Place) -> str:
    return ran(place.governed("ready").root, "just", "--summary").out


@cache
def crashed(place: Place) -> sessions.Sessions:
    """A session that was killed while an answer arrived."""
    one = sessions.Sessions(new_repository(place.new("session")).root)
    (one.root / ".git" / "workpacket").mkdir()
    one.live("mid-stream")
    return one


def session(place: Place) -> str:
    return json.dumps(crashed(place).shown())


def session_artifact(place: Place) -> str:
    crashed(place).done("log", "export", "session", "s", "--out", "artifact")
    return crashed(place).read("artifact")


@cache
def run_of(place: Place) -> tuple[sprint.Runs, list[str]]:
    """A run that meets everything that the timeline has an event for, and where its last milestone was found."""
    runs = sprint.Runs(place.new("runs"))
    sprint.base_commit(runs.root)
    runs.git("commit", "--quiet", "--allow-empty", "--message", "chore(agent): checkpoint milestone 0")
    run = runs.start("--allow-deps", "zod,date-fns")
    sources = [runs.milestone(run, "--legacy")[0]]
    runs.write(".runr", "in the way\n")
    runs.depend("zod")
    runs.reach(run, 1)
    sources.append(runs.milestone(run)[0])
    (runs.root / ".runr").unlink()
    runs.reach(run, 2)
    return runs, [*sources, runs.milestone(run)[0]]


def run_sources(place: Place) -> str:
    return " ".join(run_of(place)[1])


def run_events(place: Place) -> str:
    return run_of(place)[0].done("runtime", "runs", "export", sprint.RUN).out


def sidecar(place: Place) -> str:
    (path,) = run_of(place)[0].sidecars()
    return path.read_text("utf-8")


def sidecar_path(place: Place) -> str:
    return "\n".join(run_of(place)[0].files())


def allowed(place: Place) -> str:
    return json.dumps(run_of(place)[0].events("lockfile_changed"))


def runstate(place: Place) -> str:
    return run_of(place)[0].done("log", "export", "runstate", sprint.RUN).out


def gitignore(place: Place) -> str:
    return place.governed("init").read(".gitignore")


def doctor(place: Place) -> str:
    return run_of(place)[0].done("runtime", "doctor").out


def run_help(place: Place) -> str:
    governed = place.governed("init")
    return "".join(governed(*words, "--help").out for words in ((), ("runtime",), ("runtime", "run")))


Probe = Callable[[Place], str]
PROBES: dict[str, Probe] = {
    probe.__name__: cache(probe)
    for probe in (
        allowed, batch_commit, batch_file, board, board_before, doctor, gitignore, paths, protocol, recipes,
        refinement, registry, role_file, role_path, role_words, run_events, run_help, run_sources, runstate, session,
        session_artifact, sidecar, sidecar_path, skills, step_api, step_gate, step_log, stub,
    )
}  # fmt: skip


def name_of(one: dict[str, str]) -> str:
    return f"{one['document']}-{one['literal']}"


@pytest.mark.share(4)
@pytest.mark.parametrize("one", [one for one in LITERALS if "written" in one], ids=name_of)
def test_what_the_product_writes_is_written_as_the_documents_have_it(one: dict[str, str], place: Place) -> None:
    assert one.get("appears", one["literal"]) in PROBES[one["written"]](place)


# ---- what is read --------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """Files of which one has the literal in its text or path, and the commands that read it."""

    files: dict[str, str]
    file: str
    commands: tuple[str, ...]


EVENT = {
    "event_type": "StepCheckpointed", "mission_id": "041", "run_id": "run-1", "step_id": "specify",
    "strictness": "medium", "scope_refs": [{"scope": "team", "version_id": "v3"}], "input_hash": "0" * 64,
    "cursor": "pre_generation_gate", "retry_token": "6fa459ea-ee8a-4ca4-894e-db77e160355e",
    "timestamp": "2026-02-16T12:00:00+00:00",
}  # fmt: skip
SIDECAR = {
    "schema_version": 1, "sha": "a" * 40, "run_id": "run", "milestone_index": 0, "milestone_title": "Part",
    "created_at": "2026-01-31T09:30:00.250Z", "tier": 5, "verification_commands": 5,
}  # fmt: skip
SPEC = {
    batches.TASKS: batches.THE_TASKS, batches.DEPENDENCIES: batches.THE_DEPENDENCIES,
    batches.CHECKPOINT: batches.THE_CHECKPOINT.format(commit="a1b2c3d4"),
}  # fmt: skip
ROLE = {roles.FILE: roles.WRITTEN.format(feature="auth", team="plan-product", status="in_progress")}


# Values of a wrong type, which are found where the field is read.
WRONG = """\
checkpoint:
  spec_name: auth
  spec_path: ./specs/active/auth
  tasks: {completed: [], in_progress: 5, pending: 5}
  next_batch: {number: 3, tasks: [], parallel: 5}
"""


def samples(place: Place) -> dict[str, Sample]:
    package = "kitty-specs/041-mission/tasks/WP07-going-on.md"
    sidecar = f".runr/checkpoints/{'a' * 40}.json"
    snapshot = json.dumps(sprint.SNAPSHOT | {"schema_version": "1.0.0"})
    governed = place.governed("approved")
    texts = {path: governed.read(path) for path in (STUB, REFINEMENT, BOARD, REGISTRY)}
    tasks = {batches.TASKS: batches.THE_TASKS}
    return {
        "work_package": Sample({package: steps.PACKAGE.replace("[]", "[WP05]")}, package, ("check --json", "list")),
        "step_log": Sample(
            {steps.LOG: json.dumps(EVENT) + "\n"}, steps.LOG, (f"import step --plan {steps.LOG}", "resume")
        ),
        "batch_file": Sample(SPEC, batches.CHECKPOINT, ("batch status auth --json", "batch status auth")),
        "batch_types": Sample(tasks | {batches.CHECKPOINT: WRONG}, batches.CHECKPOINT, ("check --json",)),
        "batch_folder": Sample(
            tasks | {batches.DEPENDENCIES: batches.THE_DEPENDENCIES}, batches.DEPENDENCIES, ("batch next auth",)
        ),
        "role_file": Sample(ROLE, roles.FILE, ("check --json", "progress list")),
        "role_path": Sample(ROLE, roles.FILE, ("progress list --json",)),
        "stub": Sample(texts, STUB, ("check --json", "list")),
        "refinement": Sample(texts, REFINEMENT, ("check --json",)),
        "sidecar": Sample({sidecar: json.dumps(SIDECAR)}, sidecar, ("check --json",)),
        "sidecar_path": Sample({sidecar: json.dumps(SIDECAR)}, sidecar, ("check --json",)),
        "runstate": Sample({"state.json": snapshot}, "state.json", ("import runstate --plan state.json",)),
    }


@cache
def answered(place: Place, name: str, literal: str) -> Any:
    """What the command answers, with another word in the place of the literal if one is given."""
    sample = samples(place)[name]
    repository = new_repository(place.new(f"{name}-{len([*place.folder.iterdir()])}"))
    other = re.sub(r"[A-Za-z]{3}|\w(?=\W*$)", lambda found: found[0][:-1] + "9", literal, count=1)
    files = dict(sample.files)
    if literal:
        assert other != literal
        path, text = sample.file, files.pop(sample.file)
        bounded = rf"(?<![\w]){re.escape(literal)}(?![\w])" if literal[-1].isalnum() else re.escape(literal)
        changed = re.sub(bounded, other, text)
        if changed == text:
            path = path.replace(literal, other)
            assert path != sample.file, f"the sample {name} does not have {literal!r}"
        files[path] = changed
    for path, text in files.items():
        repository.write(path, text)
    said = [repository(*command.split()) for command in sample.commands]
    return [(one.status, (one.out + one.err).replace(other, literal) if literal else one.out + one.err) for one in said]


@pytest.mark.share(4)
@pytest.mark.parametrize("one", [one for one in LITERALS if "read" in one], ids=name_of)
def test_what_the_product_reads_makes_a_difference_to_its_answer(one: dict[str, str], place: Place) -> None:
    assert answered(place, one["read"], one["literal"]) != answered(place, one["read"], "")


def test_the_list_only_grows() -> None:
    """Frozen: what was on it stays on it."""
    assert len(LITERALS) >= 141
    assert all("written" in one or "read" in one for one in LITERALS)
