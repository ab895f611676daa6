"""Commits that this process writes are those that git would make (tests/git/plain_commits.py)."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from git.plain_commits import commit_everything, refresh
from git.scratch import copy_of, git, make_repository

ANN = "Ann <ann@example.org>"
DATE = "2026-03-01T08:00:00Z"
QUESTIONS = (
    ("log", "--format=raw", "HEAD"),
    ("reflog", "--format=%H %gn <%ge> %gD %gs", "--date=raw", "HEAD"),
    ("for-each-ref",),
    ("ls-files", "--stage"),
    ("status", "--porcelain"),
    ("fsck", "--strict", "--no-dangling"),
)
NAMES = ("a", "a.b", "a/b", "a0", "folder/deep/er", "folder/x", "folder.x", "\u00fcmlaut", "with blank", "x" * 200)
MESSAGES = ("work", "\n\n  first  \n\n\nsecond \n\n", "# not a comment\nGr\u00fc\u00dfe")


def by_git(folder: Path, message: str) -> None:
    git(folder, "add", "--all", date=DATE)
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message, date=DATE)


def change(folder: Path, rng: random.Random) -> None:
    """Some files written, with names that sort in ways of git's own, some removed, one made executable."""
    for name in rng.sample(NAMES, 4):
        place = folder / name
        if place.is_dir() or any(parent.is_file() for parent in place.parents):
            continue
        if place.exists() and rng.random() < 0.5:
            place.unlink()
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(rng.randbytes(rng.choice((0, 1, 3000))).replace(b"\r", b"\n"))
        place.chmod(rng.choice((0o644, 0o755)))


@pytest.mark.parametrize("seed", range(4))
def test_the_same_changes_make_the_same_repository(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    make_repository(ours)
    (ours / ".gitignore").write_text("# of ours\n/.runs/\n")
    (ours / ".runs" / "deep").mkdir(parents=True)
    (ours / ".runs" / "deep" / "x").write_text("ignored")
    (ours / ".gitattributes").write_text("* text=auto eol=lf\nlog/** -text\n*.md merge=workpacket\n")
    for number in range(8):
        change(ours, rng)
        copy_of(ours, theirs)
        message = MESSAGES[number % len(MESSAGES)]
        by_git(theirs, message)
        assert commit_everything(ours, message, ANN, DATE)
        assert [git(ours, *words) for words in QUESTIONS] == [git(theirs, *words) for words in QUESTIONS]
        if number == 2:
            git(ours, "switch", "--quiet", "--create", "wp/x")
        if number == 4:
            git(ours, "pack-refs", "--all")
        if number == 6:
            git(ours, "gc", "--quiet")
            git(ours, "checkout", "--quiet", "--detach")
        clear(theirs)


def clear(folder: Path) -> None:
    folder.rename(folder.with_name(f"{folder.name}-{len([*folder.parent.iterdir()])}"))


def test_a_copy_is_refreshed_without_taking_its_changes_for_committed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    make_repository(one)
    (one / "same").write_text("1")
    (one / "changed").write_text("1")
    (one / "gone").write_text("1")
    by_git(one, "first")
    copy_of(one, two)
    (two / "changed").write_text("2")
    os.utime(two / "changed", (1, 1))  # so old that git would believe the index
    assert refresh(one)
    assert git(one, "diff-files", "--name-only") == ""
    assert refresh(two)
    assert git(two, "diff-files", "--name-only") == "changed"
    (two / "gone").unlink()
    assert not refresh(two)


def _ignore(folder: Path) -> None:
    (folder / ".gitignore").write_text("b\n")


def _ignore_what_is_tracked(folder: Path) -> None:
    (folder / "tracked").mkdir()
    (folder / "tracked" / "x").write_text("1")
    by_git(folder, "more")
    (folder / ".gitignore").write_text("/tracked/\n")


def _ignore_below(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "below" / ".gitignore").write_text("/x/\n")


def _return(folder: Path) -> None:
    (folder / ".gitattributes").write_text("* text=auto eol=lf\n")
    (folder / "c").write_bytes(b"1\r\n")


def _exclude(folder: Path) -> None:
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "exclude").write_text("b\n")


def _attribute(folder: Path) -> None:
    (folder / ".gitattributes").write_text("* text eol=crlf\n")


def _set(folder: Path) -> None:
    git(folder, "config", "core.autocrlf", "input")


def _hook(folder: Path) -> None:
    (folder / ".git" / "hooks").mkdir()
    (folder / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")


def _link(folder: Path) -> None:
    (folder / "link").symlink_to("a")


def _merge(folder: Path) -> None:
    (folder / ".git" / "MERGE_HEAD").write_text(git(folder, "rev-parse", "HEAD") + "\n")


def _flag(folder: Path) -> None:
    git(folder, "update-index", "--assume-unchanged", "a")


def _other_version(folder: Path) -> None:
    git(folder, "update-index", "--index-version", "4")


def _inside(folder: Path) -> None:
    make_repository(folder / "inside")


UNUSUAL = (
    _ignore, _ignore_what_is_tracked, _ignore_below, _return, _exclude, _attribute, _set, _hook, _link, _merge, _flag,
    _other_version, _inside,
)  # fmt: skip


@pytest.mark.parametrize("unusual", UNUSUAL, ids=lambda one: one.__name__.strip("_"))
def test_what_is_not_plain_is_left_to_git(tmp_path: Path, unusual: Callable[[Path], None]) -> None:
    make_repository(tmp_path)
    (tmp_path / "a").write_text("1")
    by_git(tmp_path, "first")
    unusual(tmp_path)
    (tmp_path / "b").write_text("2")
    before = git(tmp_path, "rev-parse", "HEAD")
    assert not commit_everything(tmp_path, "second", ANN, DATE)
    assert git(tmp_path, "rev-parse", "HEAD") == before


def test_a_variable_of_git_and_a_message_without_words_are_left_to_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path)
    assert not commit_everything(tmp_path, " \n", ANN, DATE)
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other"))
    assert not commit_everything(tmp_path, "first", ANN, DATE)
