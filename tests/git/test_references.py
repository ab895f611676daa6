"""References are read from git's files as git reads them, and what looks unusual is left to git."""

from __future__ import annotations

from pathlib import Path

import pytest

from git.scratch import commit, git, make_repository
from workpacket.git.repository import Repository, commit_at, symbolic_target
from workpacket.git.run import Answer, run_git
from workpacket.problem import WorkpacketError


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = make_repository(tmp_path)
    commit(made.root, "one", a="1")
    return made


@pytest.fixture
def without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: object, **_options: object) -> Answer:
        raise AssertionError("git was started")

    monkeypatch.setattr("workpacket.git.repository.run_git", refuse)


def said_by_git(repository: Repository, name: str) -> str | None:
    answer = run_git(repository.root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
    return answer.text.strip() or None


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "refs/heads/a/b", "refs/heads/alias", "refs/heads/none"])
@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.usefixtures("without_git")
def test_a_branch_is_what_git_says(repository: Repository, name: str, packed: bool) -> None:
    git(repository.root, "branch", "a/b")
    git(repository.root, "symbolic-ref", "refs/heads/alias", "refs/heads/a/b")
    if packed:
        git(repository.root, "pack-refs", "--all")
    assert commit_at(repository, name) == said_by_git(repository, name)


@pytest.mark.usefixtures("without_git")
def test_a_moved_branch_counts_before_its_packed_form(repository: Repository) -> None:
    git(repository.root, "pack-refs", "--all")
    second = commit(repository.root, "two", a="2")
    assert commit_at(repository, "refs/heads/main") == second


@pytest.mark.usefixtures("without_git")
def test_in_a_linked_work_tree_head_is_its_own(repository: Repository, tmp_path: Path) -> None:
    git(repository.root, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    linked = Repository(tmp_path / "side", repository.git_dir / "worktrees" / "side", repository.common_dir)
    assert symbolic_target(linked, "HEAD") == "refs/heads/side"
    assert commit_at(linked, "HEAD") == commit_at(repository, "refs/heads/side")


@pytest.mark.usefixtures("without_git")
def test_a_detached_head_stands_for_no_reference(repository: Repository) -> None:
    git(repository.root, "checkout", "--quiet", "--detach")
    assert symbolic_target(repository, "HEAD") == ""
    assert commit_at(repository, "HEAD") == said_by_git(repository, "HEAD")


@pytest.mark.usefixtures("without_git")
def test_a_branch_without_a_commit_has_none(tmp_path: Path) -> None:
    assert commit_at(make_repository(tmp_path), "HEAD") is None


def test_references_that_lead_to_one_another_end(repository: Repository) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (repository.common_dir / "refs/heads" / one).write_text(f"ref: refs/heads/{other}\n")
    assert commit_at(repository, "refs/heads/a") is None


@pytest.mark.parametrize("name", ["refs/heads/../../secret", "refs/heads//x", "/etc/passwd", "refs/heads/.x", "../x"])
def test_a_name_that_leads_elsewhere_is_not_read_as_a_file(repository: Repository, name: str) -> None:
    (repository.root / "secret").write_text("a" * 40)
    (repository.git_dir / "secret").write_text("a" * 40)
    assert commit_at(repository, name) is None


def test_a_reference_that_points_to_such_a_name_is_not_followed(repository: Repository) -> None:
    (repository.git_dir / "secret").write_text("a" * 40)
    (repository.common_dir / "refs/heads/trap").write_text("ref: refs/heads/../../secret\n")
    assert commit_at(repository, "refs/heads/trap") is None


def test_another_format_of_references_is_left_to_git(tmp_path: Path) -> None:
    if run_git(tmp_path, "init", "--quiet", "--ref-format=reftable", "new", check=False).status != 0:
        made = make_repository(tmp_path / "old")  # this git does not know the format: its mark alone must do
        expected = commit(made.root, "one", a="1")
        (made.common_dir / "reftable").mkdir()
    else:
        made = Repository(tmp_path / "new", tmp_path / "new/.git", tmp_path / "new/.git")
        expected = commit(made.root, "one", a="1")
    assert commit_at(made, "HEAD") == expected
    assert symbolic_target(made, "HEAD").startswith("refs/heads/")


def test_a_reference_that_cannot_be_read_is_not_taken_for_a_missing_one(repository: Repository) -> None:
    loop = repository.common_dir / "refs" / "heads" / "loop"
    loop.symlink_to(loop)

    with pytest.raises(WorkpacketError) as refused:
        commit_at(repository, "refs/heads/loop")

    assert (refused.value.code, refused.value.path) == ("repository_unreadable", str(loop))
