"""What is asked of the git program, on real repositories."""

from __future__ import annotations

import hashlib
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git.scratch import commit, git, make_repository
from workpacket.git import objects
from workpacket.git import repository as git_repository
from workpacket.git.objects import (
    ChangedPath,
    StatusEntry,
    changed_paths,
    list_tree,
    patch_id,
    read_file_at,
    read_objects,
    status,
)
from workpacket.git.repository import (
    Branch,
    Repository,
    add_branch,
    add_worktree,
    commit_of,
    current_branch,
    default_branch,
    find_repository,
    head_commit,
    is_ancestor,
    list_worktrees,
    local_branches,
    merge_base,
    resolved,
)
from workpacket.git.run import Answer, run_git
from workpacket.problem import WorkpacketError

NOBODY = "0" * 40
IMPOSSIBLE_BRANCHES = (
    "--help", "-h", "", "a b", ":/", "a\na", "@{u}", "../..", "a..b", "x.lock", "HEAD^", "a~1", "@{-1}",
)  # fmt: skip
HOSTILE = ("--help", "-h", "--output=x", "HEAD --", "", "a b", ":/", "HEAD\nHEAD", "@{u}", "$(id)", "../..")


def code_of(error: pytest.ExceptionInfo[WorkpacketError]) -> str:
    return error.value.code


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path)


def test_a_repository_without_a_commit_has_no_head(repository: Repository) -> None:
    assert head_commit(repository) is None
    assert current_branch(repository) == "main"
    assert default_branch(repository) is None


def test_a_revision_becomes_a_full_commit_id(repository: Repository) -> None:
    first = commit(repository.root, "one", a="1")
    git(repository.root, "tag", "--annotate", "--message", "x", "v1")
    assert commit_of(repository, "HEAD") == commit_of(repository, first[:8]) == commit_of(repository, "v1") == first
    assert head_commit(repository) == first


@pytest.mark.parametrize("name", [*HOSTILE, "nowhere", "HEAD:a"])
def test_a_name_that_is_no_revision_is_refused_and_never_an_option(repository: Repository, name: str) -> None:
    commit(repository.root, "one", a="1")
    with pytest.raises(WorkpacketError) as caught:
        commit_of(repository, name)
    assert code_of(caught) == "unknown_revision"


def test_a_detached_head_is_on_no_branch(repository: Repository) -> None:
    commit(repository.root, "one", a="1")
    git(repository.root, "checkout", "--quiet", "--detach")
    assert current_branch(repository) is None


def test_how_commits_lie_to_each_other(repository: Repository) -> None:
    first = commit(repository.root, "one", a="1")
    second = commit(repository.root, "two", a="2")
    git(repository.root, "checkout", "--quiet", "-b", "side", first)
    side = commit(repository.root, "side", b="1")
    git(repository.root, "checkout", "--quiet", "--orphan", "other")
    other = commit(repository.root, "other", c="1")
    assert is_ancestor(repository, first, second)
    assert is_ancestor(repository, first, first)
    assert not is_ancestor(repository, second, first)
    assert merge_base(repository, second, side) == first
    assert merge_base(repository, second, other) is None
    for broken in (lambda: is_ancestor(repository, NOBODY, first), lambda: merge_base(repository, NOBODY, first)):
        with pytest.raises(WorkpacketError, match=r"git merge-base: .*0000") as caught:
            broken()
        assert code_of(caught) == "git_failed"


def test_replacement_objects_do_not_change_history(repository: Repository) -> None:
    first = commit(repository.root, "one", a="honest")
    second = commit(repository.root, "two", a="forged")
    git(repository.root, "replace", first, second)
    assert read_file_at(repository, first, "a") == b"honest"


def test_the_default_branch_is_the_remotes_before_ones_own(tmp_path: Path) -> None:
    upstream = make_repository(tmp_path / "upstream")
    first = commit(upstream.root, "one", a="1")
    git(upstream.root, "branch", "-m", "trunk")
    git(tmp_path, "clone", "--quiet", str(upstream.root), str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone", tmp_path / "clone" / ".git", tmp_path / "clone" / ".git")
    assert default_branch(clone) == Branch("refs/remotes/origin/trunk", first)
    git(upstream.root, "branch", "-m", "release")
    git(upstream.root, "branch", "other")
    assert default_branch(upstream) is None
    git(upstream.root, "branch", "-m", "release", "trunk")
    git(upstream.root, "config", "init.defaultBranch", "trunk")
    assert default_branch(find_repository(upstream.root, {})) == Branch("refs/heads/trunk", first)


def test_a_tree_is_listed_whole_or_by_folder(repository: Repository) -> None:
    first = commit(repository.root, "one", a="1", d__e="2", **{"d__ü \t": "3", "-x__y": "4"})
    assert [entry.path for entry in list_tree(repository, first)] == ["-x/y", "a", "d/e", "d/ü \t"]
    assert [entry.path for entry in list_tree(repository, first, "d", "-x")] == ["-x/y", "d/e", "d/ü \t"]
    assert list_tree(repository, first, "nowhere") == []
    assert all(entry.is_file for entry in list_tree(repository, first))


def test_many_objects_are_read_by_one_process(repository: Repository) -> None:
    first = commit(repository.root, "one", a="1\n2\n", b="", **{"ü x": "3"})
    names = [f"{first}:a", f"{first}:b", f"{first}:nowhere", f"{first}:ü x", "garbage", f"{first}:a"]
    assert read_objects(repository, names) == {f"{first}:a": b"1\n2\n", f"{first}:b": b"", f"{first}:ü x": b"3"}
    assert read_objects(repository, []) == {}
    assert read_file_at(repository, first, "nowhere") is None
    with pytest.raises(WorkpacketError):
        read_objects(repository, ["a\nb"])


def test_a_short_id_of_two_objects_is_not_guessed(repository: Repository) -> None:
    by_prefix: dict[str, list[bytes]] = {}
    for content in (str(number).encode() for number in range(2000)):
        prefix = hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()[:4]
        by_prefix.setdefault(prefix, []).append(content)
    prefix, alike = next((prefix, contents) for prefix, contents in by_prefix.items() if len(contents) > 1)
    for content in alike:
        run_git(repository.root, "hash-object", "-w", "--stdin", stdin=content)
    with pytest.raises(WorkpacketError, match="several objects"):
        read_objects(repository, [prefix])


def test_what_differs_from_head_is_listed_file_by_file(repository: Repository) -> None:
    commit(repository.root, "one", a="1", b="1", **{".gitignore": "ignored\n"})
    (repository.root / "a").write_text("2")
    (repository.root / "b").rename(repository.root / "c d")
    (repository.root / "ignored").write_text("")
    (repository.root / "new").mkdir()
    (repository.root / "new" / "ü").write_text("")
    assert status(repository) == [
        StatusEntry("a", " M"),
        StatusEntry("b", " D"),
        StatusEntry("c d", "??"),
        StatusEntry("new/ü", "??"),
    ]
    assert [entry.path for entry in status(repository, "new")] == ["new/ü"]
    assert status(repository, "*") == []
    assert [entry.untracked for entry in status(repository, "a", "new")] == [False, True]


def test_a_conflict_is_seen_as_unmerged(repository: Repository) -> None:
    commit(repository.root, "one", a="1\n")
    git(repository.root, "checkout", "--quiet", "-b", "side")
    commit(repository.root, "two", a="2\n", b="x")
    git(repository.root, "checkout", "--quiet", "main")
    commit(repository.root, "three", a="3\n", b="y")
    git(repository.root, "merge", "side", check=False)
    assert [(entry.path, entry.letters, entry.unmerged) for entry in status(repository)] == [
        ("a", "UU", True),
        ("b", "AA", True),
    ]


def test_the_paths_that_two_commits_have_differently(repository: Repository) -> None:
    first = commit(repository.root, "one", a="1", b="1", c="1")
    (repository.root / "b").unlink()
    second = commit(repository.root, "two", a="2", **{"d x": "1"})
    assert changed_paths(repository, first, second) == [
        ChangedPath("a", "M"),
        ChangedPath("b", "D"),
        ChangedPath("d x", "A"),
    ]
    assert changed_paths(repository, first, second, "a") == [ChangedPath("a", "M")]
    assert changed_paths(repository, first, first) == []


def test_a_patch_keeps_its_id_over_a_rebase(repository: Repository) -> None:
    base = commit(repository.root, "one", a="1\n2\n3\n", other="1\n")
    work = commit(repository.root, "work", a="1\nTWO\n3\n")
    git(repository.root, "checkout", "--quiet", "-b", "elsewhere", base)
    moved_base = commit(repository.root, "meanwhile", other="2\n")
    git(repository.root, "cherry-pick", work)
    moved = commit_of(repository, "HEAD")
    assert patch_id(repository, base, work) == patch_id(repository, moved_base, moved) is not None
    assert patch_id(repository, base, moved_base) != patch_id(repository, base, work)
    assert patch_id(repository, base, base) is None
    assert patch_id(repository, base, work, "other") is None


def test_branches_and_work_trees_are_added_and_never_overwritten(repository: Repository, tmp_path: Path) -> None:
    first = commit(repository.root, "one", a="1")
    add_branch(repository, "work/x", first)
    assert local_branches(repository) == {"main": first, "work/x": first}
    place = tmp_path / ".." / f"{tmp_path.name}-linked tree"
    add_worktree(repository, place, "work/x")
    trees = list_worktrees(repository)
    assert [(tree.path, tree.branch, tree.commit, tree.locked, tree.prunable) for tree in trees] == [
        (tmp_path, "main", first, False, False),
        (place.resolve(), "work/x", first, False, False),
    ]
    git(place, "checkout", "--quiet", "--detach")
    assert list_worktrees(repository)[1].branch == ""
    git(place, "checkout", "--quiet", "work/x")
    cases: list[tuple[Callable[[], None], str]] = [
        (lambda: add_branch(repository, "work/x", first), "branch_exists"),
        (lambda: add_worktree(repository, place, "main"), "worktree_exists"),
        (lambda: add_worktree(repository, tmp_path / "third", "work/x"), "branch_checked_out"),
        (lambda: add_worktree(repository, tmp_path / "third", "nowhere"), "git_failed"),
        (lambda: add_branch(repository, "new", NOBODY), "git_failed"),
    ]
    for attempt, code in cases:
        with pytest.raises(WorkpacketError) as caught:
            attempt()
        assert code_of(caught) == code


def test_the_bare_centre_of_work_trees_is_no_work_tree(tmp_path: Path) -> None:
    upstream = make_repository(tmp_path / "upstream")
    commit(upstream.root, "one", a="1")
    git(tmp_path, "clone", "--quiet", "--bare", str(upstream.root), str(tmp_path / "centre"))
    git(tmp_path / "centre", "worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    linked = Repository(tmp_path / "linked", tmp_path / "centre" / "worktrees" / "linked", tmp_path / "centre")
    assert [tree.path for tree in list_worktrees(linked)] == [tmp_path / "linked"]


@pytest.mark.parametrize("name", IMPOSSIBLE_BRANCHES)
def test_an_impossible_branch_name_is_refused(repository: Repository, name: str) -> None:
    first = commit(repository.root, "one", a="1")
    with pytest.raises(WorkpacketError) as caught:
        add_branch(repository, name, first)
    assert code_of(caught) == "branch_name_invalid"
    assert local_branches(repository) == {"main": first}


@pytest.mark.parametrize("length", [0, 1, 4096, 4097, 1_000_000])
def test_git_is_given_input_of_any_length(repository: Repository, length: int) -> None:
    given = b"\n" * length
    assert run_git(repository.root, "stripspace", "--comment-lines", stdin=given).output == b"#\n" * length


def test_git_that_is_missing_slow_or_silent_is_said(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pretend(script: str) -> None:
        fake = tmp_path / "bin" / "git"
        fake.parent.mkdir(exist_ok=True)
        fake.write_text(f"#!{sys.executable}\n{script}\n")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(fake.parent))

    with pytest.raises(WorkpacketError) as caught:
        run_git(tmp_path / "gone", "status")
    assert code_of(caught) == "no_repository"
    pretend("import time; time.sleep(30)")
    for given in (None, b"short", b"long" * 2000):  # what does not fit into a pipe is given in another way
        with pytest.raises(WorkpacketError, match="no answer within 0 s") as caught:
            run_git(repository.root, "status", timeout=0.2, stdin=given)
        assert code_of(caught) == "git_timeout"
    pretend("raise SystemExit(3)")
    with pytest.raises(WorkpacketError, match="git status: status 3, without a message"):
        status(repository)
    (tmp_path / "bin" / "git").unlink()
    with pytest.raises(WorkpacketError, match="git was not found") as caught:
        run_git(repository.root, "status")
    assert code_of(caught) == "tool_missing"


def test_git_is_asked_nothing_that_could_hang_page_or_fetch(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_PAGER", "false")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    first = commit(repository.root, "one", a="1")
    second = commit(repository.root, "two", a="2")
    assert patch_id(repository, first, second) is not None
    seen = run_git(repository.root, "-c", "alias.env=!env", "env").text.splitlines()
    assert {"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C", "GIT_NO_REPLACE_OBJECTS=1"} <= set(seen)
    assert not any(line.startswith("GIT_EXTERNAL_DIFF=") for line in seen)


def test_what_a_full_id_names_is_asked_once_and_what_a_name_names_every_time(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository.root, "one", file="1")
    asked = []

    def counted(folder: Path, *words: str, **options: Any) -> Answer:
        asked.append(words[0])
        return run_git(folder, *words, **options)

    for module in (git_repository, objects):
        monkeypatch.setattr(module, "run_git", counted)
    first = commit_of(repository, "main")
    for _ in range(2):
        assert commit_of(repository, first) == first
        assert [entry.path for entry in list_tree(repository, first)] == ["file"]
    assert asked == ["rev-parse", "rev-parse", "ls-tree"]
    second = commit(repository.root, "two", other="2")
    assert commit_of(repository, "main") == second
    assert [entry.path for entry in list_tree(repository, "main")] == ["file", "other"]
    assert resolved(repository, "0" * 40 + "^{commit}") is None
