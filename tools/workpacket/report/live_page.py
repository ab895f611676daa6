"""What all pages of the live board share: the frame, the navigation, how a text of the repository becomes one of the
page. A page works without its script, which only keeps it up to date.

No page contains a script or a style: the server's policy lets a browser load its own two files and nothing else, so a
text that escaped from its place could still run nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape as html_escape
from typing import Final, NamedTuple
from urllib.parse import quote

from workpacket.report.audit_page import text as whole_text
from workpacket.report.escape import escape

# No text on a page is longer: hundreds of them may be on one page.
_LONGEST: Final = 4000


class Site(NamedTuple):
    """What every page says around its content. `repositories` are their names, `current` the number of the one shown,
    -1 for none; `part` is the part of the navigation; `version` is the state that the page shows; `actor` is who acts
    here, '' if the server only reads.
    """

    repositories: Sequence[str]
    style: str
    script: str
    current: int = -1
    part: str = ""
    version: int = 0
    actor: str = ""
    csrf: str = ""

    @property
    def at(self) -> str:
        """Return the address below which the pages of this repository are."""
        return f"/{self.current}"


class FormField(NamedTuple):
    """One input of a form. With `choices` it is a list, with `lines` a text of several lines."""

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
    ("audit", "audit", "Audit"),
)


def t(value: object, most: int = _LONGEST) -> str:
    """Return a text of the repository as text of the page, on one line."""
    said = str(value)
    if len(said) > most:
        said = f"{said[:most]} ... ({len(said) - most:,} more characters)"
    return html_escape(escape(said))


def paragraphs(value: object, most: int = 20 * _LONGEST) -> str:
    """Return a text of several lines, with its line breaks."""
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
    """Return a time, which the script turns into how long ago it was."""
    return f'<time datetime="{t(at)}">{t(at)}</time>' if at else ""


def ends(at: str) -> str:
    """Return the time at which a lease ends."""
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
    yield f'<body class="{"wide" if wide else "column"}"{changes}>\n'
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
            yield f'<li><a href="/{number}/"{here}>{t(name)}</a></li>'
        yield "</ul></nav>\n"
    elif site.repositories:
        yield f'<p class="repository">{t(site.repositories[0])}</p>\n'
    if site.repositories:
        who = f"acting as {t(site.actor)}" if site.actor else "read-only"
        yield f'<form class="who" method="post" action="/address"><span>{who}</span>'
        yield f'<input type="hidden" name="csrf" value="{t(site.csrf)}">'
        yield "<button>Another browser</button></form>\n"
    yield "</header>\n"


def form(site: Site, made: Form, *, to: str = "") -> Iterator[str]:
    """Yield one action as a form that unfolds. What it types is shown first."""
    name = f"act-{made.action}"
    yield f'<details class="act" id="{name}"><summary>{t(made.title)}</summary>\n'
    yield f'<form method="post" action="{to or f"{site.at}/act/{made.action}"}">\n'
    yield f"<p>{t(made.says)}</p>\n" if made.says else ""
    yield f'<p class="types">Runs {command(made.command)}</p>\n'
    yield f'<input type="hidden" name="csrf" value="{t(site.csrf)}">\n'
    for field in made.fields:
        yield _input(name, field)
    yield f'<button type="submit">{t(made.title)}</button>\n</form></details>\n'


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
    """Yield every condition, each with the command that meets it."""
    yield '<ul class="unmet">\n'
    for one in unmet:
        hint = str(one.get("command") or one.get("hint") or "")
        yield f"<li><span>{t(one.get('message', ''))}</span> <small>{t(one.get('code', ''))}</small>"
        yield f"<div>{command(hint)}</div>" if hint else ""
        yield "</li>\n"
    yield "</ul>\n"


def conditions(why: Mapping[str, object]) -> str:
    """Return the conditions that keep a packet from its next lane, as the part of its card that unfolds."""
    unmet = why.get("unmet")
    listed = unmet if isinstance(unmet, list) else []
    following = str(why.get("next", ""))
    if not listed:
        return f"<p>Nothing is missing.</p>{f'<p>{command(following)}</p>' if following else ''}"
    return "".join(unmet_list(listed))


def home(site: Site, counts: Sequence[str]) -> str:
    """Return the page that lists the repositories."""
    rows = (
        f'<li><a href="/{number}/">{t(name)}</a> <span>{t(told)}</span></li>\n'
        for number, (name, told) in enumerate(zip(site.repositories, counts, strict=True))
    )
    return page(site, "Repositories", ["<h1>Repositories</h1>\n<ul class='plain'>\n", *rows, "</ul>\n"])


def message(site: Site, title: str, told: str, hint: str = "") -> str:
    """Return a page with one sentence, such as an error."""
    content = [f"<h1>{t(title)}</h1>\n<p>{t(told)}</p>\n", f"<p>{command(hint)}</p>\n" if hint else ""]
    return page(site, title, content, live=False)


def outcome(site: Site, said: str, answer: Mapping[str, object], packet: str) -> str:
    """Return what a command answered: all that it refused, or what comes next."""
    good = bool(answer.get("ok"))
    data = answer.get("data")
    data = data if isinstance(data, dict) else {}
    title = "Done" if good else "Refused" if data.get("unmet") else "Failed"
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
    following = data.get("next")
    yield f"<p>Next: {command(str(following))}</p>\n" if following else ""
    back = packet_link(site, packet) if packet else f'<a href="{site.at}/runs">runs</a>'
    yield f'<p>Back to {back} or the <a href="{site.at}/">board</a>.</p>\n'


def whole(value: object) -> str:
    """Return a text as the audit shows it."""
    return whole_text(str(value))


def touch(site: Site, packet: str, address: str) -> str:
    """Return the page with the link to the page of an approval."""
    content = [
        f"<h1>Approve {t(packet)} by touch</h1>\n",
        "<p>The command that waits for your touch has its own page, which is shown once.</p>\n",
        f'<p><a class="button" href="{html_escape(address)}" rel="noreferrer">Open the page of the approval</a></p>\n',
        f"<p>Back to {packet_link(site, packet)}.</p>\n",
    ]
    return page(site, "Approve by touch", content, live=False)
