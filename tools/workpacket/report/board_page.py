"""The board as one static page: no script, nothing fetched, readable on paper and without a mouse.

Everything that the repository says is hostile text: it goes through the door and is escaped for HTML, and the policy
of the page lets nothing run and nothing load.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Sequence
from functools import cache

from workpacket.report.board import Card, Column, sign_of
from workpacket.report.door import escape
from workpacket.report.linked_runs import mark

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
    """The page. `as_of` is the time of the last event, '' without one; no clock is asked, so that equal boards give
    equal pages."""
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
        yield '<p class="none">Nothing stands here.</p>'
    yield "</section>"


def _card(card: Card) -> str:
    name = _text(card.id)
    title = f'<span class="title">{_text(card.title)}</span>' if card.title else ""
    note = f'<span class="note">{_text(card.note)}</span>' if card.note else ""
    sign = f'<span aria-hidden="true">{_text(sign_of(card.lane))} </span>'
    lane = f'<span class="lane {_text(card.lane.lower())}">{sign}{_text(card.lane)}</span>'
    runs = f'<span class="note">{_text(mark(card.runs))}</span>' if card.runs else ""
    return f'<li id="{name}"><a href="#{name}">{name}</a>{lane}{title}{note}{runs}</li>'


def _text(text: str) -> str:
    return html.escape(escape(text))


@cache
def _policy() -> str:
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
