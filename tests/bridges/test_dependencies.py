"""Dependencies under control in real repositories: committed or not, since a base or a milestone, by whose leave."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from git.scratch import commit, git, make_repository
from runtime.worlds import World
from workpacket.bridges.dependency_guard import DependencyGuard, changes_of_run, dependency_changes
from workpacket.cli.main import main
from workpacket.git.repository import find_repository
from workpacket.runtime.commit_checkpoint import CommitCheckpoints
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.sqlite.store import SQLiteStore


def manifest(**dependencies: str) -> str:
    return json.dumps({"name": "sample", "dependencies": dependencies}, indent=2)


class Place:
    """A repository with one dependency, in which commands are called."""

    def __init__(self, root: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.capture = capture
        make_repository(root)
        self.base = commit(root, "base", **{"package.json": manifest(zod="^3.0.0"), ".gitignore": "/.runr/\n"})

    def __call__(self, *words: str) -> tuple[int, str]:
        status = main([*words])
        said = self.capture.readouterr()
        return status, said.out + said.err

    def data(self, *words: str) -> tuple[int, Any]:
        status = main([*words, "--json"])
        return status, json.loads(self.capture.readouterr().out)

    def change(self, path: str = "package.json", **dependencies: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(manifest(**{"zod": "^3.0.0", **dependencies}))

    def start(self, *words: str) -> str:
        status, said = self("runtime", "run", "start", "work", "--owner", str(os.getpid()), *words)
        assert status == 0, said
        return said.strip()

    def events(self, kind: str) -> list[Any]:
        with Runtime(SQLiteStore(self.root / ".git" / "workpacket" / "runs.db")) as runtime:
            return [event.values() for event in runtime.store.read("work@00000001") if event.type == kind]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    made = Place(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    return made


# ---- deps check ------------------------------------------------------------------------------------------------------


def test_nothing_changed_is_said(place: Place) -> None:
    status, said = place("audit", "deps")
    assert (status, said.splitlines()[0]) == (0, f"no dependencies have changed since commit {place.base[:12]}")


@pytest.mark.parametrize("how", ["saved", "staged", "committed"])
def test_it_makes_no_difference_whether_the_change_was_committed(place: Place, how: str) -> None:
    git(place.root, "checkout", "-q", "-b", "work")
    place.change(wolf="1.0.0")
    if how != "saved":
        git(place.root, "add", ".")
    if how == "committed":
        git(place.root, "commit", "-q", "-m", "quietly")
    status, said = place("audit", "deps")
    assert status == 11
    assert "error: package.json:5: wolf 1.0.0 was added (lockfile_violation)" in said
    assert "package.json (package.json): +2 -1 lines" in said
    assert "  + wolf 1.0.0  [not allowed]" in said


def test_leave_is_given_by_name_and_by_scope(place: Place) -> None:
    place.change(wolf="1.0.0", **{"@org/a": "1.0.0"})
    assert place("audit", "deps", "--allow", "wolf")[0] == 11
    status, said = place("audit", "deps", "--allow", "wolf,@org/*")
    assert status == 0
    assert "every change since" in said
    assert place("audit", "deps", "--allow", "@organ/*", "--allow", "wolf")[0] == 11


def test_the_policy_counts_as_the_base_has_it(place: Place) -> None:
    policy = place.root / ".GOV" / "policy" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text('[deps]\nallow = ["wolf"]\nthreshold = 0\n')
    place.change(wolf="1.0.0")
    assert place("audit", "deps")[0] == 11  # it only lies in the work tree
    commit(place.root, "a policy and what it is for", **{"package.json": manifest(zod="^3.0.0")})
    place.change(wolf="1.0.0")
    assert place("audit", "deps")[0] == 0
    assert place("audit", "deps", "--base", place.base)[0] == 11


def test_many_new_packages_are_a_warning_and_no_error(place: Place) -> None:
    (place.root / "go.sum").write_text("".join(f"m{number}.example/x v1.0.0 h1:AAA=\n" for number in range(51)))
    status, answer = place.data("audit", "deps")
    assert status == 0
    (found,) = answer["findings"]
    assert (found["code"], found["severity"]) == ("dependencies_many", "warning")
    assert answer["data"]["warnings"] == ["go.sum: 51 new packages, more than 50"]


@pytest.mark.parametrize("link", [False, True])
def test_what_cannot_be_read_is_refused_with_its_place(place: Place, link: bool) -> None:
    if link:
        (place.root / "elsewhere").write_text("{}")
        (place.root / "package-lock.json").symlink_to("elsewhere")
    else:
        (place.root / "package-lock.json").write_text('{\n "packages": {"": 1}}')
    status, answer = place.data("audit", "deps", "--allow", "*")
    assert status == 17
    (found,) = answer["findings"]
    assert (found["code"], found["path"], found["line"]) == (
        "lockfile_malformed",
        "package-lock.json",
        0 if link else 2,
    )
    assert place("audit", "deps")[1].count("check_not_run") == 0


def test_a_file_in_a_folder_that_is_a_link_is_not_followed(place: Place, tmp_path: Path) -> None:
    commit(place.root, "nested", **{"api__package.json": manifest(zod="1")})
    (place.root / "api").rename(place.root / "moved")
    (place.root / "api").symlink_to("moved")
    assert "is behind the symbolic link api" in place("audit", "deps")[1]


def test_a_lock_file_that_git_was_told_to_forget_is_still_compared(place: Place) -> None:
    git(place.root, "rm", "-q", "--cached", "package.json")
    (place.root / ".gitignore").write_text("package.json\n")
    place.change(wolf="1.0.0")
    assert place("audit", "deps")[0] == 11


@pytest.mark.parametrize("bit", ["--assume-unchanged", "--skip-worktree"])
def test_marks_in_the_index_hide_nothing(place: Place, bit: str) -> None:
    git(place.root, "update-index", bit, "package.json")
    place.change(wolf="1.0.0")
    assert place("audit", "deps")[0] == 11


def test_in_a_sparse_work_tree_what_is_left_out_is_unchanged(place: Place) -> None:
    commit(place.root, "nested", **{"api__package.json": manifest(zod="1"), "web__x": ""})
    git(place.root, "sparse-checkout", "set", "web")
    assert not (place.root / "api").exists()
    assert place("audit", "deps")[0] == 0


def test_before_the_first_commit_everything_is_new(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "new")
    (tmp_path / "new" / "package.json").write_text(manifest(zod="1"))
    changes = dependency_changes(repository, "")
    assert [(one.name, one.what) for one in changes.violations] == [("zod", "added")]


def test_a_call_that_does_not_fit_is_refused(place: Place) -> None:
    assert "conflicting_options" in place("audit", "deps", "--base", "HEAD", "--since", "x")[1]
    assert "unexpected_argument" in place("audit", "deps", "more")[1]
    assert "unknown_revision" in place("audit", "deps", "--base", "nowhere")[1]
    assert place("audit", "deps", "--since", "nowhere")[0] == 68


# ---- runs ------------------------------------------------------------------------------------------------------------


def reach(place: Place, run: str, number: int) -> tuple[int, str]:
    return place("runtime", "run", "checkpoint", run, "--commit", "--milestone", str(number))


def test_a_milestone_with_a_dependency_that_nobody_allowed_is_not_committed(place: Place) -> None:
    run = place.start()
    place.change(wolf="1.0.0")
    status, said = reach(place, run, 0)
    assert status == 11
    assert "package.json: wolf 1.0.0 was added (lockfile_violation)" in said
    assert git(place.root, "rev-parse", "HEAD") == place.base
    (event,) = place.events("lockfile_changed")
    (row,) = event["lockfiles"]
    assert [(one["name"], one["line"]) for one in row["violations"]] == [("wolf", 5)]
    assert row["direct"]["added"] == [{"name": "wolf", "old": "", "new": "1.0.0"}]
    assert row["transitive"] == {"added": 0, "removed": 0, "updated": 0}
    assert "workpacket audit deps shows all; restore the lock files" in said
    assert "wolf 1.0.0 was added" in place("audit", "deps")[1]
    git(place.root, "restore", "package.json")
    (place.root / "other").touch()
    assert reach(place, run, 0)[0] == 0


def test_committing_it_by_hand_first_does_not_help(place: Place) -> None:
    run = place.start()
    place.change(wolf="1.0.0")
    git(place.root, "commit", "-q", "-a", "-m", "by hand")
    (place.root / "other").touch()
    assert reach(place, run, 0)[0] == 11


def test_allowing_it_in_the_policy_from_within_the_run_does_not_help(place: Place) -> None:
    run = place.start()
    commit(place.root, "help yourself", **{".GOV__policy__policy.toml": '[deps]\nallow = ["*"]\n'})
    place.change(wolf="1.0.0")
    assert reach(place, run, 0)[0] == 11


def test_with_leave_from_the_start_it_is_committed_and_recorded(place: Place) -> None:
    run = place.start("--allow-deps", "wolf,@org/*")
    place.change(wolf="1.0.0")
    assert reach(place, run, 0)[0] == 0
    (event,) = place.events("lockfile_changed")
    assert event["lockfiles"][0]["allowed"] == ["wolf"]
    assert event["lockfiles"][0]["violations"] == []
    place.change(wolf="1.0.0", sheep="1.0.0")
    status, said = reach(place, run, 1)  # compared with the last milestone
    assert (status, "sheep" in said, "wolf" in said) == (11, True, False)
    assert place("audit", "deps", "--since", "work@00000001")[0] == 11
    assert place("audit", "deps", "--since", "work", "--allow", "sheep")[0] == 0


def test_a_checkpoint_is_found_by_the_id_in_its_commit(place: Place) -> None:
    run = place.start("--allow-deps", "wolf")
    place.change(wolf="1.0.0")
    reach(place, run, 0)
    checkpoint = git(place.root, "log", "-1", "--format=%(trailers:key=Checkpoint-Id,valueonly)").strip()
    place.change(wolf="1.0.0", sheep="1.0.0")
    status, said = place("audit", "deps", "--since", checkpoint)
    assert (status, "sheep" in said, "+ wolf" in said) == (11, True, False)


@pytest.mark.parametrize(
    ("given", "wanted", "status"),
    [
        (("zod", "@org/*"), None, 0), (("zod", "@org/*"), ("@org/a",), 0), (("zod", "@org/*"), ("@org/a*",), 0),
        (("zod", "@org/*"), ("*",), 12), (("zod",), ("zod", "wolf"), 12), ((), ("zod",), 12), (("zod",), ("",), 0),
    ],
)  # fmt: skip
def test_a_resume_inherits_leave_or_narrows_it(
    place: Place, given: tuple[str, ...], wanted: tuple[str, ...] | None, status: int
) -> None:
    def words(names: tuple[str, ...] | None) -> list[str]:
        return ["--allow-deps", ",".join(names)] if names is not None else []

    run = place.start(*(words(given) if given else []))
    place("runtime", "run", "stop", run, "--code", "worker_blocked")
    found, said = place("runtime", "run", "start", "work", "--owner", str(os.getpid()), *words(wanted))
    assert found == status, said
    if status == 0:
        with Runtime(SQLiteStore(place.root / ".git" / "workpacket" / "runs.db")) as runtime:
            expected = given if wanted is None else tuple(filter(None, wanted))
            assert runtime.state("work@00000001").allow_deps == expected


def test_a_milestone_whose_files_cannot_be_read_is_not_committed(place: Place) -> None:
    run = place.start("--allow-deps", "*")
    (place.root / "package.json").write_text("<<<<<<< HEAD\n")
    status, said = reach(place, run, 0)
    assert (status, "check_not_run" in said, "package.json:1:1" in said) == (17, True, True)


def test_a_run_that_does_not_say_where_it_began_is_not_guessed_about(place: Place) -> None:
    """A program that asks for no base, or a run of an older version."""
    repository = find_repository(place.root)
    with World().runtime.run("work") as run:
        with pytest.raises(RunBlocked, match="does not record its first commit") as refused:
            DependencyGuard(run._session, repository)()
        assert refused.value.code == "check_not_run"


def test_a_program_may_use_the_guard_too(place: Place) -> None:
    repository = find_repository(place.root)
    world = World()
    with world.runtime.run("work", base_commit=place.base, allow_deps=["wolf"]) as run:
        guard = DependencyGuard(run._session, repository)
        place.change(wolf="1.0.0")
        assert CommitCheckpoints(run._session, repository, guard).reach(0).how == "committed"
        assert changes_of_run(repository, run._session.state).verdicts == ()


def test_a_milestone_that_is_no_longer_there_cannot_be_compared_with(place: Place) -> None:
    with (
        World().runtime.run("work", base_commit="1" * 40) as run,
        pytest.raises(RunBlocked, match="cannot be compared"),
    ):
        DependencyGuard(run._session, find_repository(place.root))()


def test_addresses_with_credentials_do_not_reach_the_log(place: Place) -> None:
    run = place.start("--allow-deps", "*")
    place.change(wolf="git+https://me:hunter2secret@elsewhere.example/wolf.git")
    assert reach(place, run, 0)[0] == 11
    assert "hunter2secret" not in json.dumps(place.events("lockfile_changed"))
