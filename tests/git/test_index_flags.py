"""The quick look at the index says that nothing is hidden wherever that is so: else no cached output would be quick."""

from __future__ import annotations

from pathlib import Path

from git.scratch import git
from workpacket.git.discovery import may_hide

FOLDER = ".GOV"


def committed(root: Path) -> str:
    git(root, "init", "--quiet")
    (root / FOLDER / "log").mkdir(parents=True)
    (root / FOLDER / "log" / "event.json").write_text("{}\n")
    (root / "README.md").write_text("Hello.\n")
    git(root, "add", "--all")
    git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "begin")
    return str(root / ".git")


def test_a_commit_leaves_the_names_of_its_trees_in_the_index_and_they_hide_nothing(tmp_path: Path) -> None:
    git_dir = committed(tmp_path)
    assert f"{FOLDER}\0".encode() in (tmp_path / ".git" / "index").read_bytes()

    assert not may_hide(git_dir, FOLDER)


def test_a_path_with_a_flag_may_be_hidden(tmp_path: Path) -> None:
    git_dir = committed(tmp_path)
    git(tmp_path, "update-index", "--assume-unchanged", f"{FOLDER}/log/event.json")

    assert may_hide(git_dir, FOLDER)


def test_a_submodule_in_the_place_of_the_folder_may_hide_it(tmp_path: Path) -> None:
    git_dir = committed(tmp_path)
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    git(tmp_path, "rm", "--quiet", "-r", "--cached", FOLDER)
    git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{commit},{FOLDER}")

    assert may_hide(git_dir, FOLDER)
