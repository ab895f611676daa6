"""Why something was not accepted, as a value.

Inside one reader a fault travels as the exception `Refused`, since behind a wrong length or a wrong key there is
nothing left to read. Every public function of this layer catches it and returns the value.
"""

from __future__ import annotations

from workpacket.value import Value


class Refusal(Value):
    """`code` names a reason of the approval table; `path` the file it is about, `line` (from 1) the place if known."""

    code: str
    message: str
    path: str = ""
    line: int = 0


class RefusalError(Exception):
    """Carries a refusal out of nested reading."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def at(self, path: str = "", line: int = 0) -> Refusal:
        return Refusal(self.code, self.message, path, line)
