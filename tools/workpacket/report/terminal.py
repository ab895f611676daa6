r"""Text on a terminal: sanitized, broken into lines and colored, and the message of a failed command. The caller
queries the terminal and the environment; renderers only read this value.

`escape` keeps a document from controlling the terminal, CI log or spreadsheet that shows it:

    ESC             \u001b      any control, bidi, zero-width or invisible character
    CR, LF, tab     \r  \n  \t
    a byte that is not UTF-8 (kept by `Source` as a lone surrogate)     \xff
    [ of a logging command of GitHub Actions, Azure Pipelines or TeamCity   ##\u005b

A backslash in the text itself is not doubled: escaping makes text safe to display, but not reversible. Spreadsheets run
a cell that begins with one of a few characters as a formula, even if it is quoted. Such a cell gets an apostrophe in
front, which spreadsheets read as "this is text".

The values used by every `check` (`Style`, `Excerpt`, `CheckOutcome`) are named tuples: creating such a class takes a
seventh of the time of creating a frozen dataclass, and that time is part of the start-up of the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal
from unicodedata import category, east_asian_width

from workpacket.problem import Problem, WorkpacketError, by_remedy
from workpacket.value import NamedTuple

# Cc, Cs, Zl, Zp, Cf, Default_Ignorable_Code_Point and the noncharacters of Unicode 17, as ranges: the `unicodedata` of
# an older Python does not know all of them, and importing it slows start-up. A test compares the two.
_HIDDEN_RANGES = (
    "\\x00-\\x1f\\x7f-\\x9f\\xad"
    "\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890-\\u0891\\u08e2\\u115f-\\u1160\\u17b4-\\u17b5\\u180b-\\u180f"
    "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ud800-\\udfff\\ufdd0-\\ufdef\\ufe00-\\ufe0d\\ufeff\\uffa0"
    "\\ufff0-\\ufffb\\ufffe-\\uffff"
    "\\U000110bd\\U000110cd\\U00013430-\\U0001343f\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a"
    "\\U000e0000-\\U000e0fff"
)
_ASTRAL_NONCHARACTERS = "".join(f"\\U{plane:04x}fffe-\\U{plane:04x}ffff" for plane in range(1, 17))

# U+FE0E and U+FE0F select the text or the emoji form of a symbol; anywhere else they can hide text.
_SYMBOLS = "\\u00a9\\u00ae\\u203c-\\u205f\\u2070-\\u3163\\u3165-\\u3299\\U0001f000-\\U0001faff"
_STRAY_VARIATION = f"(?<![{_SYMBOLS}])[\\ufe0e\\ufe0f]"

# GitHub's runner and the Azure agent search for these anywhere in a line, and act on them instead of logging the line.
_LOGGING_COMMAND = r"(?<=##)\[|(?<=##[vV][sS][oO])\[|(?<=##teamcity)\["

_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


@cache
def hidden() -> re.Pattern[str]:
    """Return a pattern for one character that must not be shown verbatim. It is compiled on first use, because clean
    ASCII never needs it.
    """
    return re.compile(f"[{_HIDDEN_RANGES}{_ASTRAL_NONCHARACTERS}]|{_STRAY_VARIATION}|{_LOGGING_COMMAND}")


def escape(text: str) -> str:
    """Return `text` as one line that is safe to show."""
    if text.isascii() and text.isprintable() and "##" not in text:
        return text
    return hidden().sub(lambda match: visible(match.group()), text)


def escape_lines(text: str) -> str:
    """Escape `text` except its line feeds and tabs, for text that already has a layout, such as a diff."""
    return "\n".join("\t".join(map(escape, line.split("\t"))) for line in text.split("\n"))


def visible(character: str) -> str:
    """Return the visible form of one hidden character."""
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def without_surrogates(text: str) -> str:
    """Return `text` in a form that every JSON parser accepts: a lone surrogate is written visibly, and everything else
    is unchanged.
    """
    if text.isascii():
        return text
    return re.sub("[\ud800-\udfff]", lambda match: visible(match.group()), text)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_text(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV (RFC 4180)."""
    # Every command imports this module, and only few write tables.
    import csv
    import io

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(heads)
    writer.writerows([cell(value) for value in row] for row in rows)
    return stream.getvalue()


def cell(value: object) -> str:
    """Return a value as a cell. Only text can be a formula: a negative number remains a number."""
    if not isinstance(value, str):
        return str(value)
    shown = escape(value)
    return f"'{shown}" if shown.lstrip(" ").startswith(_FORMULA) else shown


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

    `first_room` is the room on the first line, if that is smaller; the first line remains empty if no word fits.
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
    """Return as much of `word` as fits into `room` columns, but at least one symbol with its combining characters."""
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
    """`width` is the number of terminal columns; None (a pipe, a file) means that lines are never wrapped."""

    width: int | None = None
    colour: bool = False

    @property
    def columns(self) -> int | None:
        """Return the width for layout, which has a minimum, because narrower text is unreadable."""
        return None if self.width is None else max(self.width, NARROWEST)

    def paint(self, text: str, role: Role) -> str:
        """Return `text`, which must already be sanitized, in the color of its role."""
        return f"\x1b[{_SGR[role]}m{text}\x1b[0m" if self.colour and text else text


PLAIN = Style()


def render_failure(error: WorkpacketError, style: Style = PLAIN) -> str:
    """Return `error: what (code)` and a line of help. Neither is ever wrapped, because people search for error messages
    and paste them.
    """
    where = f"{escape(error.path)}: " if error.path else ""
    lines = [f"{style.paint('error:', 'error')} {where}{escape(error.message)} ({escape(error.code)})"]
    if error.hint:
        lines.append(f"{style.paint('help:', 'help')} {escape(error.hint)}")
    return "\n".join(lines) + "\n"


def unmet_lines(unmet: Sequence[Problem], style: Style) -> list[str]:
    """Return the conditions, grouped by the command that meets them; each command is one line to copy, however long."""
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
