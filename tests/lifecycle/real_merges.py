"""Worlds committed to a real repository and merged by git itself, without a work tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

from git.scratch import git
from lifecycle.world import World


class Merges:
    """A bare-bones repository in which each world is a commit."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        git(folder, "init", "--quiet", "--initial-branch=main")

    def commit(self, world: World, *parents: str) -> str:
        """The id of a commit with these files."""
        rows = [b"commit refs/heads/scratch\n", b"committer Ann <ann@example.org> 1767225600 +0000\ndata 0\n"]
        rows += [f"from {parent}\n".encode() for parent in parents[:1]]
        rows += [b"deleteall\n"]
        for path, data in sorted(world.files.items()):
            rows.append(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
        self._run("fast-import", "--quiet", "--force", stdin=b"".join(rows))
        return self._run("rev-parse", "refs/heads/scratch").decode().strip()

    def merge(self, ours: str, theirs: str) -> tuple[dict[str, bytes], list[str]]:
        """The files below the log that git's merge has, and every path on which it found a conflict."""
        done = subprocess.run(
            ["git", "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs],
            cwd=self._folder, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode in {0, 1}, done
        tree, *conflicts = done.stdout.decode().split("\0")[:-1]
        listed = self._run("ls-tree", "-r", "-z", tree, ".GOV/log").decode().split("\0")[:-1]
        names = {row.partition("\t")[2]: row.split(" ")[2].partition("\t")[0] for row in listed}
        output = self._run("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names.values()).encode())
        files, position = {}, 0
        for path in names:
            end = output.index(b"\n", position)
            size = int(output[position:end].rpartition(b" ")[2])
            files[path] = output[end + 1 : end + 1 + size]
            position = end + 2 + size
        return files, conflicts

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return subprocess.run(
            ["git", "-c", "core.fsync=none", *arguments], cwd=self._folder, input=stdin, capture_output=True, check=True
        ).stdout
