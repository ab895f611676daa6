"""Where a command finds its repository and its cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from workpacket.cli.workspace import open_workspace


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A linked work tree, as `git worktree add` makes it: `.git` is a file that leads to the common folder."""
    private = tmp_path / "main/.git/worktrees/linked"
    private.mkdir(parents=True)
    (private / "commondir").write_text("../..\n")
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
