"""`resume` without an id: every kind of unfinished work, where it goes on or what stops it, and letting it go on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridges.roles import FILE, Roles, checkpoint
from bridges.samples import STEP_EVENT, lines
from bridges.scopes import FOLDER, Scoped, scoped
from git.scratch import all_files
from workpacket.cli.main import main
from workpacket.runtime import Runtime
from workpacket.runtime.model_sessions.session import open_session


class Place:
    def __init__(self, scope: Scoped) -> None:
        self.scope = scope
        self.root = scope.root
        self.roles = Roles(scope.root, scope.capture)
        self.said = ""

    def __call__(self, *words: str) -> int:
        self.scope.capture.readouterr()
        status = main(["resume", *words])
        self.said = "".join(self.scope.capture.readouterr())
        return status

    def found(self, *words: str) -> dict[str, Any]:
        assert self("--json", *words) == 0, self.said
        rows = json.loads(self.said)["data"]["unfinished"]
        return {row["id"]: row for row in rows}

    def codes(self, *words: str) -> dict[str, list[str]]:
        return {name: [stop["code"] for stop in row["blocked_by"]] for name, row in self.found(*words).items()}

    def write(self, path: str, data: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(data, "utf-8")


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    scope = scoped(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    return Place(scope)


BATCH = f"batch/{FOLDER}"
STEP = "step/041-mission/run/1/specify"
ROLE = "role/auth/build/backend-eng"


def everything(place: Place) -> str:
    """One piece of unfinished work of every kind; the sha that the sidecar names."""
    with Runtime.open() as runtime:
        with pytest.raises(ZeroDivisionError), runtime.run("nightly", packet="WP-1-X-v1"):
            raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError), open_session(runtime, "review", model="m"):
            raise ZeroDivisionError
    place.write(FILE, checkpoint())
    place.write("kitty-specs/041/mission.events.jsonl", lines(STEP_EVENT).decode())
    sha = place.scope.git("rev-parse", "HEAD").strip()
    sidecar = {
        "schema_version": 1, "sha": sha, "run_id": "20260301", "milestone_index": 2, "milestone_title": "Third",
        "created_at": "2026-03-01T09:30:00Z",
    }  # fmt: skip
    place.write(f".runr/checkpoints/{sha}.json", json.dumps(sidecar))
    return sha


def test_every_kind_is_found_and_says_where_it_goes_on_and_why(place: Place) -> None:
    sha = everything(place)
    found = place.found()
    kinds = {row["kind"]: row for row in found.values()}
    assert kinds.keys() == {"run", "session", "batch", "role", "step", "commit"}
    assert all(row["where"] and row["why"] and row["command"] for row in found.values())
    assert kinds["batch"]["where"] == "batch that comes next: to begin: T001, T002"
    assert kinds["role"]["why"] == f"{FILE}: in_progress since 2026-03-01T09:30:00Z"
    assert kinds["step"]["where"] == "specify, pre_generation_gate"
    assert kinds["commit"]["where"] == f"after milestone 2, commit {sha[:12]}"
    assert kinds["run"]["command"] == "start its program again"
    assert kinds["run"]["decision"]["action"]
    assert place() == 0
    assert "next: workpacket resume --yes" in place.said


@pytest.mark.parametrize(
    "words", [(), ("--plan",), ("--plan", "--yes"), ("--team", "build"), ("--json",)], ids=" ".join
)
def test_looking_writes_nothing(place: Place, words: tuple[str, ...]) -> None:
    everything(place)
    before = all_files(place.root, of_git=False)
    with Runtime.open() as runtime:
        heads = runtime.store.heads()
    assert place(*words) == 0
    assert before == all_files(place.root, of_git=False)
    with Runtime.open() as runtime:
        assert runtime.store.heads() == heads


def test_looking_makes_no_store(place: Place) -> None:
    place.write(FILE, checkpoint())
    assert place("--plan") == 0
    assert not (place.root / ".git" / "workpacket").exists()


def test_yes_leases_an_agents_work_records_the_resume_and_says_what_to_do(place: Place) -> None:
    place.write(FILE, checkpoint())
    assert place("--yes", "--owner", str(os.getpid())) == 0
    assert f"{BATCH} goes on\nWrite tests that fail until the work is done: T001, T002." in place.said
    assert f"Then: workpacket runtime batch complete {FOLDER} --phase testers\n" in place.said
    assert "Last action: Drafted the plan. Read docs/progress/auth-backend-eng.md" in place.said
    assert 'last_action: "Drafted the plan"' in place.roles.text()
    assert place.roles.text().endswith("Resumed the work\n")
    assert place.scope.status()["incomplete"][0]["state"] == "begun"
    with Runtime.open() as runtime:
        assert runtime.store.lease(ROLE) is not None
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert place.codes("--owner", str(other.pid)) == {BATCH: ["run_busy"], ROLE: ["run_busy"]}
    other.communicate()
    assert place.codes("--owner", str(os.getpid())) == {BATCH: [], ROLE: []}


def test_a_session_that_was_killed_goes_on_from_its_last_checkpoint_and_not_from_the_start(place: Place) -> None:
    gone = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    place.scope.done("begin", "auth", "--owner", str(gone.pid))
    place.scope.done("complete", "auth", "--phase", "testers")
    place.scope.done("begin", "auth", "--owner", str(gone.pid))
    place.scope.done("complete", "auth", "--phase", "implementers", "--task", "T001")
    gone.communicate()
    assert place.found()[BATCH]["where"] == "batch 1: implementers: T002"
    assert place(BATCH, "--yes") == 0
    assert "Do the work until the tests pass: T002." in place.said


def test_a_completion_that_was_cut_short_is_finished(place: Place) -> None:
    place.scope.phases()
    place.scope.killed(2, "before", "complete", "auth")
    assert place.found()[BATCH]["where"] == "batch 1: completing: T001, T002"
    assert place("--yes") == 0
    assert "batch 1 is complete, commit" in place.said
    assert place.scope.status()["view"]["last_batch"] == "1"


def test_a_team_resumes_its_own_roles_and_nothing_else(place: Place) -> None:
    place.write(FILE, checkpoint())
    place.write("docs/progress/auth-pm.md", checkpoint("auth", "pm", team="plan"))
    assert place.found("--team", "plan").keys() == {"role/auth/plan/pm"}
    assert place("--team", "plan", "--yes") == 0
    assert place.roles.text() == checkpoint()


@pytest.mark.parametrize(
    ("path", "text", "codes"),
    [
        (FILE, checkpoint(status="blocked"), {ROLE: ["worker_blocked"]}),
        (FILE, checkpoint(status="awaiting_review"), {ROLE: ["check_not_run"]}),
        ("docs/progress/old.md", checkpoint(), {ROLE: ["role_identity_mismatch"]}),
        (FILE, "---\na: [\n---\n", {FILE: ["yaml_syntax"]}),
        (f"{FOLDER}/tasks.yaml", "tasks: [\n", {BATCH: ["yaml_syntax"]}),
        ("a.events.jsonl", lines(STEP_EVENT).decode() + "not json\n", {STEP: ["log_damaged"]}),
        (".runr/checkpoints/" + "a" * 40 + ".json", json.dumps({
            "schema_version": 1, "sha": "a" * 40, "run_id": "r", "milestone_index": 0, "milestone_title": "x",
            "created_at": "2026-03-01T09:30:00Z",
        }), {"commit/r": ["git_diverged"]}),
    ],
    ids=["blocked", "in-review", "renamed", "no-yaml", "no-tasks", "damaged-log", "foreign-commit"],
)  # fmt: skip
def test_what_is_stopped_says_by_which_code_and_what_to_do(
    place: Place, path: str, text: str, codes: dict[str, list[str]]
) -> None:
    place.write(path, text)
    found = place.found()
    ((name, wanted),) = codes.items()
    assert [stop["code"] for stop in found[name]["blocked_by"]] == wanted
    assert place() == 0
    assert f"    {wanted[0]}: " in place.said
    waits = name == ROLE and wanted[0] in {"worker_blocked", "check_not_run"}
    status = place(name, "--yes")
    if waits:
        assert status == 0
        assert " is waiting for " in place.said
    else:
        assert status not in {0, 1, 2} or wanted[0] in place.said


def test_a_finished_step_and_a_complete_role_are_not_unfinished(place: Place) -> None:
    (place.root / FOLDER / "tasks.yaml").unlink()
    ended = {"event_type": "StepCompleted", **{k: STEP_EVENT[k] for k in ("mission_id", "run_id", "step_id")}}
    place.write("a.events.jsonl", lines(STEP_EVENT, ended).decode())
    place.write(FILE, checkpoint(status="complete"))
    assert place() == 0
    assert place.said == "nothing is unfinished\n"


def test_a_zombie_is_not_resumed(place: Place) -> None:
    place.write(FILE, checkpoint())
    place.write("docs/progress/auth-summary.md", '---\nfeature: "auth"\nstatus: "complete"\n---\n')
    assert place.codes()[ROLE] == ["role_zombie"]
    assert place("--yes") == 0
    assert place.roles.text() == checkpoint()


@pytest.mark.parametrize(
    ("answer", "resumed"), [("1\n", 1), ("all\n", 2), ("\n", 0), ("7\n", 0), ("no\n", 0), ("0\n", 0)], ids=repr
)
def test_at_a_terminal_the_person_chooses(
    place: Place, monkeypatch: pytest.MonkeyPatch, answer: str, resumed: int
) -> None:
    place.write(FILE, checkpoint())
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert place() == 0
    assert place.said.count(" goes on\n") == resumed


class Terminal:
    def __init__(self, line: str) -> None:
        self.line = line

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.line


def test_one_that_cannot_go_on_after_all_does_not_hold_back_the_others(place: Place) -> None:
    place.write(FILE, checkpoint().partition("\n## ")[0] + "\n```\na fence that nobody closed\n")
    assert place("--yes") == 4
    assert f"{BATCH} goes on\n" in place.said
    assert f"{ROLE} cannot continue: " in place.said
    assert "(role_file_unwritable)" in place.said


def test_what_is_not_unfinished_is_named(place: Place) -> None:
    assert place("role/none/build/nobody", "--yes") == 68
    assert "checkpoint_missing" in place.said


def test_the_page_about_resuming_is_what_happens(place: Place) -> None:
    place.write(FILE, checkpoint(status="awaiting_review"))
    page = Path(__file__).parents[2] / "docs" / "runtime" / "resume.md"
    played = 0
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        words, _, shown = block.removeprefix("$ workpacket resume").partition("\n")
        assert place(*words.split()) == 0
        assert place.said == shown
        played += 1
    assert played == 2
