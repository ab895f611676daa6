"""Commands in a work tree that does not show everything: nothing is overwritten, and it is said what brings it back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from git.scratch import all_files, git, make_repository
from lifecycle.governed import Clock, Quiet, Result
from lifecycle.incomplete import BUSY, COMMANDS, KINDS, OLD, READY, build, newest_event, run
from workpacket.git.index import read_index
from workpacket.git.repository import find_repository
from workpacket.model.reason_tables import integrity
from workpacket.shell import actor

pytestmark = pytest.mark.share(13)

CASES = Path(__file__).with_name("incomplete_trees.txt")
DONE = "done"
# The superuser reads every folder unless this capability is taken away.
AS_EVERYBODY = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


class Case(NamedTuple):
    kind: str
    command: str
    answer: str
    remedy: str


def cases() -> list[Case]:
    lines = (line for line in CASES.read_text("utf-8").splitlines() if not line.startswith("#"))
    rows = [line.split(maxsplit=3) for line in lines]
    return [Case(row[0], row[1], row[2], row[3] if len(row) > 3 else "") for row in rows]


class Whole(NamedTuple):
    root: Path
    clock: Clock


def settle(monkeypatch: pytest.MonkeyPatch, home: Path, clock: Clock) -> None:
    """The same identity, configuration and time for every repository here, clones too."""
    home.mkdir(exist_ok=True)
    config = home / "gitconfig"
    config.write_text('[user]\n\tname = ann\n\temail = ann@example.org\n[protocol "file"]\n\tallow = always\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    for name in ("CI", "WORKPACKET_ACTOR", "WORKPACKET_ACTOR_KIND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(actor, "read_clock", clock)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    root = tmp_path_factory.mktemp("whole") / "repository"
    make_repository(root)
    governed = Quiet(root, None)
    with pytest.MonkeyPatch.context() as monkeypatch:
        settle(monkeypatch, root.parent / "home", governed.clock)
        run(root, "git config uploadpack.allowFilter true && git config uploadpack.allowAnySHA1InWant true")
        build(governed)
        run(root, "git gc --quiet --prune=now")  # one file to copy instead of hundreds
        yield Whole(root, governed.clock)


class Tree:
    """An incomplete tree, and commands in it."""

    def __init__(self, root: Path, *, restricted: bool) -> None:
        self.root = root
        self._restricted = restricted

    def __call__(self, *words: str) -> Result:
        if not self._restricted:
            return Quiet(self.root, None)(*words)
        command = [*AS_EVERYBODY, sys.executable, "-m", "workpacket", *words]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout, done.stderr)


Maker: TypeAlias = Callable[[str], Tree]


class Made(NamedTuple):
    folder: Path
    root: Path
    state: object


class Trees:
    """A tree of each kind. One that a test left as it was serves the next one too; of any other there is a new one."""

    def __init__(self, whole: Whole, new_folder: Callable[[str], Path]) -> None:
        self._whole = whole
        self._new_folder = new_folder
        self._made: dict[str, Made] = {}
        self._asked: set[str] = set()

    def __call__(self, kind: str) -> Tree:
        restricted = kind.startswith("unreadable")
        if restricted and AS_EVERYBODY and shutil.which("setpriv") is None:
            pytest.skip("setpriv takes the rights of the superuser away")
        if kind not in self._made:
            folder = self._new_folder(kind)
            root = KINDS[kind](self._whole.root, folder / "tree")
            self._made[kind] = Made(folder, root, state_of(folder))
        self._asked.add(kind)
        return Tree(self._made[kind].root, restricted=restricted)

    def forget_changed(self) -> None:
        for kind in self._asked & self._made.keys():
            if state_of(self._made[kind].folder) != self._made[kind].state:
                del self._made[kind]
        self._asked.clear()


def state_of(folder: Path) -> object:
    """Every entry, git's own among them, with what a write would change; but not our lock, which is only held."""
    found: list[tuple[str | int, ...]] = []
    for at, _, names in os.walk(folder):
        found.append((at, os.lstat(at).st_mode))
        for name in names:
            path = f"{at}/{name}"
            status = os.lstat(path)
            if not path.endswith("/workpacket/lock"):
                found.append((path, status.st_mode, status.st_ino, status.st_size, status.st_ctime_ns))
    return found


@pytest.fixture(scope="module")
def trees(whole: Whole, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trees]:
    yield Trees(whole, tmp_path_factory.mktemp)
    for root in tmp_path_factory.getbasetemp().glob("unreadable*"):  # for whoever takes the folder away
        run(root, "find . -type d ! -perm -700 -exec chmod u+rwx {} +")


@pytest.fixture
def make(trees: Trees, whole: Whole, monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    settle(monkeypatch, whole.root.parent / "home", Clock(whole.clock.now, whole.clock.count))
    yield trees
    trees.forget_changed()


def failure(result: Result) -> dict[str, str]:
    """The one finding of a command that could not go on."""
    findings = json.loads(result.out)["findings"]
    assert len(findings) == 1, findings
    found: dict[str, str] = findings[0]
    return found


def test_there_are_enough_kinds_and_every_command_is_asked_in_each() -> None:
    asked = [(case.kind, case.command) for case in cases()]
    assert sorted(asked) == sorted((kind, command) for kind in KINDS for command in COMMANDS)
    assert len(COMMANDS) == 12
    assert len(KINDS) > 24


@pytest.mark.share(13)
@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.kind}-{case.command}")
def test_a_command_overwrites_nothing_that_is_not_here(case: Case, make: Maker) -> None:
    tree = make(case.kind)
    before = all_files(tree.root, of_git=False)
    known = {*git(tree.root, "ls-files").splitlines()} if case.answer == DONE else set()
    result = tree(*COMMANDS[case.command], "--json")
    after = all_files(tree.root, of_git=False)
    if case.answer == DONE:
        assert result.status == 0 or (case.command == "check-fix" and result.status in (1, 5)), result
        assert not after.keys() - before.keys() & known, "it made a file that git knows and that was not here"
        return
    found = failure(result)
    assert (found["code"], result.status) == (case.answer, 6), result
    assert case.remedy in found["hint"], found
    assert "\\n" not in result.out
    assert after == before


REMEDIED = sorted({case.kind for case in cases() if case.answer == "tree_incomplete"})


@pytest.mark.share(5)
@pytest.mark.parametrize("kind", REMEDIED)
def test_the_command_that_the_refusal_names_brings_everything_back(kind: str, make: Maker) -> None:
    tree = make(kind)
    refused = next(case.command for case in cases() if case.kind == kind and case.answer == "tree_incomplete")
    before = all_files(tree.root, of_git=False)
    result = tree(*COMMANDS[refused], "--json")
    for _ in range(2):  # first what git was told to leave out, then whatever else the command needs
        if result.status == 6:
            run(tree.root, failure(result)["hint"].partition(": ")[2])
            result = tree(*COMMANDS[refused], "--json")
    assert result.status == 0, result
    assert before.keys() <= all_files(tree.root, of_git=False).keys()


NOT_WHOLE = (
    "sparse_without_log", "sparse_without_event", "assume_unchanged_log", "staged_log", "deleted_log", "deleted_tip",
)  # fmt: skip


@pytest.mark.parametrize("kind", NOT_WHOLE)
def test_no_branch_is_made_for_a_packet_whose_log_is_not_here(kind: str, make: Maker) -> None:
    tree = make(kind)
    before = git(tree.root, "for-each-ref")
    beside = tree.root.parent / "beside"
    found = failure(
        tree("packet", "prepare", READY, "--for", "bob", "--branch", "b", "--worktree", str(beside), "--json")
    )
    assert (found["code"], "git " in found["hint"]) == ("tree_incomplete", True), found
    assert (git(tree.root, "for-each-ref"), beside.exists()) == (before, False)


@pytest.mark.parametrize("what", ["log", "tip", "packet"])
def test_no_proof_is_run_for_a_packet_that_is_not_here_as_a_whole(what: str, make: Maker) -> None:
    tree = make("whole")
    last = newest_event(tree.root, BUSY)
    places = {"log": [*last.parent.iterdir()], "tip": [last], "packet": [tree.root / f".GOV/task_packets/{BUSY}.md"]}
    for path in places[what]:
        path.unlink()
    found = failure(tree("submit", BUSY, "--as", "coder", "--prove", "1=touch .git/ran", "--json"))
    assert (found["code"], "git restore" in found["hint"]) == ("tree_incomplete", True), found
    assert not (tree.root / ".git" / "ran").exists()


LOOKING = {
    "list": ("list",),
    "status": ("status",),
    "next": ("next",),
    "board": ("board", "show"),
    "registry": ("registry", "show"),
    "history": ("history", READY),
    "why": ("why", READY),
}
JUDGING = {
    "check": ("check",),
    "check with a base": ("check", "--base", "main"),
    "approvals": ("approvals", "verify"),
    "log": ("log", "verify", "--base", "main"),
    "audit": ("audit",),
}
HIDDEN = ("sparse_without_log", "sparse_without_event", "assume_unchanged_log", "sparse_cone")


@pytest.mark.share(5)
@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("command", LOOKING.values(), ids=LOOKING)
def test_who_only_looks_is_told_every_time_that_not_all_is_here(
    kind: str, command: tuple[str, ...], make: Maker
) -> None:
    tree = make(kind)
    for _ in range(2):
        result = tree(*command)
        if "tree_incomplete" not in result.err:
            assert (result.status, result.err.count("incomplete work tree: .GOV/")) == (0, 1), result
        assert "restore it: git " in result.err or "help: " in result.err


@pytest.mark.share(13)
@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("command", JUDGING.values(), ids=JUDGING)
def test_a_verdict_on_a_part_is_none_and_speaks_of_no_damage(kind: str, command: tuple[str, ...], make: Maker) -> None:
    tree = make(kind)
    found = json.loads(tree(*command, "--json").out)
    codes = {finding["code"] for finding in found["findings"]}
    assert (found["exit_code"], "tree_incomplete" in codes) == (6, True), codes
    assert not codes & integrity.LOG_BY_CODE.keys()


@pytest.mark.parametrize("kind", ["deleted_other_log", "intent_to_add", "unreadable_packet_log"])
def test_a_deletion_that_a_command_has_nothing_to_do_with_is_named_on_one_line(kind: str, make: Maker) -> None:
    result = make(kind)(*COMMANDS["block"])
    assert result.status == 0
    assert result.out.count("incomplete work tree: .GOV/") == 1
    assert "git " in result.out or "chmod" in result.out


def test_a_log_on_another_branch_is_not_begun_again(make: Maker) -> None:
    tree = make("whole")
    run(tree.root, f"git switch -qc old && git rm -rq .GOV/log/{READY} && git commit -qm old")
    before = all_files(tree.root, of_git=False)
    found = failure(tree("adopt", "--json"))
    assert (found["code"], found["path"]) == ("log_elsewhere", f".GOV/log/{READY}")
    assert "git merge main" in found["hint"]
    assert all_files(tree.root, of_git=False) == before
    assert tree("adopt", OLD).status == 0


def test_a_partial_clone_names_what_it_lacks_and_the_remedy_works(make: Maker) -> None:
    tree = make("blobless")
    verified, audited = (failure(tree(*command, "--json")) for command in (("approvals", "verify"), ("audit",)))
    assert (verified["code"], audited["code"]) == ("object_missing", "object_missing")
    assert "graft" not in verified["message"]
    assert "\n" not in verified["message"]
    run(tree.root, verified["hint"].partition(": ")[2].partition("; ")[0])
    assert tree("approvals", "verify").status != 6


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version_of_the_index_is_read_alike(version: int, make: Maker) -> None:
    tree = make("assume_unchanged_log")
    run(tree.root, f"git update-index --index-version {version}")
    index = read_index(find_repository(tree.root), ".GOV")
    listed = git(tree.root, "ls-files", "-v", "--", ".GOV").splitlines()
    assert list(index.below(".GOV/")) == [(row[2:], "assume-unchanged" if row[0] == "h" else "") for row in listed]
    assert list(index.told(".GOV/")) == [(row[2:], "assume-unchanged") for row in listed if row[0] == "h"]


def test_an_index_in_two_files_is_read_too(make: Maker) -> None:
    tree = make("whole")
    run(tree.root, "git update-index --split-index && cp -r .GOV inner && git add inner")
    index = read_index(find_repository(tree.root), ".GOV")
    assert [path for path, _ in index.below(".GOV/")] == git(tree.root, "ls-files", "--", ".GOV").splitlines()


def test_a_copy_of_the_folder_elsewhere_is_not_taken_for_it(make: Maker) -> None:
    tree = make("whole")
    run(tree.root, "mkdir inner && cp -r .GOV inner && git add inner && git rm -rq --cached .GOV")
    assert list(read_index(find_repository(tree.root), ".GOV").below(".GOV/")) == []


@pytest.mark.parametrize("command", [("check",), ("log", "verify"), ("why", READY)], ids=" ".join)
def test_a_folder_that_cannot_be_read_is_named_by_whoever_reads_it(command: tuple[str, ...], make: Maker) -> None:
    found = failure(make("unreadable_log")(*command, "--json"))
    assert (found["code"], found["path"]) == ("tree_unreadable", ".GOV/log")
