"""The board as a page: lanes as columns that scroll, cards in windows, and what each card says.

Only some cards of a column are in the page, those that changed last; a link brings more. Documents are read only for
the cards in the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import urlencode

from workpacket.model.lanes import BUILT_IN, LaneTable, lane_words
from workpacket.report.board import Card, columns, sign_of
from workpacket.report.live_page import Site, ends, packet_address, page, t

WINDOW: Final = 30
MORE: Final = 100
_MOST_GROUPS: Final = 30
_OTHERS: Final = "All others"
GROUPS: Final = {"": "lane", "holder": "holder", "base": "base", "risk": "risk"}
_NONE: Final = {"holder": "Not held", "base": "No base", "risk": "No risk named"}


class LiveCard(NamedTuple):
    """What the log of a packet says. `needs` is what a person must do; `reason` why it is blocked, or what replaced it;
    `last` is the time of the last event.
    """

    id: str
    base: str
    lane: str
    title: str
    holder: str
    claimed: bool
    until: str
    reason: str
    needs: str
    risk: str
    last: str
    runs: str
    trouble: bool

    def matches(self, words: Sequence[str]) -> bool:
        if not words:
            return True
        said = " ".join((self.id, self.title, self.holder, self.lane, self.reason, self.needs, self.runs)).casefold()
        return all(word in said for word in words)


class Detail(NamedTuple):
    """What documents and other packets add: the packets that it waits for, and how many of its criteria are proved."""

    waits: tuple[str, ...] = ()
    proved: int = 0
    criteria: int = 0


class Wanted(NamedTuple):
    """What the address of the page asks for. `more` is how many cards of a column, by its key."""

    words: str = ""
    group: str = ""
    at: str = ""
    more: Mapping[str, int] = {}

    def query(self, **others: object) -> str:
        said = {"q": self.words, "group": self.group, "at": self.at, **others}
        pairs = [(name, str(value)) for name, value in said.items() if value]
        pairs += [("more", f"{key}:{count}") for key, count in self.more.items()]
        return urlencode(pairs)


class LiveColumn(NamedTuple):
    key: str
    heading: str
    cards: Sequence[LiveCard]


def chosen(cards: Iterable[LiveCard], wanted: Wanted, lanes: LaneTable = BUILT_IN) -> list[LiveColumn]:
    """Return the columns with the cards that match, those that changed last first."""
    words = wanted.words.casefold().split()
    found = sorted((card for card in cards if card.matches(words)), key=lambda card: card.id)
    found.sort(key=lambda card: card.last, reverse=True)
    if not wanted.group:
        by_id = {card.id: card for card in found}
        board = columns((Card(card.id, card.lane) for card in found), lanes)
        return [
            LiveColumn(column.name.casefold().replace(" ", "-"), column.name, [by_id[card.id] for card in column.cards])
            for column in board
        ]
    groups: dict[str, list[LiveCard]] = {}
    for card in found:
        groups.setdefault(str(getattr(card, wanted.group)), []).append(card)
    none = _NONE[wanted.group]
    if len(groups) > _MOST_GROUPS:  # the largest have a column of their own
        largest = sorted(groups, key=lambda name: (-len(groups[name]), name))[:_MOST_GROUPS]
        others = [card for card in found if str(getattr(card, wanted.group)) not in largest]
        groups = {name: groups[name] for name in largest} | {_OTHERS: others}
    return [
        LiveColumn(name or "-", name or none, groups[name])
        for name in sorted(groups, key=lambda one: (one == _OTHERS, not one, one))
    ]


def board_page(
    site: Site, board: Sequence[LiveColumn], wanted: Wanted, total: int, detail: Callable[[LiveCard], Detail]
) -> str:
    return page(site, "Board", _content(site, board, wanted, total, detail), wide=True, live=not wanted.at)


def _content(
    site: Site, board: Sequence[LiveColumn], wanted: Wanted, total: int, detail: Callable[[LiveCard], Detail]
) -> Iterator[str]:
    shown = sum(len(column.cards) for column in board)
    yield '<h1 class="unseen">Board</h1>\n<form class="bar" id="find" role="search" method="get">\n'
    yield '<label class="unseen" for="q">Find packets</label>'
    yield f'<input id="q" name="q" type="search" placeholder="Find packets" value="{t(wanted.words)}" '
    yield 'autocomplete="off" spellcheck="false">\n<label for="group">Group by</label> <select id="group" name="group">'
    for value, words in GROUPS.items():
        yield f'<option value="{value}"{" selected" if value == wanted.group else ""}>{words}</option>'
    yield "</select>\n"
    yield f'<input type="hidden" name="at" value="{t(wanted.at)}">' if wanted.at else ""
    yield "<button>Show</button>\n"
    found = f"{shown} of {total} packets" if shown != total else f"{total} packets"
    yield f'<p id="count">{found}</p>\n'
    if wanted.at:
        yield f'<p class="past">As of {t(wanted.at, 80)}. <a href="{site.at}/">Now</a></p>\n'
    yield "</form>\n"
    yield '<div class="board" id="board">\n'
    for number, column in enumerate(board):
        yield from _column(site, column, number, wanted, detail)
    yield "</div>\n"
    if not total:
        yield "<p>There are no packets yet: <code>workpacket new</code> creates one.</p>\n"


def _column(
    site: Site, column: LiveColumn, number: int, wanted: Wanted, detail: Callable[[LiveCard], Detail]
) -> Iterator[str]:
    count = max(wanted.more.get(column.key, WINDOW), WINDOW)
    name = f"column-{number}"
    yield f'<section class="lane{"" if column.cards else " empty"}" aria-labelledby="{name}">\n'
    yield f'<h2 id="{name}">{t(column.heading, 60)} <span class="number">{len(column.cards)}</span></h2>\n'
    yield f'<ul class="cards" id="cards-{number}" tabindex="0" aria-labelledby="{name}">\n'
    for card in column.cards[:count]:
        said = column.heading.casefold().startswith(card.lane.replace("_", " ").casefold())
        yield _card(site, card, detail(card), with_lane=bool(wanted.group) or not said)
    yield "</ul>\n"
    left = len(column.cards) - count
    if left > 0:
        more = {**wanted.more, column.key: min(count + MORE, 10**6)}
        address = wanted._replace(more=more).query()
        yield f'<p class="more"><a href="?{t(address)}">{left} more</a></p>\n'
    yield "</section>\n"


def _card(site: Site, card: LiveCard, detail: Detail, *, with_lane: bool) -> str:
    content = "".join(_card_content(site, card, detail, with_lane=with_lane))
    digest = blake2b(content.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f'<li class="card {t(card.lane.lower())}" id="{t(card.id)}" data-digest="{digest}">{content}</li>\n'


def _card_content(site: Site, card: LiveCard, detail: Detail, *, with_lane: bool) -> Iterator[str]:
    title = card.title or card.id
    yield f'<a class="title" href="{packet_address(site, card.id)}">{t(title, 200)}</a>'
    yield f'<span class="id">{t(card.id)}</span>' if card.title else ""
    facts = list(_facts(card, detail, with_lane=with_lane))
    yield f'<p class="facts">{" ".join(facts)}</p>' if facts else ""
    yield f'<p class="reason">{t(card.reason, 300)}</p>' if card.reason else ""
    if detail.waits:
        listed = ", ".join(f'<a href="{packet_address(site, name)}">{t(name)}</a>' for name in detail.waits[:5])
        more = f" and {len(detail.waits) - 5} more" if len(detail.waits) > 5 else ""
        yield f'<p class="waits">waits for {listed}{more}</p>'
    yield f'<p class="{"trouble" if card.trouble else "runs"}">{t(card.runs, 300)}</p>' if card.runs else ""
    why = f"{packet_address(site, card.id)}/why"
    yield f'<details data-load="{why}"><summary>Next step<span class="unseen"> of {t(card.id)}</span></summary>'
    yield f'<div><a href="{packet_address(site, card.id)}#missing">What is missing</a></div></details>'


def _facts(card: LiveCard, detail: Detail, *, with_lane: bool) -> Iterator[str]:
    if with_lane:
        sign = f'<span aria-hidden="true">{t(sign_of(card.lane))}</span>'
        yield f'<span class="chip">{sign} {t(lane_words(card.lane))}</span>'
    if card.holder:
        claimed = ' <span class="claimed">not proven</span>' if card.claimed else ""
        yield f'<span class="holder">{t(card.holder, 60)}{claimed}</span>'
    if card.until:
        yield f'<span class="lease">{ends(card.until)}</span>'
    if detail.criteria:
        yield f'<span class="proofs">{detail.proved}/{detail.criteria} proved</span>'
    if card.needs:
        yield f'<span class="needs">{t(card.needs)}</span>'
    if card.risk in {"HIGH", "MEDIUM"}:
        yield f'<span class="risk">{t(card.risk.lower())} risk</span>'
