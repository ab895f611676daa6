"""What a merge that waits for people still waits for, among governed files."""

from __future__ import annotations

from workpacket.git.changes import status
from workpacket.git.operations import operation_in_progress
from workpacket.git.repository import Repository
from workpacket.shell.tree import read_bytes
from workpacket.text.limits import REGISTER
from workpacket.value import Value

_MARK = b"<<<<<<< "


class Unmerged(Value):
    """`operation` is what git is in the middle of. Files that hold no mark of a conflict any more are `settled`."""

    operation: str
    settled: tuple[str, ...]
    contradicting: tuple[str, ...]

    @property
    def then(self) -> str:
        """What is to be typed next."""
        if self.contradicting:
            return f"settle by hand what is left in {', '.join(self.contradicting)}"
        added = f"git add {' '.join(self.settled)} && " if self.settled else ""
        return f"{added}git {self.operation} --continue"


def unmerged(repository: Repository) -> Unmerged | None:
    """None unless git is in the middle of something."""
    operation = operation_in_progress(repository)
    if not operation:
        return None
    waiting = sorted({entry.path for entry in status(repository, ".GOV") if entry.unmerged})
    marked = {path for path in waiting if _is_marked(repository, path)}
    return Unmerged(operation, tuple(path for path in waiting if path not in marked), tuple(sorted(marked)))


def _is_marked(repository: Repository, path: str) -> bool:
    try:
        return _MARK in read_bytes(str(repository.root), path, REGISTER.size)
    except FileNotFoundError:
        return False  # deleted on one side: that the file is gone is an answer
