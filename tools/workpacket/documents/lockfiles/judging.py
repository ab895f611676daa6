"""What of a comparison nobody gave leave for. Strict: without leave, no direct dependency may change in any way."""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.documents.lockfiles.comparison import Change, Compared
from workpacket.documents.lockfiles.dependencies import python_name
from workpacket.documents.lockfiles.leave import Leave
from workpacket.model.canonical import Json
from workpacket.value import Value


class Violation(Value):
    path: str
    line: int
    name: str
    what: str
    message: str

    def as_json(self) -> dict[str, Json]:
        return {"path": self.path, "line": self.line, "name": self.name, "what": self.what, "message": self.message}


class Verdict(Value):
    """The judgement on one file."""

    file: Compared
    allowed: tuple[str, ...]
    violations: tuple[Violation, ...]
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


def _row(change: Change) -> dict[str, Json]:
    return {"name": change.name, "old": change.old, "new": change.new}


def judge(files: Sequence[Compared], leave: Leave) -> tuple[Verdict, ...]:
    return tuple(_judged(file, leave) for file in files)


def _judged(file: Compared, leave: Leave) -> Verdict:
    if file.ecosystem == "pypi":  # its names have one spelling here, and people write them in several
        leave = Leave(tuple(python_name(pattern) for pattern in leave.patterns), leave.threshold)
    covered = [change.name for change in file.direct if leave.covers(change.name)]
    violations = [
        Violation(file.path, change.line, change.name, change.kind, _sentence(change))
        for change in file.direct
        if not leave.covers(change.name)
    ]
    violations += [Violation(file.path, one.line, one.name, one.kind, one.message) for one in file.suspicions]
    many = file.new_packages > leave.threshold
    warning = f"{file.new_packages} new packages, more than {leave.threshold}" if many else ""
    return Verdict(file, tuple(covered), tuple(violations), warning)


def _sentence(change: Change) -> str:
    if change.kind == "added":
        return f"{change.name} {change.new} was added".replace("  ", " ")
    if change.kind == "removed":
        return f"{change.name} was removed"
    return f"{change.name} was updated: {change.old or 'any version'} -> {change.new or 'any version'}"
