"""The fifth founding document, a sprint about checkpoints: its four deliverables with their names and criteria."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from corpora.seeds.governed import Prepared
from corpora.seeds.user import ROOT, Repository, new_repository

RUN, HANDLE = "work@00000001", "work@00000001#1"
OLD_RUN = "20260104035601"
# The families of the registry and the exit statuses that belong to each.
FAMILIES = {
    "constraint": range(10, 20), "verification": range(20, 30), "review": range(30, 40), "worker": range(40, 50),
    "resource": range(50, 60), "stale": range(60, 70), "integrity": range(70, 90), "user": range(130, 131),
    "program": range(90, 100), "internal": range(9, 10),
}  # fmt: skip


def manifest(*names: str) -> str:
    return json.dumps({"name": "sample", "dependencies": dict.fromkeys(names, "^1.0.0")}, indent=2)


def lock(*names: str) -> str:
    packages: dict[str, Any] = {"": {"name": "sample", "dependencies": dict.fromkeys(names, "^1.0.0")}}
    packages |= {f"node_modules/{name}": {"version": "1.0.0", "integrity": "sha512-x"} for name in names}
    return json.dumps({"name": "sample", "lockfileVersion": 3, "packages": packages}, indent=2)


class Runs(Repository):
    """A repository in which one run makes checkpoint commits."""

    def start(self, *words: str) -> str:
        return self.done("runtime", "run", "start", "work", "--owner", str(os.getpid()), *words).out.strip()

    def reach(self, run: str, index: int) -> dict[str, Any]:
        self.write(f"file{index}", "x\n")
        words = ("runtime", "run", "checkpoint", run, "--commit", "--milestone", str(index), "--name", "Part", "--json")
        return self.done(*words).data

    def milestone(self, run: str, *words: str) -> tuple[str, int]:
        """Where the last milestone was found, and its number."""
        data = self.json("runtime", "run", "milestone", run, *words)
        return data["source"], data["milestone_index"]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events of the run's timeline with this name."""
        lines = self.done("runtime", "runs", "export", RUN).out.splitlines()
        return [json.loads(event["data"]) for line in lines if (event := json.loads(line)).get("type") == kind]

    def sidecars(self) -> list[Path]:
        return sorted((self.root / ".runr" / "checkpoints").glob("*.json"))

    def depend(self, *names: str) -> None:
        self.write("package.json", manifest(*names))
        self.write("package-lock.json", lock(*names))

    def commit_milestone(self, run: str) -> tuple[int, str]:
        said = self("runtime", "run", "checkpoint", run, "--commit", "--milestone", "0")
        return said.status, said.text


def base_commit(root: Path) -> None:
    new_repository(root).commit("base", {"package.json": manifest(), ".gitignore": "/.runr/\n"})


def milestone_reached(root: Path) -> None:
    base_commit(root)
    runs = Runs(root)
    runs.git("switch", "--quiet", "--create", "work")
    runs.reach(runs.start(), 0)


@pytest.fixture
def runs(prepared: Prepared, tmp_path: Path) -> Runs:
    prepared.copy(base_commit, tmp_path)
    return Runs(tmp_path)


@pytest.fixture
def reached(prepared: Prepared, tmp_path: Path) -> Runs:
    """A run that reached milestone 0 on a branch of its own."""
    prepared.copy(milestone_reached, tmp_path)
    return Runs(tmp_path)


# ---- 1: sidecars ---------------------------------------------------------------------------------------------------


def test_a_sidecar_named_by_its_commit_lies_beside_each_checkpoint_with_an_integer_version(reached: Runs) -> None:
    (path,) = reached.sidecars()
    values = json.loads(path.read_text("utf-8"))
    assert path.stem == values["sha"] == reached.git("rev-parse", "HEAD")
    assert (values["schema_version"], type(values["schema_version"])) == (1, int)
    assert (values["run_id"], values["milestone_index"], values["milestone_title"]) == (RUN, 0, "Part")
    assert values["created_at"]
    assert not {"tier", "verification_commands"} & set(values)


def test_a_sidecar_that_cannot_be_written_fails_no_run(runs: Runs) -> None:
    runs.write(".runr", "in the way\n")
    made = runs.reach(runs.start(), 0)
    assert made["sidecar_written"] is False
    assert runs.git("rev-parse", "HEAD") == made["commit"]
    assert runs.git("log", "-1", "--format=%s").startswith("chore(runr): checkpoint ")


def test_a_resume_asks_sidecars_first_then_messages_of_the_run_then_legacy_ones(runs: Runs) -> None:
    run = runs.start()
    runs.git("commit", "--quiet", "--allow-empty", "--message", "chore(agent): checkpoint milestone 4")
    assert runs.milestone(run) == ("none", -1)
    assert runs.milestone(run, "--legacy") == ("git_log_legacy", 4)
    runs.reach(run, 5)
    (sidecar,) = runs.sidecars()
    kept = sidecar.rename(runs.root / ".git" / "kept")
    assert runs.milestone(run, "--legacy") == ("git_log_run_specific", 5)
    kept.rename(sidecar)
    assert runs.milestone(run, "--legacy") == ("sidecar", 5)


def test_no_message_is_parsed_where_there_is_a_sidecar(reached: Runs) -> None:
    reached.git("commit", "--quiet", "--amend", "--message", "Read front matter")
    assert reached.milestone(HANDLE) == ("sidecar", 0)


def test_the_events_of_sidecars_have_the_names_and_fields_of_the_document(runs: Runs) -> None:
    run = runs.start()
    runs.write(".runr", "in the way\n")
    first = runs.reach(run, 0)["commit"]
    (runs.root / ".runr").unlink()
    second = runs.reach(run, 1)["commit"]
    runs.milestone(run)
    (failed,) = runs.events("checkpoint_sidecar_write_failed")
    assert (failed["sha"], Path(failed["path"]).is_absolute(), bool(failed["error"])) == (first, True, True)
    complete = [
        (one["milestone_index"], one["commit"], one["sidecar_written"]) for one in runs.events("checkpoint_complete")
    ]
    assert complete == [(0, first, False), (1, second, True)]
    (selected,) = runs.events("resume_checkpoint_selected")
    assert (selected["source"], selected["sha"], selected["milestone_index"]) == ("sidecar", second, 1)


@pytest.mark.on_disk
def test_the_doctor_asks_git_whether_sidecars_are_ignored_and_does_not_read_gitignore_itself(runs: Runs) -> None:
    ways = {".gitignore": ".runr/\n", ".git/info/exclude": "/.runr\n", "sub/../.gitignore": ".r*\n"}
    for path, line in ways.items():
        runs.write(".gitignore", "# .runr/\n")
        runs.write(".git/info/exclude", "")
        said = runs.done("runtime", "doctor").text
        assert "sidecars ignored by git" in said
        assert "workpacket init adds" in said
        runs.write(path, line)
        assert "workpacket init adds" not in runs.done("runtime", "doctor").text, path


def test_init_has_git_ignore_sidecars(runs: Runs) -> None:
    runs.git("rm", "--quiet", ".gitignore")
    runs.git("commit", "--quiet", "--message", "nothing is ignored")
    runs.done("init")
    runs.git("check-ignore", "--quiet", ".runr/checkpoints/x.json")


def test_a_sidecar_that_contradicts_the_log_is_drift_that_stops_the_resume(reached: Runs) -> None:
    (path,) = reached.sidecars()
    path.write_text(path.read_text("utf-8").replace('"milestone_index": 0', '"milestone_index": 7'), "utf-8")
    assert '"milestone_index": 7' in path.read_text("utf-8")
    said = reached("runtime", "run", "milestone", HANDLE)
    assert said.status == 69
    assert "view_conflict" in said.text


@pytest.mark.parametrize("sidecars", [True, False], ids=["sidecar", "message"])
def test_a_run_goes_on_after_its_history_was_rewritten(prepared: Prepared, tmp_path: Path, sidecars: bool) -> None:
    for how in ("rebase", "squash", "cherry-pick"):
        if how == "squash" and not sidecars:
            continue  # nothing is left of the message then
        prepared.copy(milestone_reached, tmp_path / how)
        runs = Runs(tmp_path / how)
        if not sidecars:
            runs.sidecars()[0].unlink()
        runs.git("switch", "--quiet", "main")
        runs.commit("other", {"other": "x\n"})
        if how == "rebase":
            runs.git("switch", "--quiet", "work")
            runs.git("rebase", "--quiet", "main")
        elif how == "squash":
            runs.git("merge", "--quiet", "--squash", "work")
            runs.git("commit", "--quiet", "--message", "all of it")
        else:
            runs.git("cherry-pick", "work")
        said = runs("runtime", "run", "milestone", HANDLE)
        assert (said.status, said.out) == (0, "0\n"), how


# ---- 2: dependencies -----------------------------------------------------------------------------------------------


def test_allow_deps_allows_the_packages_that_it_names_and_no_others(prepared: Prepared, tmp_path: Path) -> None:
    for number, (names, allowed) in enumerate((
        (["zod", "date-fns"], True), (["zod", "left-pad"], False), (["zod-to-anything"], False)
    )):  # fmt: skip
        prepared.copy(base_commit, tmp_path / str(number))
        runs = Runs(tmp_path / str(number))
        run = runs.start("--allow-deps", "zod,date-fns")
        runs.depend(*names)
        assert (runs.commit_milestone(run)[0] == 0) is allowed, names


def test_the_policy_may_hold_a_lasting_allowlist(runs: Runs) -> None:
    runs.commit("policy", {".GOV/policy/policy.toml": 'version = 1\n[deps]\nallow = ["zod"]\n'})
    run = runs.start()
    runs.depend("zod")
    assert runs.commit_milestone(run)[0] == 0
    runs.depend("zod", "left-pad")
    assert runs("runtime", "run", "checkpoint", run, "--commit", "--milestone", "1").status == 11


def test_the_timeline_has_lockfile_changed_with_diffstat_and_package_count(runs: Runs) -> None:
    run = runs.start("--allow-deps", "*")
    runs.depend("zod", *(f"package-{number}" for number in range(50)))
    assert runs.commit_milestone(run)[0] == 0
    (event,) = runs.events("lockfile_changed")
    rows = {row["path"]: row for row in event["lockfiles"]}
    row = rows["package-lock.json"]
    assert row["diffstat"]
    assert "zod" in json.dumps(row)
    assert "51" in json.dumps(event["warnings"])
    assert "lockfile_changed" in runs.done("runtime", "runs", "show", "work").out


def test_without_leave_no_dependency_may_change(runs: Runs) -> None:
    run = runs.start()
    runs.depend("zod")
    before = runs.git("rev-parse", "HEAD")
    status, said = runs.commit_milestone(run)
    assert (status, "lockfile_violation" in said, runs.git("rev-parse", "HEAD")) == (11, True, before)


# ---- 3: stop reasons -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registry() -> list[dict[str, Any]]:
    """The stop reasons of the registry, as `explain` shows them."""
    codes: list[dict[str, Any]] = Repository(ROOT).json("explain", "--all")["codes"]
    return [one for one in codes if "stop family" in one]


def test_there_is_one_registry_in_which_every_reason_stands_once(registry: list[dict[str, Any]]) -> None:
    names = [one["code"] for one in registry]
    names += [name for one in registry for name in one.get("earlier names", "").split(", ") if name]
    assert len(names) == len(set(names))
    known = {
        "guard_violation", "lockfile_violation", "dirty_worktree", "file_collision", "verification_failed",
        "verification_timeout", "review_loop_detected", "review_rejected", "worker_blocked", "worker_failed",
        "worker_timeout", "max_ticks", "timeout", "user_stopped", "stalled", "stalled_timeout",
    }  # fmt: skip
    assert known <= set(names)
    page = (ROOT / "docs" / "reference" / "codes.md").read_text("utf-8")
    assert all(f"\n### {one['code']}\n" in page for one in registry)


def test_a_diagnosis_is_looked_up_by_code_or_earlier_name_in_the_registry(
    registry: list[dict[str, Any]], runs: Runs
) -> None:
    for reason in registry:
        assert reason["diagnosis"]
        assert reason["remedies"]
    known = {one["code"]: one for one in registry}
    for word, code in (("stalled_timeout", "stalled"), ("review_rejected", "review_rejected")):
        assert runs.json("explain", word)["diagnosis"] == known[code]["diagnosis"]
        said = runs.done("explain", word).out
        assert "How to find out what happened" in said
        assert known[code]["diagnosis"] in re.sub(r"\s+", " ", said)


def test_each_family_of_stop_reasons_has_a_range_of_exit_statuses_of_its_own(
    registry: list[dict[str, Any]], runs: Runs
) -> None:
    for one in registry:
        assert int(one["exit status"]) in FAMILIES[one["stop family"]], one["code"]
    run = runs.start()
    said = runs("runtime", "run", "stop", run, "--code", "stalled_timeout")
    assert said.status in FAMILIES["worker"]
    assert "stalled" in said.text


# ---- 4: versions of the run state ----------------------------------------------------------------------------------

SNAPSHOT: dict[str, Any] = {
    "run_id": OLD_RUN, "repo_path": "/there/repo", "phase": "REVIEW", "milestone_index": 1, "milestones": [],
    "milestone_retries": {}, "scope_lock": {"allowlist": ["src/**"], "denylist": []}, "retries": 0,
    "owned_paths": ["src/"], "started_at": "2026-01-04T03:56:01Z", "updated_at": "2026-01-04T04:30:00Z",
}  # fmt: skip


def test_every_new_snapshot_has_the_version_1_0_0(runs: Runs) -> None:
    runs("runtime", "run", "stop", runs.start())
    assert json.loads(runs.done("log", "export", "runstate", RUN).out)["schema_version"] == "1.0.0"


def test_a_snapshot_without_a_version_is_read_as_legacy(runs: Runs) -> None:
    path = f".runr/runs/{OLD_RUN}/state.json"
    for version, status in ({}, 0), ({"schema_version": "2.0.0"}, 1):
        runs.write(path, json.dumps(SNAPSHOT | version))
        said = runs("log", "import", "runstate", path, "--plan")
        assert (said.status == 0) is (status == 0), said
    runs.write(path, json.dumps(SNAPSHOT))
    runs.done("log", "import", "runstate", path)
    back = json.loads(runs.done("log", "export", "runstate").out)
    assert (back["run_id"], back["schema_version"]) == (OLD_RUN, "1.0.0")


def test_there_is_a_page_on_how_to_evolve_the_snapshot_whose_table_is_true(runs: Runs) -> None:
    page = (ROOT / "docs" / "runtime" / "evolving.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (absent|`\"1\.0\.0\"`|anything newer|anything else) \| (.*) \|$", page, re.MULTILINE))
    assert len(rows) == 4
    assert "To add an optional field, " in page
    assert "If a field changes its meaning," in page
    for value, code in (("2.0.0", "newer_schema"), (["x"], "checkpoint_malformed")):
        runs.write("state.json", json.dumps(SNAPSHOT | {"schema_version": value}))
        assert code in runs("log", "import", "runstate", "state.json", "--plan").text
        assert code in " ".join(rows.values())


# ---- what a careful reader of the document found missing -----------------------------------------------------------


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "gone"])
def test_without_its_newest_sidecar_a_run_neither_goes_back_nor_commits_twice(runs: Runs, broken: bool) -> None:
    run = runs.start()
    for index in range(3):
        runs.reach(run, index)
    newest = runs.root / ".runr" / "checkpoints" / f"{runs.git('rev-parse', 'HEAD')}.json"
    newest.write_text("{") if broken else newest.unlink()
    assert runs.milestone(run)[1] == 2
    before = runs.git("rev-parse", "HEAD")
    again = runs.done("runtime", "run", "checkpoint", run, "--commit", "--milestone", "2", "--json").data
    assert (again["commit"], runs.git("rev-parse", "HEAD")) == (before, before)
    runs.write("more", "x\n")
    said = runs("runtime", "run", "checkpoint", run, "--commit", "--milestone", "2")
    assert "more" in said.err, said
    runs.done("runtime", "run", "checkpoint", run, "--commit", "--milestone", "3")
    assert runs.git("status", "--porcelain") == ""


def test_the_age_of_the_file_breaks_ties_where_a_sidecar_has_no_created_at(reached: Runs) -> None:
    first = reached.git("rev-parse", "HEAD")
    reached.commit("by hand", {"other": "x\n"})
    (path,) = reached.sidecars()
    values = {key: value for key, value in json.loads(path.read_text("utf-8")).items() if key != "created_at"}
    second = reached.git("rev-parse", "HEAD")
    reached.git("commit", "--quiet", "--amend", "--message", "said otherwise")
    second = reached.git("rev-parse", "HEAD")
    for commit, age in ((first, 100), (second, 200)):
        kept = {key: value for key, value in values.items() if key not in {"tree", "checkpoint_id"}} | {"sha": commit}
        sidecar = path.with_name(f"{commit}.json")
        sidecar.write_text(json.dumps(kept), "utf-8")
        os.utime(sidecar, (age, age))
    found = reached.json("runtime", "run", "milestone", HANDLE)
    assert (found["source"], found["sha"], found["milestone_index"]) == ("sidecar", second, 0)
    os.utime(path.with_name(f"{first}.json"), (300, 300))
    assert reached.json("runtime", "run", "milestone", HANDLE)["sha"] == first


def test_a_sidecar_has_tier_and_verification_commands_where_they_are_known(runs: Runs) -> None:
    run = runs.start()
    runs.write("file", "x\n")
    runs.done("runtime", "run", "checkpoint", run, "--commit", "--milestone", "0", "--tier", "1",
              "--verification", "npm test", "--verification", "npm run lint")  # fmt: skip
    (path,) = runs.sidecars()
    values = json.loads(path.read_text("utf-8"))
    assert (values["tier"], values["verification_commands"]) == ("1", ["npm test", "npm run lint"])
    assert runs.milestone(run) == ("sidecar", 0)
    assert runs("check", "--json").errors() == []


TIMELINE = [
    {"seq": 1, "type": "run_started", "source": "cli", "timestamp": "2026-01-04T03:56:01Z",
     "payload": {"run_id": OLD_RUN}},
    {"seq": 2, "type": "phase_start", "source": "supervisor", "timestamp": "2026-01-04T03:57:01Z",
     "payload": {"phase": "REVIEW"}},
]  # fmt: skip


def test_a_run_of_before_goes_on_under_its_id_and_can_be_exported_again(runs: Runs) -> None:
    folder = f".runr/runs/{OLD_RUN}"
    runs.write(f"{folder}/state.json", json.dumps(SNAPSHOT))
    runs.write(f"{folder}/timeline.jsonl", "".join(f"{json.dumps(event)}\n" for event in TIMELINE))
    runs.git("commit", "--quiet", "--allow-empty", "--message", f"chore(runr): checkpoint {OLD_RUN} milestone 0")
    assert runs.milestone(OLD_RUN)[1] == 0
    runs.done("log", "import", "runstate", f"{folder}/state.json", f"{folder}/timeline.jsonl")
    back = json.loads(runs.done("log", "export", "runstate", OLD_RUN).out)
    assert (back["run_id"], back["milestone_index"]) == (OLD_RUN, 1)
    assert runs.milestone(OLD_RUN)[1] == 0
    runs.write("file", "x\n")
    run = runs.start("--run", OLD_RUN)
    assert run == f"{OLD_RUN}#1"
    commit = runs.done("runtime", "run", "checkpoint", run, "--commit").out.strip()
    assert runs.git("log", "-1", "--format=%s", commit) == f"chore(runr): checkpoint {OLD_RUN} milestone 1"
    assert runs.milestone(run) == ("sidecar", 1)
    back = json.loads(runs.done("log", "export", "runstate", OLD_RUN).out)
    assert (back["run_id"], back["milestone_index"], back["owned_paths"]) == (OLD_RUN, 2, ["src/"])


def test_packages_that_changed_are_printed_with_their_number_and_a_warning_where_there_are_many(runs: Runs) -> None:
    run = runs.start("--allow-deps", "*")
    runs.depend("zod", *(f"package-{number}" for number in range(50)))
    status, said = runs.commit_milestone(run)
    assert status == 0
    for text in (said, runs.done("runtime", "runs", "show", "work").out):
        assert "package-lock.json" in text, text
        assert "51" in text, text
        assert "warning" in text, text
    runs.depend("zod")
    words = ("runtime", "run", "checkpoint", run, "--commit", "--milestone", "1", "--json")
    rows = {row["path"]: row for row in runs.done(*words).data["dependencies"]}
    assert len(rows["package.json"]["removed"]) == 50


def test_a_snapshot_of_a_later_minor_version_is_read(runs: Runs) -> None:
    for version in ("1.0.1", "1.1.0"):
        path = f".runr/runs/{version}/state.json"
        runs.write(path, json.dumps(SNAPSHOT | {"run_id": version, "schema_version": version, "later_field": [1]}))
        runs.done("log", "import", "runstate", path)
        back = json.loads(runs.done("log", "export", "runstate", version).out)
        assert (back["run_id"], back["later_field"]) == (version, [1])
    runs.write("state.json", json.dumps(SNAPSHOT | {"schema_version": "2.0.0"}))
    assert "newer_schema" in runs("log", "import", "runstate", "state.json", "--plan").text
