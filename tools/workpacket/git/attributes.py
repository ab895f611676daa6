"""What the attributes of a commit do to paths, whatever the work tree and the user's own attributes say."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workpacket.git.objects import TreeEntry
from workpacket.git.repository import Repository
from workpacket.git.run import run_git

ATTRIBUTES = ".gitattributes"


def attributes_of(
    repository: Repository, files: Iterable[TreeEntry], paths: Sequence[str], names: Sequence[str]
) -> dict[str, Mapping[str, str]]:
    """For each path the value of each attribute, as these attribute files say; git reads them from an index."""
    rows = "".join(f"{file.mode} {file.object_id}\t{file.path}\0" for file in files)
    if not rows or not paths:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "index")
        listed = rows.encode("utf-8", "surrogateescape")
        run_git(repository.root, "update-index", "-z", "--index-info", stdin=listed, index=index)
        asked = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        answer = run_git(
            repository.root, "-c", f"core.attributesFile={os.devnull}", "check-attr", "--cached", "-z", "--stdin",
            *names, stdin=asked, index=index,
        )  # fmt: skip
    fields = answer.text.split("\0")[:-1]
    found: dict[str, dict[str, str]] = {}
    for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        found.setdefault(path, {})[name] = value
    return dict(found)
