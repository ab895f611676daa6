"""The live board: what all of its pages share (the frame, the navigation, how text from the repository becomes text of
the page), and the board itself, with lanes as columns that scroll, and cards in windows.

A page works without its script, which only keeps it up to date. No page contains a script or a style: the server's
policy lets a browser load its own two files and nothing else, so even text that was not escaped could not run anything.

Each column contains only the cards that changed last; a link loads more. Documents are read only for the cards on the
page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from html import escape as html_escape
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, urlencode

from workpacket.model.lanes import BUILT_IN, LaneTable, lane_words
from workpacket.report.audit_page import text as whole_text
from workpacket.report.board import Card, columns, sign_of
from workpacket.report.terminal import escape

# No text on a page is longer: hundreds of them may be on one page.
_LONGEST: Final = 4000


class Site(NamedTuple):
    """What every page shows around its content. `repositories` are their names, `current` is the number of the one
    shown, or -1 for none; `part` is the current part of the navigation; `version` is the state that the page shows;
    `actor` is who acts here, or '' if the server only reads; `home` is the part with which the paths of all pages
    begin, or '' for someone who must not know it.
    """

    repositories: Sequence[str]
    style: str
    script: str
    current: int = -1
    part: str = ""
    version: int = 0
    actor: str = ""
    csrf: str = ""
    home: str = ""

    @property
    def at(self) -> str:
        """Return the address at which the pages of this repository are found."""
        return f"{self.home}/{self.current}"


class FormField(NamedTuple):
    """One input of a form. With `choices`, it is a list; with `lines`, a multi-line text field."""

    name: str
    label: str
    required: bool = False
    choices: Sequence[str] = ()
    lines: bool = False
    fixed: str = ""
    help: str = ""


class Form(NamedTuple):
    """One action: the command that it types, and the fields that complete it."""

    action: str
    title: str
    says: str
    command: str
    fields: Sequence[FormField]


PARTS: Final = (
    ("board", "", "Board"),
    ("waiting", "waiting", "Waiting"),
    ("runs", "runs", "Runs"),
    ("history", "history", "History"),
    ("trace", "trace", "Trace"),
    ("audit", "audit", "Audit"),
)


Answer: TypeAlias = Mapping[str, object]


def rows_of(data: Answer, name: str) -> Sequence[Answer]:
    """Return a list of objects in a command's answer."""
    found = data.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def words_of(data: Answer, name: str) -> Sequence[str]:
    found = data.get(name)
    return [str(one) for one in found] if isinstance(found, list) else []


def part_of(data: Answer, name: str) -> Answer:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


# A page may have several forms with one of these actions.
SEVERAL: Final = frozenset({"answer", "fork", "signal", "revive"})


def t(value: object, most: int = _LONGEST) -> str:
    """Return a string from the repository as single-line text for the page."""
    said = str(value)
    if len(said) > most:
        said = f"{said[:most]} ... ({len(said) - most:,} more characters)"
    return html_escape(escape(said))


def paragraphs(value: object, most: int = 20 * _LONGEST) -> str:
    """Return a multi-line string, with its line breaks."""
    said = str(value)
    clipped = said[:most]
    return "<br>\n".join(t(line) for line in clipped.split("\n")) + (" ..." if len(said) > most else "")


def packet_address(site: Site, name: str) -> str:
    return f"{site.at}/packet/{quote(name, safe='')}"


def packet_link(site: Site, name: str) -> str:
    return f'<a href="{packet_address(site, name)}">{t(name)}</a>'


def run_link(site: Site, name: str) -> str:
    return f'<a href="{site.at}/run/{quote(name, safe="")}">{t(name)}</a>'


def moment(at: str) -> str:
    """Return a time that the script converts to a relative time."""
    return f'<time datetime="{t(at)}">{t(at)}</time>' if at else ""


def ends(at: str) -> str:
    """Return the time at which a lease expires."""
    return f'<time class="ends" datetime="{t(at)}">until {t(at)}</time>' if at else ""


def command(words: str) -> str:
    return f"<code>{t(words)}</code>"


def page(site: Site, title: str, content: Iterable[str], *, wide: bool = False, live: bool = True) -> str:
    """Return the whole page. `wide`: it fills the window and scrolls inside; `live`: the script keeps it up to date."""
    return "".join(_page(site, title, content, wide=wide, live=live))


def _page(site: Site, title: str, content: Iterable[str], *, wide: bool, live: bool) -> Iterator[str]:
    name = site.repositories[site.current] if site.current >= 0 else ""
    whole = f"{title} - {name}" if name else title
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{t(whole)}</title>\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
    yield f'<link rel="stylesheet" href="{site.style}">\n<script src="{site.script}" defer></script>\n</head>\n'
    changes = f' data-changes="{site.at}/changes" data-version="{site.version}"' if live and site.current >= 0 else ""
    home = f' data-home="{site.home}"' if site.home else ""
    yield f'<body class="{"wide" if wide else "column"}"{home}{changes}>\n'
    yield '<a class="skip" href="#content">Skip to the content</a>\n'
    yield from _head(site)
    yield '<main id="content" tabindex="-1">\n'
    yield from content
    yield "</main>\n"
    yield '<p id="said" role="status" aria-live="polite"></p>\n</body>\n</html>\n'


def _head(site: Site) -> Iterator[str]:
    yield '<header class="top">\n'
    if site.current >= 0:
        yield '<nav aria-label="Pages"><ul>'
        for part, place, words in PARTS:
            here = ' aria-current="page"' if part == site.part else ""
            yield f'<li><a href="{site.at}/{place}"{here}>{words}</a></li>'
        yield "</ul></nav>\n"
    if len(site.repositories) > 1:
        yield '<nav aria-label="Repositories" class="repositories"><ul>'
        for number, name in enumerate(site.repositories):
            here = ' aria-current="true"' if number == site.current else ""
            yield f'<li><a href="{site.home}/{number}/"{here}>{t(name)}</a></li>'
        yield "</ul></nav>\n"
    elif site.repositories:
        yield f'<p class="repository">{t(site.repositories[0])}</p>\n'
    if site.repositories:
        who = f"acting as {t(site.actor)}" if site.actor else "read-only"
        yield f'<form class="who" method="post" action="{site.home}/address"><span>{who}</span>'
        yield f'<input type="hidden" name="csrf" value="{t(site.csrf)}">'
        yield "<button>Another browser</button></form>\n"
    yield "</header>\n"


def form(site: Site, made: Form, about: str = "") -> Iterator[str]:
    """Yield one action as a form that can be unfolded. The command that it types is shown first. `about` distinguishes
    forms with the same action on one page.
    """
    suffix = f"-{blake2b(about.encode('utf-8', 'replace'), digest_size=4).hexdigest()}" if about else ""
    name = f"act-{made.action}{suffix}"
    yield f'<details class="act" id="{name}"><summary>{t(made.title)}</summary>\n'
    yield f'<form method="post" action="{site.at}/act/{made.action}">\n'
    yield f"<p>{t(made.says)}</p>\n" if made.says else ""
    yield f'<p class="types">Runs {command(made.command)}</p>\n'
    yield f'<input type="hidden" name="csrf" value="{t(site.csrf)}">\n'
    for field in made.fields:
        yield _input(name, field)
    yield f'<button type="submit">{t(made.title)}</button>\n</form></details>\n'


def actions(site: Site, forms: Sequence[Form], title: str = "Actions") -> Iterator[str]:
    """Yield the actions: as forms, or as commands if the pages only read."""
    if not forms:
        return
    yield f'<section aria-labelledby="acts-title"><h2 id="acts-title">{title}</h2>\n<div class="acts">\n'
    if site.actor:
        for one in forms:
            yield from form(site, one, one.title if one.action in SEVERAL else "")
    else:
        yield '<ul class="plain">'
        yield from (f"<li>{t(one.title)}: {command(one.command)}</li>" for one in forms)
        yield "</ul><p>These pages only read. To act in them: <code>workpacket board serve --write</code></p>"
    yield "</div></section>\n"


def _input(form_name: str, field: FormField) -> str:
    if field.fixed:
        return f'<input type="hidden" name="{field.name}" value="{html_escape(field.fixed)}">\n'
    place = f"{form_name}-{field.name}"
    needed = " required" if field.required else ""
    told = f' aria-describedby="{place}-help"' if field.help else ""
    extra = f'<small id="{place}-help">{t(field.help)}</small>' if field.help else ""
    label = f'<label for="{place}">{t(field.label)}</label>'
    named = f'id="{place}" name="{field.name}"{needed}{told}'
    if field.choices:
        options = "".join(f'<option value="{t(one)}">{t(one)}</option>' for one in field.choices)
        taken = f"<select {named}>{options}</select>"
    elif field.lines:
        taken = f'<textarea {named} rows="3"></textarea>'
    else:
        taken = f'<input {named} autocomplete="off">'
    return f'<p class="field">{label}{taken}{extra}</p>\n'


def unmet_list(unmet: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield every condition, each with the command that satisfies it."""
    yield '<ul class="unmet">\n'
    for one in unmet:
        hint = str(one.get("command") or one.get("hint") or "")
        yield f"<li><span>{t(one.get('message', ''))}</span> <small>{t(one.get('code', ''))}</small>"
        yield f"<div>{command(hint)}</div>" if hint else ""
        yield "</li>\n"
    yield "</ul>\n"


def conditions(why: Mapping[str, object]) -> str:
    """Return the conditions that keep a packet from its next lane, as the part of its card that can be unfolded."""
    unmet = why.get("unmet")
    listed = unmet if isinstance(unmet, list) else []
    following = str(why.get("next", ""))
    if not listed:
        return f"<p>Nothing is missing.</p>{f'<p>{command(following)}</p>' if following else ''}"
    return "".join(unmet_list(listed))


def home(site: Site, counts: Sequence[str]) -> str:
    """Return the page that lists the repositories."""
    rows = (
        f'<li><a href="{site.home}/{number}/">{t(name)}</a> <span>{t(told)}</span></li>\n'
        for number, (name, told) in enumerate(zip(site.repositories, counts, strict=True))
    )
    return page(site, "Repositories", ["<h1>Repositories</h1>\n<ul class='plain'>\n", *rows, "</ul>\n"])


def message(site: Site, title: str, told: str, hint: str = "") -> str:
    """Return a page with one sentence, such as an error."""
    content = [f"<h1>{t(title)}</h1>\n<p>{t(told)}</p>\n", f"<p>{command(hint)}</p>\n" if hint else ""]
    return page(site, title, content, live=False)


def outcome(site: Site, said: str, answer: Mapping[str, object], packet: str) -> str:
    """Return a command's answer: everything that was refused, or what to do next."""
    good = bool(answer.get("ok"))
    data = answer.get("data")
    data = data if isinstance(data, dict) else {}
    refused = data.get("unmet") or answer.get("findings") or not data
    title = "Done" if good else "Refused" if data.get("unmet") else "Failed" if refused else "More is needed"
    return page(site, title, _outcome(site, said, answer, data, packet, title, good=good), live=False)


def _outcome(
    site: Site,
    said: str,
    answer: Mapping[str, object],
    data: Mapping[str, object],
    packet: str,
    title: str,
    *,
    good: bool,
) -> Iterator[str]:
    yield f'<h1 class="{"good" if good else "error"}">{title}</h1>\n<p class="types">{command(said)}</p>\n'
    unmet, findings, notes = (part if isinstance(part, list) else [] for part in (
        data.get("unmet"), answer.get("findings"), data.get("notes")))  # fmt: skip
    yield from unmet_list(unmet or findings)
    yield from (f"<p>{t(note)}</p>\n" for note in notes)
    yield from (f"<p>Question: {t(one.get('question', ''), 1000)}</p>\n" for one in rows_of(data, "questions"))
    following = data.get("next")
    yield f"<p>Next: {command(str(following))}</p>\n" if following else ""
    back = packet_link(site, packet) if packet else f'<a href="{site.at}/runs">runs</a>'
    yield f'<p>Back to {back} or the <a href="{site.at}/">board</a>.</p>\n'


def whole(value: object) -> str:
    """Return a string as the audit shows it."""
    return whole_text(str(value))


def touch(site: Site, packet: str, address: str) -> str:
    """Return the page that links to the page of an approval."""
    content = [
        f"<h1>Approve {t(packet)} by touch</h1>\n",
        "<p>The command that waits for your touch has its own page, which is shown once.</p>\n",
        f'<p><a class="button" href="{html_escape(address)}" rel="noreferrer">Open the page of the approval</a></p>\n',
        f"<p>Back to {packet_link(site, packet)}.</p>\n",
    ]
    return page(site, "Approve by touch", content, live=False)


WINDOW: Final = 30
MORE: Final = 100
_MOST_GROUPS: Final = 30
_OTHERS: Final = "All others"
GROUPS: Final = {"": "lane", "holder": "holder", "base": "base", "risk": "risk"}
_NONE: Final = {"holder": "Not held", "base": "No base", "risk": "No risk named"}


class LiveCard(NamedTuple):
    """What the log of a packet says. `needs` is what a person must do; `reason` is why the packet is blocked, or what
    replaced it; `last` is the time of the last event; `signatures` describes the signatures of its events.
    """

    id: str
    base: str
    lane: str
    title: str
    holder: str
    claimed: bool
    signatures: str
    until: str
    reason: str
    needs: str
    risk: str
    last: str
    runs: str
    trouble: bool
    pages: tuple[tuple[str, str], ...] = ()  # of workflows

    def matches(self, words: Sequence[str]) -> bool:
        if not words:
            return True
        said = " ".join((self.id, self.title, self.holder, self.lane, self.reason, self.needs, self.runs)).casefold()
        return all(word in said for word in words)


class Detail(NamedTuple):
    """What documents and other packets add: the packets that this one is waiting for, and how many of its criteria are
    proved."""

    waits: tuple[str, ...] = ()
    proved: int = 0
    criteria: int = 0


class Wanted(NamedTuple):
    """What the address of the page requests. `more` is the number of cards per column, by column key."""

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
    """Return the columns with the matching cards, those that changed last first."""
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
    links = "".join(f' <a href="{html_escape(page)}">{t(run, 60)}</a>' for run, page in card.pages[:3])
    yield f'<p class="{"trouble" if card.trouble else "runs"}">{t(card.runs, 300)}{links}</p>' if card.runs else ""
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
    if card.signatures:
        yield f'<span class="signatures">{t(card.signatures)}</span>'
    if card.until:
        yield f'<span class="lease">{ends(card.until)}</span>'
    if detail.criteria:
        yield f'<span class="proofs">{detail.proved}/{detail.criteria} proved</span>'
    if card.needs:
        yield f'<span class="needs">{t(card.needs)}</span>'
    if card.risk in {"HIGH", "MEDIUM"}:
        yield f'<span class="risk">{t(card.risk.lower())} risk</span>'
