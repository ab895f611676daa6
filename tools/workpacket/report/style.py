"""How the output is to look. Who calls asks the terminal and the environment; what renders only reads this value.

The values on the way of every `check` (`Style`, `Excerpt`, `CheckOutcome`) are named tuples: making the class takes a
seventh of the time of a frozen dataclass, and that time is part of the start-up of the command.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Role = Literal["error", "warning", "info", "path", "code", "gutter", "help", "good", "added", "removed"]

_SGR: dict[Role, str] = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "path": "1",
    "code": "1",
    "gutter": "34",
    "help": "36",
    "good": "32",
    "added": "32",
    "removed": "31",
}

NARROWEST = 30


class Style(NamedTuple):
    """`width` is the number of columns of the terminal; None (a pipe, a file) means that lines are never wrapped."""

    width: int | None = None
    colour: bool = False

    @property
    def columns(self) -> int | None:
        """The width to lay out for: below some measure wrapping helps nobody."""
        return None if self.width is None else max(self.width, NARROWEST)

    def paint(self, text: str, role: Role) -> str:
        """`text`, which must have passed the door, in the colour of its role."""
        return f"\x1b[{_SGR[role]}m{text}\x1b[0m" if self.colour and text else text


PLAIN = Style()
