"""What every strict loader returns, and what all of them ask of a text before they look at its grammar."""

from __future__ import annotations

from workpacket.problem import Location, Problem
from workpacket.text.limits import Limits
from workpacket.text.node import Node
from workpacket.text.source import Source
from workpacket.value import Value


class Loaded(Value):
    """A tree, or the reasons why there is none.

    There is no half-loaded document: one fault that is an error, and `root` is None. The only fault beside a tree is
    one that the catalogue calls a warning (`json_byte_order_mark`).
    """

    root: Node | None
    faults: tuple[Problem, ...] = ()


def unreadable(text: str, start: int, limits: Limits) -> list[Problem]:
    """Why `text`, which begins at `start` of its source, cannot be read at all: too long, or not UTF-8."""
    if len(text) > limits.size:
        return [limits.size_fault(start)]
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        return [_not_utf8(text, error.start, start)]
    return [limits.size_fault(start)] if size > limits.size else []


def _not_utf8(text: str, first: int, start: int) -> Problem:
    broken = sum(1 for character in text if "\ud800" <= character <= "\udfff")
    byte = ord(text[first]) & 0xFF
    others = f", and {broken - 1} more after it" if broken > 1 else ""
    message = f"the byte 0x{byte:02X} is not UTF-8{others}"
    return Problem("text_not_utf8", message, Location.span(start + first, start + first + 1))


def duplicate_key(code: str, source: Source, key: str, first: tuple[int, int], again: tuple[int, int]) -> Problem:
    """The fault of a key that stands at `first` and `again` in one mapping."""
    line, later = source.line_and_column(first[0])[0], source.line_and_column(again[0])[0]
    where = f"twice on line {line}" if line == later else f"on line {line} and again on line {later}"
    return Problem(code, f"the key {key!r} stands {where}", Location.span(*again), "keep one of the two")
