"""How many columns text takes on a terminal, and where to break it."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import category, east_asian_width

_VARIATION_16 = "\ufe0f"  # asks for the emoji form, which is two columns wide


def text_width(text: str) -> int:
    """Columns taken by `text`, which has passed the door."""
    if text.isascii():
        return len(text)
    return sum(character_widths(text))


def character_widths(text: str) -> Iterator[int]:
    """The columns of each character: 0 for what combines with the one before, 2 for East Asian wide ones and emoji."""
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
    """`text` in lines of at most `room` columns, broken at spaces, or inside a word that is longer than a line.

    `first_room` is the room of the first line, where that one has less.
    """
    limit = room if first_room is None else first_room
    lines: list[str] = []
    line, taken = "", 0
    for word in _pieces(text, max(min(room, limit), 2)):
        width = text_width(word)
        if taken and taken + 1 + width > limit:
            lines.append(line)
            line, taken, limit = word, width, room
        elif taken:
            line, taken = f"{line} {word}", taken + 1 + width
        else:
            line, taken = word, width
    return [*lines, line]


def _pieces(text: str, room: int) -> Iterator[str]:
    """The words of `text`, with longer ones cut to `room` columns."""
    for word in text.split(" "):
        if text_width(word) <= room:
            yield word
            continue
        piece, taken = "", 0
        for character, width in zip(word, character_widths(word), strict=True):
            if taken + width > room:
                yield piece
                piece, taken = "", 0
            piece += character
            taken += width
        yield piece
