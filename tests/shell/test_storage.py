"""One contract for every disk: the real one, the one for Windows (which runs anywhere), the simulated one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shell.simulated_disk import SimulatedDisk
from workpacket.shell.transactions.storage import (
    Folder,
    NotRegular,
    PosixStorage,
    Storage,
    WindowsStorage,
    platform_storage,
)


@pytest.fixture(params=[PosixStorage, WindowsStorage, SimulatedDisk])
def disk(request: pytest.FixtureRequest) -> Storage:
    made: Storage = request.param()
    return made


@pytest.fixture
def top(disk: Storage, tmp_path: Path) -> Folder:
    return disk.open_top(tmp_path)


def put(disk: Storage, folder: Folder, name: str, data: bytes) -> None:
    file = disk.create(folder, name)
    assert disk.write(file, data) == len(data)
    disk.set_mode(file, 0o640)
    disk.sync(file)
    disk.close(file)


def test_a_file_is_written_once_and_read_back(disk: Storage, top: Folder) -> None:
    put(disk, top, "a", b"one")
    assert disk.read(top, "a").data == b"one"
    assert disk.names(top) == ["a"]
    with pytest.raises(FileExistsError):
        disk.create(top, "a")
    with pytest.raises(FileNotFoundError):
        disk.read(top, "b")


def test_replacing_takes_the_place_of_the_file_and_the_old_name_is_gone(disk: Storage, top: Folder) -> None:
    put(disk, top, "a", b"one")
    put(disk, top, "b", b"two")
    disk.replace(top, "b", "a")
    disk.sync_folder(top)
    assert disk.names(top) == ["a"]
    assert disk.read(top, "a").data == b"two"
    with pytest.raises(FileNotFoundError):
        disk.replace(top, "b", "a")


def test_removing_removes(disk: Storage, top: Folder) -> None:
    put(disk, top, "a", b"")
    disk.remove(top, "a")
    assert disk.names(top) == []
    with pytest.raises(FileNotFoundError):
        disk.remove(top, "a")


def test_folders_are_made_opened_and_removed_when_empty(disk: Storage, top: Folder) -> None:
    disk.make_folder(top, "f")
    with pytest.raises(FileExistsError):
        disk.make_folder(top, "f")
    inner = disk.open_folder(top, "f")
    put(disk, inner, "a", b"")
    with pytest.raises(OSError, match="not empty"):
        disk.remove_folder(top, "f")
    disk.remove(inner, "a")
    disk.close_folder(inner)
    disk.remove_folder(top, "f")
    with pytest.raises(FileNotFoundError):
        disk.open_folder(top, "f")


def test_a_folder_is_no_file_and_a_file_no_folder(disk: Storage, top: Folder) -> None:
    disk.make_folder(top, "f")
    put(disk, top, "a", b"")
    with pytest.raises(NotRegular):
        disk.read(top, "f")
    with pytest.raises(NotADirectoryError):
        disk.open_folder(top, "a")


@pytest.mark.parametrize("real", [PosixStorage(), WindowsStorage()])
def test_links_and_pipes_are_neither_files_nor_folders(real: Storage, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"secret")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-file").symlink_to("file")
    (tmp_path / "to-folder").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    top = real.open_top(tmp_path)
    for name in ("to-file", "pipe"):
        with pytest.raises(OSError):
            real.read(top, name)
    with pytest.raises(OSError):
        real.open_folder(top, "to-folder")


@pytest.mark.parametrize("real", [PosixStorage(), WindowsStorage()])
def test_the_top_must_be_a_folder(real: Storage, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        real.open_top(tmp_path / "file")


def test_a_large_file_is_read_whole(tmp_path: Path) -> None:
    data = os.urandom(300_000)
    (tmp_path / "a").write_bytes(data)
    disk = PosixStorage()
    assert disk.read(disk.open_top(tmp_path), "a").data == data


def test_permission_bits_are_set_and_told(tmp_path: Path) -> None:
    disk = PosixStorage()
    top = disk.open_top(tmp_path)
    put(disk, top, "a", b"")
    assert disk.read(top, "a").mode == 0o640


def test_this_platform_has_a_disk() -> None:
    assert isinstance(platform_storage(), PosixStorage if os.name == "posix" else WindowsStorage)


def refusing(times: int) -> Callable[[Path, Path], Path]:
    real = Path.replace
    left = [times]

    def replace(old: Path, new: Path) -> Path:
        left[0] -= 1
        if left[0] >= 0:
            raise PermissionError(13, "held by a scanner")
        return real(old, new)

    return replace


def test_on_windows_a_file_held_for_a_moment_is_replaced_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    disk = WindowsStorage()
    top = disk.open_top(tmp_path)
    put(disk, top, "a", b"one")
    monkeypatch.setattr(Path, "replace", refusing(3))
    disk.replace(top, "a", "b")
    assert disk.names(top) == ["b"]
    assert pauses == [0.01, 0.02, 0.05]
    monkeypatch.setattr(Path, "replace", refusing(99))
    with pytest.raises(PermissionError):
        disk.replace(top, "b", "c")
