"""The few exceptions of the package.

A fault *in a document* is never an exception: it is a `Problem` value, because people want to see all of them at once.
These exceptions mean that the command could not do what was requested: they end it, and their code determines the exit
status.
"""

from __future__ import annotations

from workpacket.problem import NOWHERE, Location, Problem


class WorkpacketError(Exception):
    """A command cannot continue. `code` is a reason code of the catalogue, from which the exit status follows.

    It has one `problem`, and is created from one (`raise WorkpacketError.of(problem)`) or from its parts.
    """

    def __init__(self, code: str, message: str, *, hint: str = "", path: str = "") -> None:
        super().__init__(message)
        self.problem = Problem(code, message, Location(path) if path else NOWHERE, hint)

    @classmethod
    def of(cls, problem: Problem) -> WorkpacketError:
        error = WorkpacketError(problem.code, problem.message)
        error.problem = problem
        return error

    def __reduce__(self) -> tuple[object, ...]:
        """Pickling keeps the whole problem, not only its message, for another process."""
        return WorkpacketError.of, (self.problem,)

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
