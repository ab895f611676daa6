"""How a history lies to the commit of a checkpoint, in real repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.worlds import World
from workpacket.git.repository import find_repository
from workpacket.runtime.commit_checkpoint import GitObserver
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.resume.observe import ResumePolicy


@dataclass(frozen=True)
class Repo:
    root: Path

    def git(self, *words: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, path: str, text: str = "x\n") -> str:
        (self.root / path).write_text(text)
        self.git("add", path)
        self.git("commit", "-q", "-m", path)
        return self.git("rev-parse", "HEAD")

    @property
    def observer(self) -> GitObserver:
        return GitObserver(find_repository(self.root), own=("out", "run.log"))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path)
    made.git("init", "-q", "-b", "main")
    made.commit("base")
    made.git("checkout", "-q", "-b", "work")
    made.commit("one")
    made.commit("two")
    return made


def moved_main(repo: Repo) -> None:
    repo.git("checkout", "-q", "main")
    repo.commit("other")


def ahead(repo: Repo) -> None:
    repo.commit("three")


def rebase(repo: Repo) -> None:
    moved_main(repo)
    repo.git("checkout", "-q", "work")
    repo.git("rebase", "-q", "main")


def squash(repo: Repo) -> None:
    moved_main(repo)
    repo.git("merge", "-q", "--squash", "work")
    repo.git("commit", "-q", "-m", "squashed")


def squash_on_the_spot(repo: Repo) -> None:
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--squash", "work")
    repo.git("commit", "-q", "-m", "squashed")
    repo.commit("after")


def cherry_pick(repo: Repo) -> None:
    moved_main(repo)
    repo.git("cherry-pick", "work~1", "work")


def cherry_pick_of_a_part(repo: Repo) -> None:
    moved_main(repo)
    repo.git("cherry-pick", "work")


def amend_of_the_message(repo: Repo) -> None:
    repo.git("commit", "-q", "--amend", "-m", "another message")


def amend_of_the_content(repo: Repo) -> None:
    (repo.root / "two").write_text("something else\n")
    repo.git("commit", "-q", "-a", "--amend", "-m", "two")


def reset(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard", "HEAD~1")


def other_branch(repo: Repo) -> None:
    moved_main(repo)


@pytest.mark.parametrize(
    ("happens", "relation"),
    [
        (lambda repo: None, "exact"),
        (ahead, "ahead"),
        (rebase, "rewritten"),
        (squash, "rewritten"),
        (squash_on_the_spot, "content_equal"),
        (cherry_pick, "rewritten"),
        (cherry_pick_of_a_part, "unreachable"),
        (amend_of_the_message, "content_equal"),
        (amend_of_the_content, "unreachable"),
        (reset, "unreachable"),
        (other_branch, "unreachable"),
    ],
)
def test_what_happened_to_the_commit_is_told_apart(repo: Repo, happens: Callable[[Repo], None], relation: str) -> None:
    promised = repo.observer.preconditions()
    happens(repo)
    assert repo.observer.relation(str(promised["commit"]), str(promised["tree"])) == relation


def test_a_commit_that_is_gone_is_known_by_its_tree(repo: Repo) -> None:
    tree = repo.git("rev-parse", "HEAD^{tree}")
    assert repo.observer.relation("1" * 40, tree) == "content_equal"
    assert repo.observer.relation("1" * 40, "2" * 40) == "unreachable"


def test_only_what_is_not_the_runs_own_is_foreign(repo: Repo) -> None:
    (repo.root / "out").mkdir()
    (repo.root / "out" / "a").touch()
    (repo.root / "run.log").touch()
    assert repo.observer.foreign_changes() == ()
    (repo.root / "outer").touch()
    assert repo.observer.foreign_changes() == ("outer",)


def test_without_a_commit_nothing_can_be_promised(tmp_path: Path) -> None:
    empty = Repo(tmp_path)
    empty.git("init", "-q")
    with pytest.raises(RunBlocked, match="no commit yet"):
        empty.observer.preconditions()
    assert empty.observer.relation("1" * 40) == "unreachable"
    assert GitObserver(find_repository(tmp_path), promise=False).preconditions() == {}


@pytest.mark.parametrize(
    ("happens", "policy", "code"),
    [
        (ahead, ResumePolicy(), ""),
        (reset, ResumePolicy(), "git_diverged"),
        (rebase, ResumePolicy(), "git_diverged"),
        (rebase, ResumePolicy(allow_rewritten_history=True), ""),
        (lambda repo: (repo.root / "stray").touch(), ResumePolicy(), "dirty_worktree"),
    ],
)
def test_a_resume_looks_at_git(repo: Repo, happens: Callable[[Repo], None], policy: ResumePolicy, code: str) -> None:
    world = World(observers=(repo.observer,), policy=policy)
    with world.crashing(world.runtime.run("work")) as run:
        run.checkpoint({"at": 1})
        world.crash()
    happens(repo)
    assert world.runtime.plan(run.id, "work").code == code
