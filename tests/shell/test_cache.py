"""An output is shown again only while everything that it rests on is the same, and not if that cannot be said."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workpacket.shell import cache
from workpacket.shell.cache import NO_CACHE, Cache, CachedOutput, RestsOn, describe, unchanged
from workpacket.shell.tree import look_at

FOLDER = "log"


def _files(root: Path) -> list[Path]:
    return sorted(path for path in (root / FOLDER).rglob("*") if path.is_file() and not path.is_symlink())


def _folders(root: Path) -> list[Path]:
    return [root / FOLDER, *sorted(path for path in (root / FOLDER).rglob("*") if path.is_dir())]


def _add(root: Path, chance: random.Random) -> None:
    (chance.choice(_folders(root)) / f"new-{chance.random()}").write_bytes(b"new")


def _add_folder(root: Path, chance: random.Random) -> None:
    (chance.choice(_folders(root)) / f"folder-{chance.random()}").mkdir()


def _remove(root: Path, chance: random.Random) -> None:
    chance.choice(_files(root)).unlink()


def _remove_folder(root: Path, chance: random.Random) -> None:
    shutil.rmtree(chance.choice(_folders(root)[1:]))


def _edit_in_place(root: Path, chance: random.Random) -> None:
    """With the same size, and the time of the last change set back: the shyest edit that can be made."""
    path = chance.choice(_files(root))
    before = path.stat()
    with path.open("r+b") as stream:
        stream.write(bytes([path.read_bytes()[0] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _put_another_in_its_place(root: Path, chance: random.Random) -> None:
    path = chance.choice(_files(root))
    before, folder_before = path.stat(), path.parent.stat()
    other = root / "aside"
    other.write_bytes(path.read_bytes()[::-1])
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    os.utime(path.parent, ns=(folder_before.st_atime_ns, folder_before.st_mtime_ns))


def _swap_two(root: Path, chance: random.Random) -> None:
    one, two = chance.sample(_files(root), 2)
    one.rename(root / "aside")
    two.rename(one)
    (root / "aside").rename(two)


def _lead_elsewhere(root: Path, chance: random.Random) -> None:
    folder = chance.choice(_folders(root)[1:])
    shutil.copytree(folder, root / f"elsewhere-{chance.random()}")
    folder.rename(root / f"moved-{chance.random()}")
    folder.symlink_to(root / "nowhere")


CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    _add, _add_folder, _remove, _remove_folder, _edit_in_place, _put_another_in_its_place, _swap_two, _lead_elsewhere,
)  # fmt: skip


def _lay_out(root: Path) -> None:
    for packet in range(6):
        folder = root / FOLDER / f"WP-1-P{packet}-v1"
        folder.mkdir(parents=True)
        for event in range(3):
            (folder / f"{event}.json").write_text(f'{{"{packet}": {event}}}')


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_a_change_is_seen_whatever_it_was(tmp_path: Path, change: Callable[[Path, random.Random], None]) -> None:
    _lay_out(tmp_path)
    chance = random.Random(7)
    for _ in range(3):
        described = describe(str(tmp_path), FOLDER)
        assert unchanged(str(tmp_path), FOLDER, described.text)
        time.sleep(0.01)  # more than a tick of the clock that a file system reads
        change(tmp_path, chance)
        assert not unchanged(str(tmp_path), FOLDER, described.text)
        assert describe(str(tmp_path), FOLDER).text != described.text


def test_looking_once_more_at_the_listing_is_the_way_where_times_promise_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_HAS_POSIX_TIMES", False)
    _lay_out(tmp_path)
    described = describe(str(tmp_path), FOLDER)
    assert unchanged(str(tmp_path), FOLDER, described.text)
    _add(tmp_path, random.Random(1))
    assert not unchanged(str(tmp_path), FOLDER, described.text)


def test_a_folder_that_is_not_there_stays_the_same_until_it_is(tmp_path: Path) -> None:
    described = describe(str(tmp_path), FOLDER)
    assert (described.text, described.newest) == ("", 0)
    assert unchanged(str(tmp_path), FOLDER, "")
    (tmp_path / FOLDER).mkdir()
    assert not unchanged(str(tmp_path), FOLDER, "")


def test_the_newest_change_is_that_of_a_folder_too(tmp_path: Path) -> None:
    _lay_out(tmp_path)
    (tmp_path / FOLDER / "WP-1-P0-v1" / "0.json").unlink()
    assert describe(str(tmp_path), FOLDER).newest == (tmp_path / FOLDER / "WP-1-P0-v1").stat().st_ctime_ns


def test_names_of_any_bytes_are_compared_and_never_taken_for_others(tmp_path: Path) -> None:
    _lay_out(tmp_path)
    for name in (b"a b", b"a\nb", b"a\tb", b"\xff"):
        (tmp_path / FOLDER / os.fsdecode(name)).touch()
    described = describe(str(tmp_path), FOLDER)
    described.text.encode()  # so that it can be stored
    # The one that is no UTF-8 cannot be found again by what was stored, so the folder counts as changed.
    assert not unchanged(str(tmp_path), FOLDER, described.text)
    (tmp_path / FOLDER / os.fsdecode(b"\xff")).unlink()
    assert unchanged(str(tmp_path), FOLDER, describe(str(tmp_path), FOLDER).text)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cache]:
    """As if all files had been at rest for long."""
    monkeypatch.setattr(cache, "RACY_NS", -(10**18))
    opened = Cache(str(tmp_path / "kept"), "version")
    yield opened
    opened.close()


def _output(
    kept: Cache, root: Path, deciding: Callable[[], tuple[str, ...] | None] = tuple, now: str = ""
) -> CachedOutput:
    return CachedOutput(kept, str(root), [look_at(str(root), "document.md")], ("check",), deciding, lambda: now)


ON_ALL = ("single", "log/")


def _rest(root: Path) -> None:
    _lay_out(root)
    (root / "document.md").write_text("text")
    (root / "single").write_text("text")


def test_an_output_is_given_back_as_it_was(tmp_path: Path, opened: Cache) -> None:
    _rest(tmp_path)
    text = "\0\n3 4\n\0\0 café"
    _output(opened, tmp_path).keep(1, text, RestsOn(ON_ALL))
    assert _output(opened, tmp_path).recall() == (1, text)


@pytest.mark.parametrize("path", ["document.md", "single", "log/new"])
def test_an_output_ends_with_any_file_that_it_rests_on(tmp_path: Path, opened: Cache, path: str) -> None:
    _rest(tmp_path)
    _output(opened, tmp_path).keep(0, "text", RestsOn(ON_ALL))
    (tmp_path / path).write_text("another")
    assert _output(opened, tmp_path).recall() is None


@pytest.mark.parametrize(
    "rests_on",
    [RestsOn(clock=True), RestsOn(unnamed=True), RestsOn() | RestsOn(clock=True), RestsOn(unnamed=True) | RestsOn()],
)
def test_what_asked_the_clock_or_what_no_key_names_is_not_kept(
    tmp_path: Path, opened: Cache, rests_on: RestsOn
) -> None:
    _rest(tmp_path)
    _output(opened, tmp_path).keep(0, "text", rests_on)
    assert _output(opened, tmp_path).recall() is None


@pytest.mark.parametrize(
    ("now", "known"),
    [("2026-01-02T00:00:00Z", True), ("2026-01-03T00:00:00Z", False), ("2026-01-01T00:00:00Z", False)],
    ids=["in between", "from the end on", "on a clock that was set back"],
)
def test_what_time_will_change_is_given_back_until_then(tmp_path: Path, opened: Cache, now: str, known: bool) -> None:
    _rest(tmp_path)
    rests_on = RestsOn(until="2026-01-04T00:00:00Z") | RestsOn() | RestsOn(until="2026-01-03T00:00:00Z")
    _output(opened, tmp_path, now="2026-01-01T12:00:00Z").keep(0, "text", rests_on)
    assert _output(opened, tmp_path, now=now).recall() == ((0, "text") if known else None)


def test_what_rests_on_commits_is_kept_for_these_only(tmp_path: Path, opened: Cache) -> None:
    _rest(tmp_path)
    _output(opened, tmp_path, lambda: ("base",)).keep(0, "text", RestsOn())
    assert _output(opened, tmp_path, lambda: ("base",)).recall() == (0, "text")
    assert _output(opened, tmp_path, lambda: ("other",)).recall() is None
    assert _output(opened, tmp_path, lambda: None).recall() is None


@pytest.mark.parametrize("answers", [[("base",), ("other",)], [None, None]])
def test_nothing_is_kept_when_what_decides_changed_meanwhile_or_cannot_be_told(
    tmp_path: Path, opened: Cache, answers: list[tuple[str, ...] | None]
) -> None:
    _rest(tmp_path)
    each = iter(answers)
    _output(opened, tmp_path, lambda: next(each)).keep(0, "text", RestsOn())
    assert opened.is_empty("output")


def test_without_a_folder_nothing_is_kept() -> None:
    NO_CACHE.keep("sound", [("key", "")])
    assert (NO_CACHE.is_open, NO_CACHE.recall("sound", ["key"])) == (False, {})


def test_what_was_found_in_bytes_that_no_file_holds_is_forgotten_once_there_is_too_much_of_it(opened: Cache) -> None:
    held, gone = "a" * 64, "b" * 64
    opened.keep("file", [("path", f"{held} state")])
    opened.keep("examined", [(f"{held} path", "[]\n"), (f"{gone} path", "[]\n")])
    opened.forget_unused(most=2)
    assert len(opened.recall("examined", [f"{held} path", f"{gone} path"])) == 2
    opened.forget_unused(most=1)
    assert list(opened.recall("examined", [f"{held} path", f"{gone} path"])) == [f"{held} path"]


def test_the_files_of_two_work_trees_are_known_at_the_same_time(tmp_path: Path) -> None:
    trees = {name: Cache(str(tmp_path), "version", tree=name) for name in ("", "one", "one\x02two")}
    for name, opened in trees.items():
        opened.keep("file", [(f"path{number}", f"{name}{number}") for number in range(cache.MANY + 1)])
        opened.keep("examined", [("digest", "findings")])
    for keys in (["path3"], [f"path{number}" for number in range(cache.MANY + 1)]):
        for name, opened in trees.items():
            found = opened.recall("file", keys)
            assert found == {key: key.replace("path", name) for key in keys}
            assert opened.recall("examined", ["digest"]) == {"digest": "findings"}
    assert sorted(trees["one"].of_all_trees("file")) == sorted(trees[""].of_all_trees("file"))
    assert len([*trees["one"].of_all_trees("file")]) == len(trees) * (cache.MANY + 1)
    for opened in trees.values():
        opened.close()
