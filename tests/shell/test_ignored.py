"""`init` tells git to leave out what runs write, says so once, and touches nothing else in the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from git.scratch import git, make_repository
from workpacket.cli.main import main
from workpacket.git.repository import find_repository, is_ignored


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, b"/.runr/\n/.workpacket/\n"),
        (b"*.log\n", b"*.log\n/.runr/\n/.workpacket/\n"),
        (b"*.log", b"*.log\n/.runr/\n/.workpacket/\n"),
        (b"*.log\r\n", b"*.log\r\n/.runr/\r\n/.workpacket/\r\n"),
        (b"\xff\n.runr\n", b"\xff\n.runr\n/.workpacket/\n"),
        (b".*\n", b".*\n"),
        (b"/.runr/\n!/.runr/\n/.workpacket\n", b"/.runr/\n!/.runr/\n/.workpacket\n/.runr/\n"),
    ],
)
def test_what_git_does_not_ignore_yet_is_added(root: Path, before: bytes | None, after: bytes) -> None:
    if before is not None:
        (root / ".gitignore").write_bytes(before)
    for _ in range(2):
        assert main(["init"]) == 0
        assert (root / ".gitignore").read_bytes() == after
    repository = find_repository(root)
    assert is_ignored(repository, ".runr/checkpoints/x.json")
    assert is_ignored(repository, ".workpacket/runs.db")


def test_what_the_person_ignores_everywhere_is_not_said_again(root: Path) -> None:
    git(root, "config", "core.excludesFile", str(root / "mine"))
    (root / "mine").write_text(".runr/\n.workpacket/\n")
    assert main(["init"]) == 0
    assert not (root / ".gitignore").exists()


def test_a_file_that_is_a_link_is_left_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "shared").write_text("*.log\n")
    (root / ".gitignore").symlink_to("shared")
    assert main(["init"]) == 0
    assert (root / "shared").read_text() == "*.log\n"


def test_the_next_step_commits_it_too(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init"])
    said = capsys.readouterr().out
    assert "git add .gitignore .GOV" in said
    assert "  - .gitignore ignores /.runr/ and /.workpacket/\n" in said
