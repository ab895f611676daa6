"""Text on a terminal: its width, line breaks and colors, and the message of a failed command. The caller queries the
terminal and the environment; renderers only read this value.

The values used by every `check` (`Style`, `Excerpt`, `CheckOutcome`) are named tuples: creating such a class takes a
seventh of the time of creating a frozen dataclass, and that time is part of the start-up of the command.

This module also measures how many columns text takes, and breaks it into lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple
from unicodedata import category, east_asian_width

from workpacket.errors import WorkpacketError
from workpacket.problem import Problem, by_remedy
from workpacket.report.escape import escape

_VARIATION_16 = "\ufe0f"  # requests the emoji form, which is two columns wide


def text_width(text: str) -> int:
    """Return the columns taken by a sanitized `text`."""
    if text.isascii():
        return len(text)
    return sum(character_widths(text))


def character_widths(text: str) -> Iterator[int]:
    """Yield the columns of each character: 0 for combining characters, 2 for East Asian wide ones and emoji."""
    before = 0
    for character in text:
        if character == _VARIATION_16:
            width = 1 if before == 1 else 0
        else:
            width = 1 if character.isascii() else _unicode_width(character)
        before = width
        yield width


def _unicode_width(character: str) -> int:
    if category(character) in {"Mn", "Me"} or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if east_asian_width(character) in {"W", "F"} else 1


def wrap(text: str, room: int, first_room: int | None = None) -> list[str]:
    """Break `text` into lines of at most `room` columns, at spaces, or inside a word that is longer than a line.

    `first_room` is the room on the first line, if that is smaller; the line stays empty if no word fits.
    """
    limit = room if first_room is None else first_room
    lines: list[str] = []
    line, taken = "", 0
    for word in text.split(" "):
        rest, width = word, text_width(word)
        while taken + bool(taken) + width > limit:
            if taken or width <= room:
                lines.append(line)
            else:
                head = _fitting(rest, limit)
                lines.append(head)
                rest = rest[len(head) :]
                width = text_width(rest)
            line, taken, limit = "", 0, room
        line, taken = (f"{line} {rest}", taken + 1 + width) if taken else (rest, width)
    return [*lines, line]


def _fitting(word: str, room: int) -> str:
    """Return as much of `word` as fits into `room` columns, at least one symbol with its combining characters."""
    used = 0
    for index, width in enumerate(character_widths(word)):
        used += width
        if used > room and index:
            together = word[index] == _VARIATION_16 and index > 1
            return word[: index - together]
    return word


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
        """Return the width for layout, which has a minimum, because narrower text is unreadable."""
        return None if self.width is None else max(self.width, NARROWEST)

    def paint(self, text: str, role: Role) -> str:
        """Return `text`, which must be sanitized already, in the color of its role."""
        return f"\x1b[{_SGR[role]}m{text}\x1b[0m" if self.colour and text else text


PLAIN = Style()


def render_failure(error: WorkpacketError, style: Style = PLAIN) -> str:
    """Return `error: what (code)` and a line that helps. Neither is ever wrapped, because people search for error
    messages and paste them.
    """
    where = f"{escape(error.path)}: " if error.path else ""
    lines = [f"{style.paint('error:', 'error')} {where}{escape(error.message)} ({escape(error.code)})"]
    if error.hint:
        lines.append(f"{style.paint('help:', 'help')} {escape(error.hint)}")
    return "\n".join(lines) + "\n"


def unmet_lines(unmet: Sequence[Problem], style: Style) -> list[str]:
    """Return the conditions, with each command that supplies some of them, which is one line to copy, however long it
    is.
    """
    lines = []
    for number, group in enumerate(by_remedy(unmet), 1):
        first = f"  {number}. "
        lines += [_unmet_line(one, first if one is group[0] else "", len(first), style) for one in group]
        if group[0].hint:
            lines.append(f"{'':{len(first)}}{style.paint(f'-> {escape(group[0].hint)}', 'help')}\n")
    return lines


def _unmet_line(one: Problem, number: str, indent: int, style: Style) -> str:
    place = f" [{escape(one.path)}{f':{one.line}' if one.line else ''}]" if one.path else ""
    room = style.columns and style.columns - indent
    text = f"{escape(one.message)}{place} ({one.code})"
    told = "\n".join(f"{'':{indent}}{line}" for line in (wrap(text, room) if room else [text]))
    before, code, after = told.rpartition(one.code)
    return f"{number or ' ' * indent}{before.lstrip()}{style.paint(code, 'code')}{after}\n"
