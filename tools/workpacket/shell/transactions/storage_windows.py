"""The disk on Windows: folders by path instead of by descriptor, and no way to flush a folder.

The guarantees are weaker there, as `doctor` reports: a power failure may lose the last transaction (but never half of a
recovered one), and a link created between check and use would be followed.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Final

from workpacket.shell.transactions.storage import Contents, Folder, NotRegular

# A virus scanner or an indexer may keep a file open for a moment; replacing the file fails until then.
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class WindowsStorage:
    def open_top(self, path: Path) -> Folder:
        if not path.is_dir():
            raise NotADirectoryError(str(path))
        return Folder(-1, str(path))

    def open_folder(self, parent: Folder, name: str) -> Folder:
        path = Path(parent.path, name)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or _is_link(found):
            raise NotADirectoryError(str(path))
        return Folder(-1, str(path))

    def close_folder(self, folder: Folder) -> None:
        pass

    def make_folder(self, parent: Folder, name: str) -> None:
        Path(parent.path, name).mkdir()

    def remove_folder(self, parent: Folder, name: str) -> None:
        Path(parent.path, name).rmdir()

    def sync_folder(self, folder: Folder) -> None:
        pass

    def names(self, folder: Folder) -> list[str]:
        return [entry.name for entry in Path(folder.path).iterdir()]

    def read(self, folder: Folder, name: str) -> Contents:
        path = Path(folder.path, name)
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or _is_link(found):
            raise NotRegular(str(path))
        return Contents(path.read_bytes(), stat.S_IMODE(found.st_mode))

    def create(self, folder: Folder, name: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
        return os.open(Path(folder.path, name), flags, 0o666)

    def write(self, file: int, data: bytes) -> int:
        return os.write(file, data)

    def set_mode(self, file: int, mode: int) -> None:
        pass

    def sync(self, file: int) -> None:
        os.fsync(file)

    def close(self, file: int) -> None:
        os.close(file)

    def replace(self, folder: Folder, name: str, new_name: str) -> None:
        old, new = Path(folder.path, name), Path(folder.path, new_name)
        for pause in _PAUSES:
            try:
                old.replace(new)
            except PermissionError:
                time.sleep(pause)
            else:
                return
        old.replace(new)

    def remove(self, folder: Folder, name: str) -> None:
        Path(folder.path, name).unlink()


def _is_link(found: os.stat_result) -> bool:
    """Whether the path is a symbolic link or a junction; the attribute exists only on Windows."""
    reparse_point = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0x400)
    return bool(getattr(found, "st_file_attributes", 0) & reparse_point)
