"""A change in a repository is noticed: the system tells of it, or it is seen in the times of files."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from git.scratch import git, make_repository
from workpacket.git.repository import find_repository
from workpacket.shell.watch import Notices, Watched

TELLS = sys.platform == "linux"
STUBS = ".GOV/task_packets/stubs"
EVENTS = ".GOV/log/WP-1-A-v1"


def rewrite(root: Path) -> None:
    (root / STUBS / "WP-1-A-v1.md").write_text("two", "utf-8")


def replaced(root: Path) -> None:
    """As editors do."""
    fresh = root / STUBS / "fresh~"
    fresh.write_text("two", "utf-8")
    fresh.replace(root / STUBS / "WP-1-A-v1.md")


def in_a_new_folder(root: Path) -> None:
    (root / ".GOV/task_packets/b/c").mkdir(parents=True)
    (root / ".GOV/task_packets/b/c/WP-1-B-v1.md").write_text("x", "utf-8")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a document": rewrite,
    "a document that an editor replaces": replaced,
    "a document in a new folder": in_a_new_folder,
    "a document that goes": lambda root: (root / STUBS / "WP-1-A-v1.md").unlink(),
    "an event that comes": lambda root: (root / EVENTS / "2.json").write_text("{}", "utf-8"),
    "an event that goes": lambda root: (root / EVENTS / "1.json").unlink(),
    "a commit": lambda root: git(root, "commit", "--quiet", "--allow-empty", "--message", "x"),
    "a branch": lambda root: git(root, "branch", "other"),
    "what is staged": lambda root: git(root, "add", "--all"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_repository(tmp_path)
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "first")
    for path, text in ((f"{STUBS}/WP-1-A-v1.md", "one"), (f"{EVENTS}/1.json", "{}")):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_told_and_seen_at_the_next_look(change: Callable[[Path], object], root: Path) -> None:
    watched = Watched(find_repository(root))
    before = watched.look()
    assert not watched.hear()
    assert watched.look() == before
    change(root)
    if TELLS:
        assert select.select([watched.notices.descriptor], [], [], 5)[0]
        assert watched.hear()
        assert watched.look() != before
    watched.notices.close()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_nothing_tells_is_seen_all_the_same(
    change: Callable[[Path], object], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "other")
    watched = Watched(find_repository(root))
    assert watched.notices.descriptor == -1
    before = watched.look()
    change(root)
    assert not watched.hear()
    end = time.monotonic() + 10
    while watched.look() == before:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(not TELLS, reason="Linux tells of changes; elsewhere the board looks for them")
def test_a_folder_that_came_with_files_in_it_is_watched(root: Path) -> None:
    watched = Watched(find_repository(root))
    in_a_new_folder(root)
    assert watched.hear()
    before = watched.look()
    (root / ".GOV/task_packets/b/c/WP-1-B-v1.md").write_text("y", "utf-8")
    assert watched.hear()
    assert watched.look() != before


@pytest.mark.skipif(not TELLS, reason="Linux tells of changes; elsewhere the board looks for them")
def test_what_concerns_nothing_shown_is_not_told(root: Path) -> None:
    watched = Watched(find_repository(root))
    (root / "src").mkdir()
    (root / "src/a.py").write_text("x", "utf-8")
    git(root, "hash-object", "-w", "src/a.py")
    assert not watched.hear()


@pytest.mark.skipif(not TELLS, reason="Linux tells of changes; elsewhere the board looks for them")
def test_folders_that_the_system_does_not_allow_are_looked_at_more_often(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = Watched(find_repository(root))
    monkeypatch.setattr(Notices, "_add", _refused)
    busy = Watched(find_repository(root))
    assert not busy.notices.is_complete
    assert busy.pause < calm.pause


def _refused(notices: Notices, folder: str) -> bool:
    notices.is_complete = False
    return bool(os.fspath(folder) == "")
