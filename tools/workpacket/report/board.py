"""The board as values: columns of cards, for a terminal and for a page.

The page is static: it has no script, fetches nothing, and is readable on paper and without a mouse. All text from the
repository is treated as hostile: it is sanitized and escaped for HTML, and the page's policy allows nothing to run or
load. On a terminal, lanes are shown side by side if there is room, otherwise below one another.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import Final

from workpacket.model.event_types import FORKED
from workpacket.model.lanes import BUILT_IN, LaneTable, lane_words
from workpacket.report.runs import PacketRun, mark
from workpacket.report.terminal import Role, Style, escape, text_width, wrap
from workpacket.value import Value

# One sign per lane, so that no one has to distinguish colors; ASCII, so that it takes one column on every terminal.
SIGNS: Mapping[str, str] = {FORKED: "#", **{lane.token: lane.sign for lane in BUILT_IN.lanes}}
_ADDED_SIGN = "*"


def sign_of(lane: str) -> str:
    """Return the symbol of a lane. Lanes added by a policy share one symbol: they are few, and each has its own
    section."""
    return SIGNS.get(lane, _ADDED_SIGN)


class Card(Value):
    """One packet. `note` is its holder, or why the packet is in its lane; `signatures` is the word for the signatures
    of its events, '' where the board says it once for all packets."""

    id: str
    lane: str
    note: str = ""
    title: str = ""
    runs: tuple[PacketRun, ...] = ()
    signatures: str = ""


class Column(Value):
    """One section of the board. In an `open` section, work is or may be in progress."""

    heading: str
    open: bool
    cards: tuple[Card, ...]

    @property
    def name(self) -> str:
        """Return the heading without the remark that follows it."""
        return self.heading.partition(" (")[0]


def columns(cards: Iterable[Card], lanes: LaneTable = BUILT_IN) -> tuple[Column, ...]:
    """Return every section in board order, preceded by packets whose log is forked and packets in a lane that the
    policy does not define, if there are any."""
    by_section: dict[str, list[Card]] = {}
    forked: list[Card] = []
    astray: list[Card] = []
    for card in cards:
        lane = lanes.lane(card.lane)
        if lane is not None:
            by_section.setdefault(lane.section, []).append(card)
        else:
            (forked if card.lane == FORKED else astray).append(card)
    # The first section describes work on other branches, which no log records.
    found = [
        Column(section.heading, section.key not in ("done", "superseded"), tuple(by_section.get(section.key, ())))
        for section in lanes.sections[1:]
    ]
    strays = [Column("Forked", True, tuple(forked)), Column("Not in the policy", True, tuple(astray))]
    return (*(column for column in strays if column.cards), *found)


_NARROWEST_COLUMN: Final = 24
_WIDEST_COLUMN: Final = 48
_GAP: Final = 2
# Only the latest few cards of finished work are shown; the rest is listed on request.
_SHOWN_OF_FINISHED: Final = 10

_ROLES: Mapping[str, Role | None] = {FORKED: "error", **{lane.token: lane.tone for lane in BUILT_IN.lanes}}

# The text and its role: color is added last, when the width is known.
Line = tuple[str, Role | None]


def render_board(board: Sequence[Column], style: Style) -> str:
    room = style.columns or 80
    full = [column for column in board if column.cards]
    empty = [column.name for column in board if not column.cards]
    count = max(1, min(len(full), (room + _GAP) // (_NARROWEST_COLUMN + _GAP)))
    # As many bands as needed, each with the same number of columns.
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
        yield from ((line, "help") for line in wrap(f"({hidden} earlier ones not shown: workpacket list)", width))
    for card in shown:
        yield from _screen_card(card, width)


def _screen_card(card: Card, width: int) -> Iterator[Line]:
    sign = sign_of(card.lane)
    for number, line in enumerate(wrap(escape(card.id), width - 2)):
        yield f"{'  ' if number else f'{sign} '}{line}", _ROLES.get(card.lane)
    if card.title:
        yield from ((f"  {line}", None) for line in wrap(escape(" ".join(card.title.split())), width - 2))
    if card.runs:
        yield from ((f"  {line}", "info") for line in wrap(escape(mark(card.runs)), width - 2))
    if card.note:
        yield from ((f"  {line}", None) for line in wrap(escape(card.note), width - 2))
    if card.signatures:
        yield from ((f"  {line}", None) for line in wrap(card.signatures, width - 2))


def _legend(columns: Sequence[Column], room: int) -> list[str]:
    """Return a legend of the symbols in use, one line for each symbol and its lane."""
    present = {card.lane for column in columns for card in column.cards}
    lanes = [*(lane for lane in SIGNS if lane in present), *sorted(present - SIGNS.keys())]
    lines: list[str] = []
    for entry in (f"{sign_of(lane)} {escape(lane_words(lane))}" for lane in lanes):
        if lines and len(lines[-1]) + 3 + len(entry) <= room:
            lines[-1] += f"   {entry}"
        else:
            lines.append(entry)
    return lines


_STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --soft: #57606a; --paper: #f6f7f9; --card: #fff; --line: #d5dae0;
  --link: #0b57a4; --alarm: #a3231b; --wait: #7a4b00; --work: #0b57a4; --good: #1b6b34; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ed; --soft: #a3adb8; --paper: #14171b; --card: #1e2329;
  --line: #38414b; --link: #85bdf5; --alarm: #ff9a91; --wait: #eebf6c; --work: #85bdf5; --good: #83d39b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 110rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.45 system-ui, sans-serif; }
h1 { margin: 0 0 .25rem; font-size: 1.6rem; }
h2 { margin: 0 0 .5rem; font-size: 1rem; }
p, nav ul { margin: 0 0 1rem; color: var(--soft); }
nav ul, main ul { list-style: none; padding: 0; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
a { color: var(--link); text-underline-offset: .15em; }
:focus-visible { outline: .2rem solid var(--link); outline-offset: .15rem; }
.skip { position: absolute; left: -100vw; }
.skip:focus { position: static; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 1.25rem;
  align-items: start; }
section { border-top: .2rem solid var(--line); padding-top: .6rem; min-width: 0; }
main ul { margin: 0; display: grid; gap: .5rem; }
main li { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .65rem;
  overflow-wrap: anywhere; content-visibility: auto; contain-intrinsic-size: auto 4rem; }
main li:target { border-color: var(--link); box-shadow: 0 0 0 .15rem var(--link); }
main li a { color: inherit; font-weight: 600; text-decoration: none; }
main li a:hover { text-decoration: underline; }
.lane { display: block; font: .8rem/1.6 ui-monospace, monospace; color: var(--soft); }
.fail, .forked { color: var(--alarm); } .blocked { color: var(--wait); }
.in_progress { color: var(--work); } .validated { color: var(--good); }
.title, .note { display: block; } .note { color: var(--soft); font-size: .9rem; }
.none { margin: 0; font-size: .9rem; }
@media print { body { padding: 0; background: none; } nav, .skip { display: none; }
  main li { break-inside: avoid; content-visibility: visible; } }
"""


def render_page(board: Sequence[Column], as_of: str) -> str:
    """Return the page. `as_of` is the time of the last event, '' if there is none. The clock is not used, so that equal
    boards result in equal pages.
    """
    return "\n".join(_page(board, as_of)) + "\n"


def _page(board: Sequence[Column], as_of: str) -> Iterator[str]:
    count = sum(len(column.cards) for column in board)
    still_open = sum(len(column.cards) for column in board if column.open)
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield "<title>Task board</title>"
    yield f"<style>{_STYLE}</style>"
    yield "</head>"
    yield "<body>"
    yield '<a class="skip" href="#board">To the board</a>'
    yield "<header>"
    yield "<h1>Task board</h1>"
    when = f", as the log stood at <time>{_text(as_of)}</time>" if as_of else ""
    yield f"<p>{count} packets, {still_open} of them open{when}.</p>"
    yield '<nav aria-label="Sections"><ul>'
    for number, column in enumerate(board, 1):
        yield f'<li><a href="#section-{number}">{_text(column.name)}</a> {len(column.cards)}</li>'
    yield "</ul></nav>"
    yield "</header>"
    yield '<main id="board" tabindex="-1">'
    for number, column in enumerate(board, 1):
        yield from _section(column, f"section-{number}")
    yield "</main>"
    yield "</body>"
    yield "</html>"


def _section(column: Column, name: str) -> Iterator[str]:
    yield f'<section aria-labelledby="{name}">'
    yield f'<h2 id="{name}">{_text(column.name)} ({len(column.cards)})</h2>'
    if column.cards:
        yield "<ul>"
        yield from map(_card, column.cards)
        yield "</ul>"
    else:
        yield '<p class="none">No packets.</p>'
    yield "</section>"


def _card(card: Card) -> str:
    name = _text(card.id)
    title = f'<span class="title">{_text(card.title)}</span>' if card.title else ""
    note = "".join(f'<span class="note">{_text(text)}</span>' for text in (card.note, card.signatures) if text)
    sign = f'<span aria-hidden="true">{_text(sign_of(card.lane))} </span>'
    lane = f'<span class="lane {_text(card.lane.lower())}">{sign}{_text(card.lane)}</span>'
    pages = "".join(f' <a href="{html.escape(run.page)}">{_text(run.run)}</a>' for run in card.runs if run.page)
    runs = f'<span class="note">{_text(mark(card.runs))}{pages}</span>' if card.runs else ""
    return f'<li id="{name}"><a href="#{name}">{name}</a>{lane}{title}{note}{runs}</li>'


def _text(text: str) -> str:
    return html.escape(escape(text))


@cache
def _policy() -> str:
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
