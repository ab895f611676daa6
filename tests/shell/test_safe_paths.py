"""Paths below the repository are walked component by component, through no link."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workpacket.problem import WorkpacketError
from workpacket.shell.transactions.storage import PosixStorage, Tree, split_path


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    disk = PosixStorage()
    with Tree(disk, disk.open_top(tmp_path)) as opened:
        yield opened


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../b",
        "a//b",
        "a/",
        "./a",
        ".git/config",
        "a/.GIT/hooks",
        "a\\b",
        "C:x",
        "a\0",
        "a\nb",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(WorkpacketError) as caught:
        split_path(path)
    assert (caught.value.code, caught.value.path) == ("path_unsafe", path)


def test_an_ordinary_path_is_split() -> None:
    assert split_path(".GOV/task packets/WP-1-Ä.md") == (".GOV", "task packets", "WP-1-Ä.md")


def test_a_link_on_the_way_is_refused_and_named(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("x")
    (tmp_path / ".GOV").symlink_to("outside")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: tree.read(".GOV/x.md"),
        lambda: tree.names(".GOV"),
        lambda: tree.make_folder((".GOV", "y")),
    )
    for attempt in attempts:
        with pytest.raises(WorkpacketError) as caught:
            attempt()
        assert (caught.value.code, caught.value.path) == ("path_is_link", ".GOV")
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["x.md"]


def test_a_link_a_folder_and_a_pipe_are_no_files(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(WorkpacketError) as caught:
            tree.read(name)
        assert (caught.value.code, caught.value.path) == ("path_not_a_file", name)


def test_a_folder_put_in_place_of_an_opened_one_is_not_looked_at(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("first")
    assert tree.names("a") == {"x"}
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").symlink_to("/etc")
    found = tree.read("a/x")
    assert found is not None
    assert found.data == b"first"


def test_what_is_not_there_is_none(tree: Tree) -> None:
    assert tree.read("a") is None
    assert tree.read("a/b/c") is None
    assert tree.names("a/b") == frozenset()


def test_other_failures_of_the_disk_are_passed_on(tree: Tree) -> None:
    with pytest.raises(OSError, match="too long"):
        tree.read("a" * 300)
    with pytest.raises(OSError, match="too long"):
        tree.names("a" * 300)


def test_missing_folders_are_listed_and_made_from_the_outside_in(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert tree.missing_folders(("a",)) == []
    assert tree.missing_folders(("x", "y")) == [("x",), ("x", "y")]
    assert tree.missing_folders(("a", "b", "c")) == [("a", "b"), ("a", "b", "c")]
    for parts in tree.missing_folders(("a", "b", "c")):
        tree.make_folder(parts)
    tree.make_folder(("a", "b"))
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_only_an_empty_folder_is_removed(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").touch()
    tree.remove_folder_if_empty(("a",))
    assert (tmp_path / "a" / "x").exists()
    (tmp_path / "a" / "x").unlink()
    assert tree.names("a") == frozenset()
    tree.remove_folder_if_empty(("a",))
    assert not (tmp_path / "a").exists()
    with pytest.raises(FileNotFoundError):
        tree.remove_folder_if_empty(("a",))


def test_few_folders_stay_open_however_many_are_read(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    for number in range(300):
        (tmp_path / "log" / str(number)).mkdir()
        (tmp_path / "log" / str(number) / "x").write_text(str(number))
    written = tree.folder(("log", "7"))
    before = len(list(Path("/dev/fd").iterdir()))
    for number in range(300):
        assert tree.names(f"log/{number}") == {"x"}
        found = tree.read(f"log/{number}/x")
        assert found is not None
        assert found.data == str(number).encode()
    assert len(list(Path("/dev/fd").iterdir())) - before < 100
    # A folder that the caller may write to is not closed.
    assert list(tree.storage.names(written)) == ["x"]
