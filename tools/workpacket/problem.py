"""A problem: what is wrong, where, and what to do about it. The same type is used from parsing to reporting.

Readers, schemas, rules and gates return problems as values, because people want to see all of them at once. Exceptions
mean that a command could not do what was requested: they end it, and their code determines the exit status. A problem
is identified by its `code`, a reason code from the catalogue. The severity depends on the repository's settings, so it
is assigned last.
"""

from __future__ import annotations

from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal, TypeAlias  # takes 3 ms, and every command imports this module


class WorkpacketError(Exception):
    """A command cannot continue. `code` is a reason code from the catalogue; it determines the exit status.

    It is created from a problem (`raise WorkpacketError.of(problem)`) or from its parts. If a gate is closed,
    `problems` has one for each unmet condition.
    """

    def __init__(self, code: str, message: str, *, hint: str = "", path: str = "") -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = (Problem(code, message, Location(path) if path else NOWHERE, hint),)

    @classmethod
    def of(cls, problem: Problem, *others: Problem) -> WorkpacketError:
        error = WorkpacketError(problem.code, problem.message)
        error.problems = (problem, *others)
        return error

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the complete problems, not only a message, for another process."""
        return WorkpacketError.of, self.problems

    @property
    def problem(self) -> Problem:
        return self.problems[0]

    @property
    def code(self) -> str:
        return self.problem.code

    @property
    def message(self) -> str:
        return self.problem.message

    @property
    def hint(self) -> str:
        return self.problem.hint

    @property
    def path(self) -> str:
        return self.problem.path


Severity: TypeAlias = "Literal['error', 'warning', 'info']"
Confidence: TypeAlias = "Literal['certain', 'likely', 'possible']"


class Edit(Value):
    """Replace characters [start, end) of a file's text (see `text.source.Source`) with `text`."""

    start: int
    end: int
    text: str


class Fix(Value):
    """Edits to the problem's own file.

    If they are safe, the document keeps its meaning; otherwise someone should review them.
    """

    edits: tuple[Edit, ...]
    safe: bool
    title: str = ""


class Location(Value):
    """The location of a problem, as far as its finder knows it.

    `line` and `column` count from 1; 0 means the file as a whole. The end is the position after the last character. A
    reader sees one text and gives the offsets [start, end) in it; `Source.placed` adds the rest. A schema sees a value,
    and gives the `keys` that lead from its root to the faulty value; for a missing field, to the mapping that lacks it.
    """

    path: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    start: int = 0
    end: int = 0
    keys: tuple[str | int, ...] = ()

    @classmethod
    def span(cls, start: int, end: int) -> Location:
        return cls(start=start, end=end)


NOWHERE = Location()


class Problem(Value):
    """One problem. `code` names a reason. `hint` says what to do in this case, often as a command; the reason says it
    in general terms.
    """

    code: str
    message: str
    location: Location = NOWHERE
    hint: str = ""
    fix: Fix | None = None
    severity: Severity = "error"
    confidence: Confidence = "certain"

    @property
    def path(self) -> str:
        return self.location.path

    @property
    def line(self) -> int:
        return self.location.line

    @property
    def column(self) -> int:
        return self.location.column

    @property
    def start(self) -> int:
        return self.location.start

    @property
    def end(self) -> int:
        return self.location.end

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        return (self.path, self.line, self.column, self.code, self.message)

    def at(self, path: str, line: int = 0, column: int = 0) -> Problem:
        """Return the same problem at this location."""
        return replace(self, location=Location(path, line, column))

    def moved(self, by: int) -> Problem:
        """Return the same problem with offsets in the whole file; the part that was read begins at offset `by`."""
        return replace(self, location=Location.span(self.start + by, self.end + by), fix=None)

    def with_severity(self, severity: Severity) -> Problem:
        return replace(self, severity=severity)


def by_remedy(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Return the problems in groups that one action settles: those with the same hint, whatever document line the hint
    refers to. A missing signature is one condition for the person who reads it, even if several rules report it.
    """
    groups: dict[object, list[Problem]] = {}
    for one in problems:
        key = one.hint.replace(f"{one.path}:{one.line}", one.path) if one.hint else one
        groups.setdefault(key, []).append(one)
    return list(groups.values())
