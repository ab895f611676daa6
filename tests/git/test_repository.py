"""Finding the repository without asking git must give git's own answer, or leave the question to git."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from git.scratch import commit, git, make_repository
from workpacket.git.repository import Repository, find_repository, head_commit, operation_in_progress
from workpacket.problem import WorkpacketError


def git_says(folder: Path) -> Repository:
    root, git_dir, common = git(
        folder, "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"
    ).splitlines()
    return Repository(Path(root), Path(git_dir), (folder / common).resolve())


def refused(folder: Path, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(WorkpacketError) as caught:
        find_repository(folder, environ or {})
    return caught.value.code


def test_the_top_and_a_folder_below_it_are_the_same_repository(tmp_path: Path) -> None:
    found = make_repository(tmp_path / "a")
    (tmp_path / "a" / "deep" / "er").mkdir(parents=True)
    assert find_repository(tmp_path / "a" / "deep" / "er", {}) == found == git_says(tmp_path / "a")
    assert find_repository(tmp_path / "a", {}) == found
    assert found.git_path("MERGE_HEAD") == tmp_path / "a" / ".git" / "MERGE_HEAD"


def test_a_linked_work_tree_shares_the_common_folder_and_has_its_own(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    commit(tmp_path / "main", "one", a="1")
    git(tmp_path / "main", "worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = find_repository(tmp_path / "linked", {})
    assert linked == git_says(tmp_path / "linked")
    assert linked.common_dir == main.common_dir
    assert linked.git_dir != main.git_dir
    said = git(tmp_path / "linked", "rev-parse", "--git-path", "workpacket/tx")
    assert linked.git_path("workpacket/tx") == (tmp_path / "linked" / said).resolve()


def test_a_submodule_is_left_to_git(tmp_path: Path) -> None:
    make_repository(tmp_path / "inner")
    commit(tmp_path / "inner", "one", a="1")
    make_repository(tmp_path / "outer")
    git(tmp_path / "outer", "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(tmp_path / "inner"))
    assert find_repository(tmp_path / "outer" / "inner", {}) == git_says(tmp_path / "outer" / "inner")


def test_variables_that_steer_git_are_left_to_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path / "a")
    make_repository(tmp_path / "b")
    commit(tmp_path / "a", "one", a="1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_DIR", "a/.git")
    monkeypatch.setenv("GIT_WORK_TREE", "a")
    found = find_repository(tmp_path / "b")
    assert found.root == tmp_path / "a"
    assert head_commit(found) is not None


@pytest.mark.parametrize("bare", [["--bare"], ["--bare", "--initial-branch=main"]])
def test_a_bare_repository_has_no_work_tree(tmp_path: Path, bare: list[str]) -> None:
    git(tmp_path, "init", "--quiet", *bare, "bare.git")
    assert refused(tmp_path / "bare.git") == "repository_bare"
    assert refused(tmp_path / "bare.git" / "refs") == "repository_bare"
    (tmp_path / ".git").write_text("gitdir: bare.git\n")
    assert refused(tmp_path) == "repository_bare"
    assert refused(tmp_path, {"GIT_CEILING_DIRECTORIES": "/"}) == "repository_bare"


def test_no_repository_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(WorkpacketError, match="is not in a git repository") as caught:
        find_repository(tmp_path, {})
    assert caught.value.code == "no_repository"
    assert "git init" in caught.value.hint
    assert refused(tmp_path, {"GIT_CEILING_DIRECTORIES": "/"}) == "no_repository"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone") == "repository_unreadable"


@pytest.mark.parametrize("content", ["gitdir: nowhere\n", "something else\n"])
def test_a_git_file_that_points_nowhere_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    assert refused(tmp_path) == "repository_broken"


def test_another_file_system_ends_the_search(tmp_path: Path) -> None:
    # /proc is a file system of its own on Linux; its parent has no repository either way.
    assert refused(Path("/proc/self") if sys.platform == "linux" else tmp_path) == "no_repository"


def test_finding_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert find_repository(tmp_path, {}).root == tmp_path


@pytest.mark.parametrize(
    ("command", "operation"),
    [
        (["merge", "side"], "merge"),
        (["rebase", "side"], "rebase"),
        (["rebase", "--apply", "side"], "rebase"),
        (["cherry-pick", "side"], "cherry-pick"),
        (["revert", "--no-commit", "HEAD~1", "HEAD"], "revert"),
    ],
)
def test_an_operation_that_waits_for_the_user_is_seen(tmp_path: Path, command: list[str], operation: str) -> None:
    repository = make_repository(tmp_path)
    commit(tmp_path, "one", a="1\n")
    git(tmp_path, "checkout", "--quiet", "-b", "side")
    commit(tmp_path, "two", a="2\n")
    git(tmp_path, "checkout", "--quiet", "main")
    commit(tmp_path, "three", a="3\n")
    assert operation_in_progress(repository) == ""
    git(tmp_path, *command, check=False)
    assert operation_in_progress(repository) == operation


def test_patches_from_a_mailbox_are_told_from_a_rebase(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    commit(tmp_path, "one", a="1\n")
    commit(tmp_path, "two", a="2\n")
    git(tmp_path, "format-patch", "--quiet", "-1", "--output-directory", str(tmp_path / ".git" / "mail"))
    commit(tmp_path, "three", a="3\n")
    git(tmp_path, "am", *(str(path) for path in (tmp_path / ".git" / "mail").iterdir()), check=False)
    assert operation_in_progress(repository) == "am"
