"""A folder that is described is the same only as long as nothing below it has changed, however it was changed."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workpacket.shell import folder_state
from workpacket.shell.folder_state import describe, unchanged

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
    monkeypatch.setattr(folder_state, "_HAS_POSIX_TIMES", False)
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
