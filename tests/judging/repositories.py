"""Repositories of two commits, whatever their trees hold: made by one process, without a work tree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from git.scratch import make_repository
from workpacket.git.repository import Repository

LINK, SUBMODULE, PROGRAM = "120000", "160000", "100755"
# A path with what it holds; or with a mode and what it holds.
Tree = Mapping[str, str | bytes | tuple[str, str]]


def committed(folder: Path, *trees: Tree) -> Repository:
    """A repository with a commit for each tree, on main, named `one`, `two` and so on."""
    repository = make_repository(folder)
    stream = b""
    for number, tree in enumerate(trees, 1):
        stream += b"commit refs/heads/main\nmark :%d\ncommitter A <a@b> %d +0000\ndata 1\nx\ndeleteall\n" % (
            number,
            number,
        )
        stream += b"".join(_line(path, said) for path, said in tree.items())
    stream += b"".join(b"reset refs/tags/%s\nfrom :%d\n\n" % (name.encode(), number + 1)
                       for number, name in enumerate(("one", "two", "three")[: len(trees)]))  # fmt: skip
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream, check=True)
    return repository


def _line(path: str, said: str | bytes | tuple[str, str]) -> bytes:
    mode, data = said if isinstance(said, tuple) else ("100644", said)
    place = b'"%s"' % path.encode() if " " in path else path.encode()
    if mode == SUBMODULE:
        return b"M 160000 %s %s\n" % (str(data).encode(), place)
    content = data.encode() if isinstance(data, str) else data
    return b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), place, len(content), content)


def laid_out(folder: Path, tree: Tree) -> None:
    """The files of a tree that are files, in the work tree."""
    for path, said in tree.items():
        mode, data = said if isinstance(said, tuple) else ("100644", said)
        if mode in {"100644", PROGRAM}:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(os.fsencode(data))


class Written:
    """A repository whose commits are written one after the other, each upon any others, by one process."""

    def __init__(self, folder: Path) -> None:
        self.repository = make_repository(folder)
        self._process = subprocess.Popen(
            ["git", "fast-import", "--quiet"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._ids: dict[str, int] = {}

    def commit(self, tree: Tree, *parents: str) -> str:
        """The id of a commit that holds the tree; commits without parents begin a history."""
        mark = len(self._ids) + 1
        lines = [b"commit refs/tags/c%d\nmark :%d\ncommitter A <a@b> %d +0000\ndata 1\nx\n" % (mark, mark, mark)]
        for word, parent in zip((b"from", b"merge", b"merge"), parents, strict=False):
            lines.append(b"%s :%d\n" % (word, self._ids[parent]))
        lines += [b"deleteall\n", *(_line(path, said) for path, said in tree.items()), b"\nget-mark :%d\n" % mark]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"".join(lines))
        self._process.stdin.flush()
        identity = self._process.stdout.readline().decode().strip()
        self._ids[identity] = mark
        return identity

    def stored(self) -> Repository:
        """The repository with all commits so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"checkpoint\nprogress stored\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"progress stored\n"
        return self.repository

    def close(self) -> None:
        self._process.communicate()
