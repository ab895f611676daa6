"""Which branch is the main one, and which commit it is at, in clones of every kind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from git.scratch import commit, git, make_repository
from workpacket.git.repository import (
    Repository,
    commit_of,
    default_branch,
    find_repository,
    main_remote,
    tip_of,
    without_remote,
)
from workpacket.git.run import run_git
from workpacket.problem import WorkpacketError


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    upstream = make_repository(tmp_path / "hub")
    commit(upstream.root, "one", a="1")
    commit(upstream.root, "two", a="2")
    git(upstream.root, "branch", "wp/song")
    return upstream.root


def clone(hub: Path, *words: str) -> Repository:
    place = hub.parent / f"clone{len(list(hub.parent.iterdir()))}"
    git(hub.parent, "clone", "--quiet", *words, str(hub), str(place))
    return find_repository(place, {})


def name_of(repository: Repository) -> str | None:
    branch = default_branch(find_repository(repository.root, {}))
    return branch.name if branch is not None else None


def test_a_head_that_names_a_missing_branch_does_not_count(hub: Path) -> None:
    found = clone(hub)
    git(found.root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/master")
    assert name_of(found) == "origin/main"


@pytest.mark.parametrize("name", ["trunk", "develop", "master"])
def test_a_usual_name_is_found_without_a_head(hub: Path, name: str) -> None:
    git(hub, "branch", "--move", "main", name)
    found = clone(hub)
    git(found.root, "remote", "set-head", "origin", "--delete")
    assert name_of(found) == f"origin/{name}"


def test_the_only_branch_is_the_main_one_whatever_its_name(hub: Path) -> None:
    git(hub, "branch", "--delete", "wp/song")
    git(hub, "branch", "--move", "main", "stable")
    found = clone(hub)
    git(found.root, "remote", "set-head", "origin", "--delete")
    assert name_of(found) == "origin/stable"
    git(found.root, "remote", "remove", "origin")
    assert name_of(found) == "stable"


def test_the_remote_may_have_any_name(hub: Path) -> None:
    found = clone(hub, "--origin", "company")
    assert name_of(found) == "company/main"
    assert without_remote(found, "company/main") == "main"
    assert without_remote(found, "wp/song") == "wp/song"


def test_of_several_remotes_the_one_that_main_follows_counts(hub: Path) -> None:
    shutil.copytree(hub, hub.parent / "fork")
    found = clone(hub.parent / "fork")
    git(found.root, "remote", "add", "upstream", str(hub))
    git(found.root, "fetch", "--quiet", "upstream")
    assert main_remote(find_repository(found.root, {})) == "origin"
    git(found.root, "branch", "--quiet", "--set-upstream-to=upstream/main", "main")
    assert main_remote(find_repository(found.root, {})) == "upstream"


def test_a_reference_of_ci_is_not_taken_for_a_remote(hub: Path) -> None:
    found = clone(hub)
    git(found.root, "update-ref", "refs/remotes/pull/1/merge", "HEAD")
    assert main_remote(find_repository(found.root, {})) == "origin"


def test_a_branch_that_was_not_pulled_counts_as_its_remote_one(hub: Path) -> None:
    found = clone(hub)
    there = commit_of(found, "HEAD")
    git(found.root, "reset", "--quiet", "--hard", "HEAD~1")
    assert tip_of(found, "main") == tip_of(found, "origin/main") == there
    git(found.root, "reset", "--quiet", "--hard", there)
    here = commit(found.root, "three", a="3")
    assert tip_of(found, "main") == here
    assert tip_of(found, "") is None


def test_a_shallow_clone_is_named_when_a_commit_is_missing(hub: Path) -> None:
    first = git(hub, "rev-parse", "HEAD~1")
    place = hub.parent / "shallow"
    git(hub.parent, "clone", "--quiet", "--depth", "1", f"file://{hub}", str(place))
    found = find_repository(place, {})
    for ask in (lambda: commit_of(found, first), lambda: run_git(found.root, "diff-tree", first, "HEAD")):
        with pytest.raises(WorkpacketError) as caught:
            ask()
        assert caught.value.code == "history_shallow"
        assert "git fetch --unshallow" in caught.value.hint


def test_a_folder_of_another_account_is_named_with_gits_own_command(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(WorkpacketError) as caught:
        run_git(hub, "status")
    assert caught.value.code == "repository_not_trusted"
    assert caught.value.hint == f"if you trust it: git config --global --add safe.directory {hub}"
