"""Who committed a file first: the same answer for one file and for many, without asking git for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from git.scratch import git, make_repository
from workpacket.git import objects
from workpacket.git.repository import find_repository
from workpacket.git.run import Answer, run_git
from workpacket.shell.approvals.uses import FirstAuthors

FOLDER = ".GOV/refinements"


def commit_as(root: Path, who: str, *names: str) -> None:
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    for name in names:
        (root / FOLDER / name).write_text(f"by {who}\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", who, "--author", f"{who} <{who}@example.org>")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Ann and Bob have each written files; one was added on two branches, one was changed by another later."""
    make_repository(tmp_path)
    commit_as(tmp_path, "ann", "one.md", "two.md", "three.md")
    git(tmp_path, "switch", "--quiet", "--create", "side")
    commit_as(tmp_path, "bob", "four.md", "five.md")
    (tmp_path / FOLDER / "both.md").write_text("the same\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "both", "--author", "bob <bob@example.org>")
    git(tmp_path, "switch", "--quiet", "main")
    (tmp_path / FOLDER / "both.md").write_text("the same\n")
    commit_as(tmp_path, "carol", "one.md", "six.md")
    git(tmp_path, "merge", "--quiet", "--message", "merged", "side")
    return tmp_path


EXPECTED = {
    "one.md": {"ann"},
    "two.md": {"ann"},
    "three.md": {"ann"},
    "four.md": {"bob"},
    "five.md": {"bob"},
    "six.md": {"carol"},
    "both.md": {"bob", "carol"},
    "nowhere.md": set(),
}


def people(authors: frozenset[str]) -> set[str]:
    return {author.partition(" ")[0] for author in authors}


def test_whoever_first_committed_a_file_is_found_alone_and_among_many(root: Path) -> None:
    repository = find_repository(root)
    alone = {name: people(FirstAuthors(repository).of(f"{FOLDER}/{name}")) for name in EXPECTED}
    among = FirstAuthors(repository)
    assert alone == EXPECTED
    assert {name: people(among.of(f"{FOLDER}/{name}")) for name in EXPECTED} == EXPECTED


def test_git_is_not_asked_for_each_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counting(folder: Path, *words: str) -> Answer:
        asked.append(words)
        return run_git(folder, *words)

    monkeypatch.setattr(objects, "run_git", counting)
    authors = FirstAuthors(find_repository(root))
    for number in range(50):
        authors.of(f"{FOLDER}/{number}.md")
    assert len(asked) == 5


def test_before_the_first_commit_nobody_is_an_author(tmp_path: Path) -> None:
    make_repository(tmp_path)
    assert FirstAuthors(find_repository(tmp_path)).of("x.md") == frozenset()
