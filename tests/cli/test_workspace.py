"""Where a command finds its repository and its cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git.scratch import bare_bones
from workpacket.cli.workspace import open_workspace
from workpacket.problem import WorkpacketError


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A linked work tree, as `git worktree add` makes it: `.git` is a file that leads to the common folder."""
    bare_bones(tmp_path / "main")
    private = tmp_path / "main/.git/worktrees/linked"
    private.mkdir(parents=True)
    (private / "commondir").write_text("../..\n")
    (private / "HEAD").write_text("ref: refs/heads/linked\n")
    tree = tmp_path / "linked"
    (tree / ".GOV/task_packets").mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {private}\n")
    monkeypatch.chdir(tree / ".GOV/task_packets")
    return tree


def test_linked_work_trees_share_the_folder_of_the_cache(linked: Path) -> None:
    workspace = open_workspace()
    assert workspace.root == str(linked)
    assert workspace.common_dir == str(linked.parent / "main/.git")


@pytest.mark.parametrize("pointer", ["gitdir: /nowhere/at/all\n", "no pointer\n", "\udcff\udcfe"])
def test_a_pointer_that_leads_nowhere_leaves_the_check_without_a_cache(linked: Path, pointer: str) -> None:
    (linked / ".git").write_bytes(pointer.encode("utf-8", "surrogateescape"))
    workspace = open_workspace()
    assert workspace.root == str(linked)
    assert workspace.common_dir is None


def test_without_git_the_folder_of_the_documents_is_the_repository(linked: Path) -> None:
    (linked / ".git").unlink()
    workspace = open_workspace()
    assert (workspace.root, workspace.common_dir) == (str(linked), None)


def test_a_folder_of_documents_does_not_hide_the_repository_around_it(linked: Path) -> None:
    (linked / "deep/.GOV").mkdir(parents=True)
    os.chdir(linked / "deep")
    assert open_workspace().root == str(linked)


def test_a_repository_that_is_named_and_not_there_is_not_replaced_by_documents(
    linked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(linked / "nowhere"))
    with pytest.raises(WorkpacketError) as caught:
        open_workspace()
    assert caught.value.code == "no_repository"
