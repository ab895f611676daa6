"""The files of the log and the approvals, in the work tree and in a revision."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from workpacket.errors import WorkpacketError
from workpacket.git.objects import list_tree, object_names
from workpacket.git.repository import Repository
from workpacket.git.revisions import default_branch, reference_tips
from workpacket.ledger.verify import APPEND_ONLY_FOLDERS
from workpacket.model.layout import CHECKPOINTS_FOLDER, LARGEST_WRITE_ONCE, LOG_FOLDER, TEMPORARY_PREFIX
from workpacket.shell import held
from workpacket.shell.tree import read_bytes

# In the list of files that an output depends on, these represent everything below the log and the checkpoints.
LOG_STATE = f"{LOG_FOLDER}/"
CHECKPOINTS_STATE = f"{CHECKPOINTS_FOLDER}/"


def log_files(root: str) -> dict[str, bytes]:
    """Return every file below the log, by path."""
    return {path: read_logged(root, path) for path in paths_below(root, LOG_FOLDER)}


def append_only_paths(root: str) -> list[str]:
    """Return every write-once file."""
    return [path for folder in APPEND_ONLY_FOLDERS for path in paths_below(root, folder)]


def logged_packets(root: str) -> list[str]:
    """Return the names directly below the log: the packets, and anything that does not belong there."""
    place = os.path.join(root, LOG_FOLDER)
    try:
        with os.scandir(place) as entries:
            # Nothing behind a link is read, here or below.
            return sorted(entry.name for entry in entries if not (entry.is_symlink() and entry.is_dir()))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise held.unreadable(root, error) from error


def read_logged(root: str, path: str) -> bytes:
    """Return one write-once file; raise WorkpacketError if it cannot be read."""
    try:
        return read_bytes(root, path, LARGEST_WRITE_ONCE)
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "cannot be read", path=path) from error


def paths_below(root: str, folder: str) -> Iterator[str]:
    """Yield every file below a folder except temporary ones; an unreadable folder is an error."""
    return (path for path in held.paths_below(root, folder) if not is_temporary(path))


def is_temporary(path: str) -> bool:
    """Whether a command is about to move the file into place; comparisons ignore it on both sides."""
    return path.rpartition("/")[2].startswith(TEMPORARY_PREFIX)


def committed_ids(repository: Repository, commit: str) -> dict[str, str]:
    """Return the object ids of the append-only files in a commit."""
    entries = (entry for folder in APPEND_ONLY_FOLDERS for entry in list_tree(repository, commit, folder))
    return {entry.path: entry.object_id for entry in entries if entry.is_file and not is_temporary(entry.path)}


def require_no_log_elsewhere(repository: Repository, names: Sequence[str]) -> None:
    """Raise WorkpacketError `log_elsewhere` if any branch, tag or other reference has a log of one of these packets."""
    if not names:
        return
    main = default_branch(repository)
    # If several branches have it, the main one is named.
    tips = reference_tips(repository)
    if main is not None:
        tips = {main.commit: main.ref, **{commit: ref for commit, ref in tips.items() if commit != main.commit}}
    folders = object_names(repository, (f"{commit}:{LOG_FOLDER}" for commit in tips))
    # Many branches have the same log: each state of it is looked up once.
    holders: dict[str, str] = {}
    for name, folder in folders.items():
        holders.setdefault(folder, tips[name.partition(":")[0]])
    found = object_names(repository, (f"{folder}:{name}" for folder in holders for name in names))
    if not found:
        return
    folder, _, packet = next(iter(found)).partition(":")
    branch = holders[folder].removeprefix("refs/heads/").removeprefix("refs/remotes/")
    others = len({place.partition(":")[2] for place in found}) - 1
    more = f" and of {others} more" if others else ""
    raise WorkpacketError(
        "log_elsewhere",
        f"{branch} has the log of {packet}{more}; a second first event would conflict with it permanently",
        hint=f"merge the log first: git merge {branch}",
        path=f"{LOG_FOLDER}/{packet}",
    )
