"""Which dependencies may change. Light: every command that reads a policy imports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workpacket.documents.lockfiles.comparison import Compared, DependencyChange
from workpacket.documents.lockfiles.dependencies import python_name
from workpacket.model.canonical import Json
from workpacket.model.ids import matches
from workpacket.value import Value

# More new packages than this in one file are worth a look, whoever allowed what brought them.
NEW_PACKAGES: Final = 50


class Leave(Value):
    """Which direct dependencies may change (`*` stands for any characters), and how many new packages are many."""

    patterns: tuple[str, ...] = ()
    threshold: int = NEW_PACKAGES

    def covers(self, name: str) -> bool:
        return any(matches(pattern, name) for pattern in self.patterns)


class DependencyViolation(Value):
    path: str
    line: int
    name: str
    what: str
    message: str

    def as_json(self) -> dict[str, Json]:
        return {"path": self.path, "line": self.line, "name": self.name, "what": self.what, "message": self.message}


class FileVerdict(Value):
    """The judgement on one file."""

    file: Compared
    allowed: tuple[str, ...]
    violations: tuple[DependencyViolation, ...]
    warning: str

    def as_json(self) -> dict[str, Json]:
        """The row of this file in the event `lockfile_changed`."""
        direct: dict[str, Json] = {
            kind: [_row(change) for change in self.file.direct if change.kind == kind]
            for kind in ("added", "removed", "updated")
        }
        added, removed = self.file.lines
        return {
            "path": self.file.path, "format": self.file.format, "direct": direct,
            "transitive": dict(self.file.transitive), "diffstat": {"added": added, "removed": removed},
            "new_packages": self.file.new_packages, "allowed": list(self.allowed),
            "violations": [violation.as_json() for violation in self.violations],
        }  # fmt: skip


def _row(change: DependencyChange) -> dict[str, Json]:
    return {"name": change.name, "old": change.old, "new": change.new}


def judge(files: Sequence[Compared], leave: Leave) -> tuple[FileVerdict, ...]:
    return tuple(_judged(file, leave) for file in files)


def _judged(file: Compared, leave: Leave) -> FileVerdict:
    if file.ecosystem == "pypi":  # its names have one spelling here, and people write them in several
        leave = Leave(tuple(python_name(pattern) for pattern in leave.patterns), leave.threshold)
    covered = [change.name for change in file.direct if leave.covers(change.name)]
    violations = [
        DependencyViolation(file.path, change.line, change.name, change.kind, _sentence(change))
        for change in file.direct
        if not leave.covers(change.name)
    ]
    violations += [DependencyViolation(file.path, one.line, one.name, one.kind, one.message) for one in file.suspicions]
    many = file.new_packages > leave.threshold
    warning = f"{file.new_packages} new packages, more than {leave.threshold}" if many else ""
    return FileVerdict(file, tuple(covered), tuple(violations), warning)


def _sentence(change: DependencyChange) -> str:
    if change.kind == "added":
        return f"{change.name} {change.new} was added".replace("  ", " ")
    if change.kind == "removed":
        return f"{change.name} was removed"
    return f"{change.name} was updated: {change.old or 'any version'} -> {change.new or 'any version'}"
