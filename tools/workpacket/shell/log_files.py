"""The log and the approvals of the whole repository: as they lie here, and as a revision holds them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from workpacket.errors import WorkpacketError
from workpacket.git.objects import list_tree
from workpacket.git.repository import Repository
from workpacket.ledger.checkpoints import CHECKPOINTS_FOLDER
from workpacket.ledger.verify import APPEND_ONLY_FOLDERS
from workpacket.model.events import LOG_FOLDER
from workpacket.shell.transactions.journal import TEMPORARY_PREFIX
from workpacket.shell.tree import read_bytes

_LARGEST = 512 * 1024

# Stand among the files that an output rests on, for everything below the log and the checkpoints.
LOG_STATE = f"{LOG_FOLDER}/"
CHECKPOINTS_STATE = f"{CHECKPOINTS_FOLDER}/"


def log_files(root: str) -> dict[str, bytes]:
    """Every file below the log, by path."""
    return {path: read_logged(root, path) for path in paths_below(root, LOG_FOLDER)}


def append_only_files(root: str) -> dict[str, bytes]:
    """Every file that may never change."""
    paths = [path for folder in APPEND_ONLY_FOLDERS for path in paths_below(root, folder)]
    return {path: read_logged(root, path) for path in paths}


def read_logged(root: str, path: str) -> bytes:
    """One file that may never change; WorkpacketError where it cannot be read."""
    try:
        return read_bytes(root, path, _LARGEST)
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "cannot be read", path=path) from error


def paths_below(root: str, folder: str) -> Iterator[str]:
    for current, folders, names in os.walk(os.path.join(root, folder)):
        folders.sort()
        place = os.path.relpath(current, root).replace(os.sep, "/")
        yield from (f"{place}/{name}" for name in sorted(names) if not name.startswith(TEMPORARY_PREFIX))


def committed_ids(repository: Repository, commit: str) -> dict[str, str]:
    """The object ids of the append-only files as a commit holds them."""
    entries = [entry for folder in APPEND_ONLY_FOLDERS for entry in list_tree(repository, commit, folder)]
    return {entry.path: entry.object_id for entry in entries}


def object_ids(files: dict[str, bytes], *, sha256: bool) -> dict[str, str]:
    """What git would call these files, so that no bytes need to be read from the base."""
    import hashlib

    made = {}
    for path, data in files.items():
        header = f"blob {len(data)}\0".encode()
        digest = hashlib.sha256(header + data) if sha256 else hashlib.sha1(header + data, usedforsecurity=False)
        made[path] = digest.hexdigest()
    return made
