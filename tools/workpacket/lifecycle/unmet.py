"""What a gate answers: every condition that is not met, each with the command that supplies it."""

from __future__ import annotations

from workpacket.value import Value


class Unmet(Value):
    """One condition. `code` is a reason code of the family `gate`, `command` what to type to meet it."""

    code: str
    message: str
    command: str = ""
    path: str = ""
    line: int = 0
