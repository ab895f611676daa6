"""The fifth founding document, a sprint about checkpoints: its four deliverables with their names and criteria."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from architecture.source_tree import ROOT
from bridges.samples import run_state
from bridges.test_dependencies import manifest
from git.scratch import commit, git, make_repository
from workpacket.bridges.runstate_bridge import BRIDGE as RUN_STATE
from workpacket.cli.main import main
from workpacket.model.reason_tables.stops import REASONS
from workpacket.model.stops import EXIT_RANGES
from workpacket.runtime import Runtime
from workpacket.text.fault import Fault

SHA = re.compile(r"[0-9a-f]{40}\Z")
Call = Callable[..., tuple[int, str]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    make_repository(tmp_path)
    commit(tmp_path, "base", **{"package.json": manifest(), ".gitignore": "/.runr/\n"})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(root: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def called(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main([*words])
        return status, "".join(capsys.readouterr())

    return called


def started(call: Call, *words: str) -> str:
    status, said = call("run", "start", "work", "--owner", str(os.getpid()), *words)
    assert status == 0, said
    return said.strip()


def reached(call: Call, root: Path, run: str, index: int) -> dict[str, Any]:
    (root / f"file{index}").write_text("x\n")
    status, said = call("run", "checkpoint", run, "--commit", "--milestone", str(index), "--name", "Part", "--json")
    assert status == 0, said
    data: dict[str, Any] = json.loads(said)["data"]
    return data


def events(root: Path, kind: str) -> list[dict[str, Any]]:
    with Runtime.open(root / ".git" / "workpacket" / "runs.db") as runtime:
        return [dict(event.values()) for event in runtime.store.read("work@00000001") if event.type == kind]


def sidecars(root: Path) -> list[Path]:
    return sorted((root / ".runr" / "checkpoints").glob("*.json"))


# ---- 1: sidecars ---------------------------------------------------------------------------------------------------


def test_a_sidecar_lies_beside_each_checkpoint_commit_and_makes_up_nothing(root: Path, call: Call) -> None:
    made = reached(call, root, started(call), 0)
    (path,) = sidecars(root)
    values = json.loads(path.read_text("utf-8"))
    assert path.stem == values["sha"] == made["commit"] == git(root, "rev-parse", "HEAD")
    assert (values["schema_version"], type(values["schema_version"])) == (1, int)
    assert (values["run_id"], values["milestone_index"], values["milestone_title"]) == ("work@00000001", 0, "Part")
    assert "tier" not in values
    assert "verification_commands" not in values


def test_the_complete_event_says_whether_the_sidecar_was_written(root: Path, call: Call) -> None:
    run = started(call)
    reached(call, root, run, 0)
    (complete,) = events(root, "checkpoint_complete")
    assert (complete["milestone_index"], complete["sidecar_written"]) == (0, True)
    assert SHA.match(str(complete["commit"]))


def test_a_sidecar_that_cannot_be_written_fails_no_run_and_is_recorded_with_its_absolute_path(
    root: Path, call: Call
) -> None:
    (root / ".runr").write_text("in the way\n")
    made = reached(call, root, started(call), 0)
    assert made["sidecar_written"] is False
    (failed,) = events(root, "checkpoint_sidecar_write_failed")
    assert failed["sha"] == made["commit"]
    assert Path(str(failed["path"])).is_absolute()
    assert failed["error"]
    assert events(root, "checkpoint_complete")[0]["sidecar_written"] is False


def test_the_chain_on_resume_is_sidecar_then_the_message_of_the_run_then_the_legacy_one(root: Path, call: Call) -> None:
    run = started(call)
    git(root, "commit", "-q", "--allow-empty", "-m", "chore(agent): checkpoint milestone 4")
    assert json.loads(call("run", "milestone", run, "--json")[1])["data"]["source"] == "none"
    assert json.loads(call("run", "milestone", run, "--legacy", "--json")[1])["data"]["source"] == "git_log_legacy"
    reached(call, root, run, 5)
    for path in sidecars(root):
        path.rename(root / "kept")
    assert (
        json.loads(call("run", "milestone", run, "--legacy", "--json")[1])["data"]["source"] == "git_log_run_specific"
    )
    (root / "kept").rename(root / ".runr" / "checkpoints" / f"{git(root, 'rev-parse', 'HEAD')}.json")
    assert json.loads(call("run", "milestone", run, "--legacy", "--json")[1])["data"]["source"] == "sidecar"
    chosen = [event["source"] for event in events(root, "resume_checkpoint_selected")]
    assert chosen == ["none", "git_log_legacy", "git_log_run_specific", "sidecar"]
    last = events(root, "resume_checkpoint_selected")[-1]
    assert (last["sha"], last["milestone_index"]) == (git(root, "rev-parse", "HEAD"), 5)


@pytest.mark.parametrize("how", ["rebase", "squash", "cherry-pick"])
def test_a_run_goes_on_after_its_history_was_rewritten(root: Path, call: Call, how: str) -> None:
    git(root, "checkout", "-q", "-b", "work")
    run = started(call)
    reached(call, root, run, 0)
    git(root, "checkout", "-q", "main")
    commit(root, "other", other="x\n")
    if how == "rebase":
        git(root, "checkout", "-q", "work")
        git(root, "rebase", "-q", "main")
    elif how == "squash":
        git(root, "merge", "-q", "--squash", "work")
        git(root, "commit", "-q", "-m", "all of it")
    else:
        git(root, "cherry-pick", "work")
    status, said = call("run", "milestone", run)
    assert (status, said) == (0, "0\n")


IGNORED = {
    "gitignore": lambda root: (root / ".gitignore").write_text(".runr/\n"),
    "exclude": lambda root: (root / ".git" / "info" / "exclude").write_text("/.runr\n"),
    "pattern": lambda root: (root / ".gitignore").write_text(".r*\n"),
}


@pytest.mark.parametrize("how", IGNORED)
def test_the_doctor_asks_git_whether_sidecars_are_ignored(root: Path, call: Call, how: str) -> None:
    (root / ".gitignore").write_text("# .runr/\n")
    (root / ".git" / "info").mkdir(exist_ok=True)
    status, said = call("doctor")
    assert (status, "sidecars ignored by git" in said, ".gitignore" in said) == (0, True, True), said
    IGNORED[how](root)
    assert "workpacket init adds" not in call("doctor")[1]


def test_init_lets_git_ignore_sidecars(root: Path, call: Call) -> None:
    (root / ".gitignore").unlink()
    assert call("init")[0] == 0
    git(root, "check-ignore", "-q", ".runr/checkpoints/x.json")


# ---- 2: dependencies -----------------------------------------------------------------------------------------------


def lock(*names: str) -> str:
    packages: dict[str, Any] = {"": {"name": "sample", "dependencies": dict.fromkeys(names, "^1.0.0")}}
    packages |= {f"node_modules/{name}": {"version": "1.0.0", "integrity": "sha512-x"} for name in names}
    return json.dumps({"name": "sample", "lockfileVersion": 3, "packages": packages}, indent=2)


def change(root: Path, *names: str) -> None:
    (root / "package.json").write_text(manifest(**dict.fromkeys(names, "^1.0.0")))
    (root / "package-lock.json").write_text(lock(*names))


def milestone(call: Call, run: str) -> tuple[int, str]:
    return call("run", "checkpoint", run, "--commit", "--milestone", "0")


def test_without_leave_a_new_dependency_stops_the_run(root: Path, call: Call) -> None:
    run = started(call)
    change(root, "zod")
    status, said = milestone(call, run)
    assert status == 11
    assert "lockfile_violation" in said


@pytest.mark.parametrize(
    ("names", "allowed"),
    [(["zod"], True), (["zod", "date-fns"], True), (["zod", "left-pad"], False), (["zod-to-anything"], False)],
    ids=["one", "both", "another", "longer-name"],
)
def test_leave_for_two_packages_is_for_these_two(root: Path, call: Call, names: list[str], allowed: bool) -> None:
    run = started(call, "--allow-deps", "zod,date-fns")
    change(root, *names)
    assert (milestone(call, run)[0] == 0) is allowed


def test_leave_may_stand_in_the_policy(root: Path, call: Call) -> None:
    policy = root / ".GOV" / "policy" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text('version = 1\n[deps]\nallow = ["zod"]\n')
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "policy")
    run = started(call)
    change(root, "zod")
    status, said = milestone(call, run)
    assert status == 0, said


def test_the_timeline_shows_what_changed_with_diffstat_and_counts(root: Path, call: Call) -> None:
    run = started(call, "--allow-deps", "zod")
    change(root, "zod")
    assert milestone(call, run)[0] == 0
    (event,) = events(root, "lockfile_changed")
    rows = {row["path"]: row for row in event["lockfiles"]}
    assert {"package.json", "package-lock.json"} >= set(rows)
    row = rows["package-lock.json"]
    assert row["diffstat"]
    assert "zod" in json.dumps(row)
    assert "lockfile_changed" in call("runs", "show", "work")[1]


def test_an_explosion_of_transitive_packages_is_warned_of(root: Path, call: Call) -> None:
    run = started(call, "--allow-deps", "*")
    change(root, *(f"package-{number}" for number in range(51)))
    assert milestone(call, run)[0] == 0
    (event,) = events(root, "lockfile_changed")
    assert "51" in " ".join(event["warnings"])


# ---- 3: stop reasons -----------------------------------------------------------------------------------------------


def test_there_is_one_registry_in_which_every_reason_has_diagnosis_and_exit_status() -> None:
    assert len({reason.code for reason in REASONS}) == len(REASONS)
    for reason in REASONS:
        assert reason.exit_code in EXIT_RANGES[reason.stops]
        assert reason.diagnosis
        assert reason.remedies


@pytest.mark.parametrize(("word", "code"), [("stalled_timeout", "stalled"), ("review_rejected", "review_rejected")])
def test_a_run_that_stops_says_its_reason_by_code_and_by_exit_status(call: Call, word: str, code: str) -> None:
    run = started(call)
    ended, said = call("run", "stop", run, "--reason", word)
    assert code in said
    family = next(reason.stops for reason in REASONS if reason.code == code)
    assert ended in EXIT_RANGES[family]
    explained = json.loads(call("explain", word, "--json")[1])["data"]
    assert (explained["code"], explained["exit status"], explained["stop family"]) == (code, str(ended), family)
    assert explained["diagnosis"] == next(reason.diagnosis for reason in REASONS if reason.code == code)
    assert "How to find out what happened" in call("explain", word)[1]


# ---- 4: versions of the run state ----------------------------------------------------------------------------------


def test_a_new_snapshot_has_the_version_and_one_without_is_read_as_legacy(root: Path, call: Call) -> None:
    run = started(call)
    call("run", "stop", run)
    assert json.loads(call("export", "runstate", "work@00000001")[1])["schema_version"] == "1.0.0"
    (legacy,) = RUN_STATE.read("state.json", run_state(schema_version=None))
    assert not isinstance(legacy, Fault)
    (newer,) = RUN_STATE.read("state.json", run_state(schema_version="2.0.0"))
    assert isinstance(newer, Fault)


def test_how_a_record_evolves_is_documented() -> None:
    page = (ROOT / "docs" / "runtime" / "evolving.md").read_text("utf-8")
    assert "schema_version" in page
