"""The board on a terminal: lanes side by side where there is room, below one another where there is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from workpacket.report.board import SIGNS, Card, Column, sign_of
from workpacket.report.door import escape
from workpacket.report.linked_runs import mark
from workpacket.report.style import Role, Style
from workpacket.report.width import text_width, wrap

_NARROWEST_COLUMN: Final = 24
_WIDEST_COLUMN: Final = 48
_GAP: Final = 2
# Of what is over, as many cards as tell where it ends; the rest is listed on request.
_SHOWN_OF_FINISHED: Final = 10

_ROLES: dict[str, Role] = {
    "FORKED": "error",
    "FAIL": "error",
    "BLOCKED": "warning",
    "IN_PROGRESS": "info",
    "VALIDATED": "good",
}

# What is shown, and as what: the colour is put on last, when the width is known.
Line = tuple[str, Role | None]


def render_board(board: Sequence[Column], style: Style) -> str:
    room = style.columns or 80
    full = [column for column in board if column.cards]
    empty = [column.name for column in board if not column.cards]
    count = max(1, min(len(full), (room + _GAP) // (_NARROWEST_COLUMN + _GAP)))
    # As many bands as are needed, and in each as many columns as in the others.
    bands = -(-len(full) // count) if full else 0
    count = -(-len(full) // bands) if bands else 1
    width = min((room + _GAP) // count - _GAP, _WIDEST_COLUMN)
    lines: list[str] = []
    for start in range(0, len(full), count):
        lines += [*_band(full[start : start + count], width, style), ""]
    lines += [*wrap(f"empty: {', '.join(map(escape, empty))}", room), ""] if empty else []
    lines += _legend(full, room)
    return "\n".join(lines) + "\n"


def _band(columns: Sequence[Column], width: int, style: Style) -> Iterator[str]:
    for row in zip_longest(*(list(_column(column, width)) for column in columns), fillvalue=("", None)):
        yield (" " * _GAP).join(_padded(text, role, width, style) for text, role in row).rstrip()


def _padded(text: str, role: Role | None, width: int, style: Style) -> str:
    blanks = " " * (width - text_width(text))
    return (style.paint(text, role) if role is not None else text) + blanks


def _column(column: Column, width: int) -> Iterator[Line]:
    count = f" {len(column.cards)}"
    for line in wrap(escape(column.name) + count, width):
        yield line, "code"
    yield "-" * width, "gutter"
    shown = column.cards if column.open else column.cards[-_SHOWN_OF_FINISHED:]
    if hidden := len(column.cards) - len(shown):
        yield from ((line, "help") for line in wrap(f"({hidden} before these: workpacket list)", width))
    for card in shown:
        yield from _card(card, width)


def _card(card: Card, width: int) -> Iterator[Line]:
    sign = sign_of(card.lane)
    for number, line in enumerate(wrap(escape(card.id), width - 2)):
        yield f"{'  ' if number else f'{sign} '}{line}", _ROLES.get(card.lane)
    if card.runs:
        yield from ((f"  {line}", "info") for line in wrap(escape(mark(card.runs)), width - 2))
    if card.note:
        yield from ((f"  {line}", None) for line in wrap(escape(card.note), width - 2))


def _legend(columns: Sequence[Column], room: int) -> list[str]:
    """What the signs mean that are shown; a sign stands on one line with its lane."""
    present = {card.lane for column in columns for card in column.cards}
    lanes = [*(lane for lane in SIGNS if lane in present), *sorted(present - SIGNS.keys())]
    lines: list[str] = []
    for entry in (f"{sign_of(lane)} {escape(lane)}" for lane in lanes):
        if lines and len(lines[-1]) + 3 + len(entry) <= room:
            lines[-1] += f"   {entry}"
        else:
            lines.append(entry)
    return lines
