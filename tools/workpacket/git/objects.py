"""Read what was committed: trees and files, many at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from workpacket.errors import WorkpacketError
from workpacket.git.repository import FULL_ID, Repository
from workpacket.git.run import FETCH_ALL, run_git
from workpacket.value import Value


class TreeEntry(Value):
    """A file of a committed tree. The mode distinguishes links (120000) and submodules (160000) from files."""

    path: str
    mode: str
    object_id: str

    @property
    def is_file(self) -> bool:
        return self.mode in ("100644", "100755")


def list_tree(repository: Repository, commit: str, *folders: str) -> list[TreeEntry]:
    """Return all entries of the tree of `commit`, or those at or below `folders`, descending into folders."""
    # No "--" before the folders: after the end of options, ls-tree would treat it as a folder.
    question = ("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit, *folders)
    answer = repository.ask_once(*question) if FULL_ID.match(commit) else run_git(repository.root, *question)
    entries = []
    for row in answer.text.split("\0")[:-1]:
        described, _, path = row.partition("\t")
        mode, _kind, object_id = described.split(" ")
        entries.append(TreeEntry(path, mode, object_id))
    return entries


def tree_names(repository: Repository, commit: str) -> list[str]:
    """Return the names at the top of the tree of `commit`, of files and folders."""
    answer = run_git(repository.root, "ls-tree", "-z", "--name-only", "--full-tree", "--end-of-options", commit)
    return answer.text.split("\0")[:-1]


def read_objects(repository: Repository, names: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of objects by name (`<id>` or `<commit>:<path>`), read by one process. Missing ones and
    folders are left out.
    """
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if "\n" in name:
            raise WorkpacketError("unknown_revision", f"{name!r} is not a valid object name")
    if not wanted:
        return {}
    request = "".join(f"{name}\n" for name in wanted).encode("utf-8", "surrogateescape")
    output = run_git(repository.root, "cat-file", "--batch", stdin=request).output
    found: dict[str, bytes] = {}
    position = 0
    for name in wanted:
        end = output.index(b"\n", position)
        header = output[position:end].decode("utf-8", "surrogateescape")
        position = end + 1
        if header == f"{name} missing":
            continue
        if header == f"{name} ambiguous":
            raise WorkpacketError("unknown_revision", f"{name!r} is ambiguous: it matches several objects")
        _, kind, size = header.rsplit(" ", 2)
        if kind != "tree":
            found[name] = output[position : position + int(size)]
        position += int(size) + 1
    return found


def object_names(repository: Repository, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of objects by name (`<id>:<path>`), read by one process. Missing ones are left out."""
    wanted = [name for name in dict.fromkeys(names) if "\n" not in name]
    if not wanted:
        return {}
    request = "".join(f"{name}\n" for name in wanted).encode("utf-8", "surrogateescape")
    answer = run_git(repository.root, "cat-file", "--batch-check=%(objectname)", stdin=request)
    rows = zip(wanted, answer.text.splitlines(), strict=True)
    return {name: row for name, row in rows if not row.endswith((" missing", " ambiguous"))}


def read_file_at(repository: Repository, commit: str, path: str) -> bytes | None:
    """Return the committed bytes of a file; None if it does not exist."""
    name = f"{commit}:{path}"
    return read_objects(repository, [name]).get(name)


def read_blobs(repository: Repository, identities: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of files in a tree: an object missing from this clone is an error, not a missing file."""
    wanted = list(dict.fromkeys(identities))
    found = read_objects(repository, wanted)
    for identity in wanted:
        if identity not in found:
            raise missing_object(identity)
    return found


def missing_object(identity: str, name: str = "") -> WorkpacketError:
    return WorkpacketError(
        "object_missing",
        f"the object {identity}{f' ({name})' if name else ''} is not in this clone",
        hint=FETCH_ALL,
    )


def blob_id(data: bytes, like: str) -> str:
    """Return the id that git gives these bytes as a file, with the same hash algorithm as the id `like`."""
    header = b"blob %d\0" % len(data)
    if len(like) == 64:
        return hashlib.sha256(header + data).hexdigest()
    return hashlib.sha1(header + data, usedforsecurity=False).hexdigest()
