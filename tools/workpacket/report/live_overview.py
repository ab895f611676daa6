"""Pages about all packets: what is waiting for a person, what happened lately, and what is linked to what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape as html_escape
from typing import Final, NamedTuple
from urllib.parse import quote

from workpacket.audit.overview import Point
from workpacket.model.lanes import lane_words
from workpacket.report.audit_page import board_chart
from workpacket.report.live_page import (
    Answer,
    Form,
    Site,
    command,
    ends,
    form,
    moment,
    packet_link,
    rows_of,
    run_link,
    t,
    words_of,
)

# ---- what waits for a person -------------------------------------------------------------------------------------


class PersonNeeded(NamedTuple):
    """One thing that is waiting for a person. `others`: someone other than the viewer must do it; `forms` are the
    actions that are possible at once.
    """

    id: str
    title: str
    need: str
    since: str
    detail: str
    others: bool = False
    forms: Sequence[Form] = ()


class EndingLease(NamedTuple):
    id: str
    title: str
    holder: str
    until: str
    others: bool
    forms: Sequence[Form] = ()


class UnmergedFile(NamedTuple):
    """A file that git could not merge."""

    path: str
    what: str


def waiting_content(
    site: Site,
    waiting: Sequence[PersonNeeded],
    leases: Sequence[EndingLease],
    conflicts: Sequence[UnmergedFile],
    questions: Sequence[tuple[Answer, Sequence[Form]]],
    unknown: str,
) -> Iterator[str]:
    """Yield what is waiting for the viewer, then what is waiting for others; `unknown` is why the runs are not
    known."""
    yield "<h1>What waits for a person</h1>\n"
    if not (waiting or leases or questions or conflicts or unknown):
        yield "<p>Nothing waits.</p>\n"
    if questions:
        yield from _questions(site, questions)
    if unknown:
        yield f"<p>The runs are not known: {t(unknown, 500)}</p>\n"
    if conflicts:
        yield '<section aria-labelledby="conflicts"><h2 id="conflicts">Conflicts in this work tree</h2>\n'
        yield '<ul class="plain">\n'
        yield from (f"<li><code>{t(one.path, 500)}</code> {t(one.what)}</li>\n" for one in conflicts)
        yield "</ul></section>\n"
    for others in (False, True):
        yield from _needs(site, [one for one in waiting if one.others == others], others=others)
    if leases:
        yield '<section aria-labelledby="leases"><h2 id="leases">Leases that end soon</h2>\n<ul class="plain">\n'
        for lease in sorted(leases, key=lambda one: one.others):
            until = ends(lease.until)
            yield f"<li>{_titled(site, lease.id, lease.title)}<div>held by {t(lease.holder, 100)}, {until}</div>"
            yield from _offered(site, lease.forms, lease.id)
            yield "</li>\n"
        yield "</ul></section>\n"


def _questions(site: Site, questions: Sequence[tuple[Answer, Sequence[Form]]]) -> Iterator[str]:
    """Yield what runs ask; first effects that may or may not have happened, then questions of programs."""
    for kind, title in (("outcome", "Effects with an unknown outcome"), ("", "Questions of runs")):
        asked = [(one, forms) for one, forms in questions if (one.get("kind") == "outcome") == bool(kind)]
        if not asked:
            continue
        name = f"asked-{kind or 'others'}"
        yield f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>\n<ul class="plain">\n'
        for one, forms in asked:
            answers = ", ".join(words_of(one, "answers"))
            question = t(one.get("question", ""), 1000)
            arguments = json.dumps(one.get("arguments"), ensure_ascii=False)
            about = f"<div class='said'><code>{t(arguments, 1000)}</code></div>" if one.get("arguments") else ""
            yield f"<li>{run_link(site, str(one.get('run', '')))}: {question} ({t(answers)}){about}"
            yield from _offered(site, forms, f"{one.get('run')} {one.get('id')}")
            yield "</li>\n"
        yield "</ul></section>\n"


def _needs(site: Site, waiting: Sequence[PersonNeeded], *, others: bool) -> Iterator[str]:
    needs = dict.fromkeys(one.need for one in waiting)
    for number, need in enumerate(needs):
        name, title = f"need-{number}{'-others' if others else ''}", need.capitalize()
        title = f"{title} from someone else" if others else title
        yield f'<section aria-labelledby="{name}"><h2 id="{name}">{t(title)}</h2>\n<ul class="plain">\n'
        for one in waiting:
            if one.need == need:
                detail = f"; {t(one.detail, 500)}" if one.detail else ""
                yield f'<li>{_titled(site, one.id, one.title)}<div class="said">{moment(one.since)}{detail}</div>'
                yield from _offered(site, one.forms, one.id)
                yield "</li>\n"
        yield "</ul></section>\n"


def _offered(site: Site, forms: Sequence[Form], about: str) -> Iterator[str]:
    """Yield the actions that can be done here, or their commands."""
    for one in forms:
        if site.actor:
            yield from form(site, one, about)
        else:
            yield f"<div>{command(one.command)}</div>"


def _titled(site: Site, name: str, title: str) -> str:
    return f"{packet_link(site, name)}{f' {t(title, 200)}' if title else ''}"


# ---- history -----------------------------------------------------------------------------------------------------


class Happened(NamedTuple):
    """One event of a log."""

    at: str
    packet: str
    title: str
    type: str
    before: str
    after: str
    actor: str
    signed: bool


class LogCommit(NamedTuple):
    """A commit that changed the logs: the board can be shown as of it."""

    id: str
    at: str
    subject: str


def history_content(
    site: Site, events: Sequence[Happened], points: Sequence[Point], order: Sequence[str], commits: Sequence[LogCommit]
) -> Iterator[str]:
    yield "<h1>History</h1>\n"
    chart = board_chart(points, order) if points else ""
    if chart:
        yield f'<section aria-labelledby="chart-title"><h2 id="chart-title">Packets by lane</h2>\n{chart}\n'
        drawn = [lane for index, lane in enumerate(order) if any(point.counts[index] for point in points)]
        yield '<ul class="legend">'
        yield from (f'<li class="lane-{t(lane)}">{t(lane_words(lane))}</li>' for lane in drawn)
        yield "</ul></section>\n"
    if commits:
        yield '<section aria-labelledby="commits-title"><h2 id="commits-title">The board as of a commit</h2>\n'
        yield '<ul class="plain">\n'
        for one in commits:
            yield f'<li>{moment(one.at)} <a href="{site.at}/?at={quote(one.id)}"><code>{t(one.id[:12])}</code></a> '
            yield f"{t(one.subject, 200)}</li>\n"
        yield "</ul></section>\n"
    yield '<section aria-labelledby="events-title"><h2 id="events-title">Latest events</h2>\n<ol class="timeline">\n'
    for event in events:
        move = ""
        if event.after:
            before, after = lane_words(event.before) or "nothing", lane_words(event.after)
            move = f' <span class="move">{t(before)} &rarr; {t(after)}</span>'
        signed = '<span class="proven">signed</span>' if event.signed else '<span class="claimed">not signed</span>'
        who = f"{t(event.actor, 100)} {signed}"
        yield f"<li>{moment(event.at)} <strong>{t(event.type)}</strong>{move} by {who}"
        yield f'<div class="said">{_titled(site, event.packet, event.title)}</div></li>\n'
    yield "</ol></section>\n"


# ---- trace and impact --------------------------------------------------------------------------------------------

_MOST: Final = 300


def trace_content(site: Site, asked: str, about: str, answer: Answer | None, problem: str) -> Iterator[str]:
    """Yield the answer of `trace` or `trace impact`; `about` is `impact` for the latter."""
    yield '<h1>Trace</h1>\n<form class="ask" method="get"><p class="field"><label for="asked">'
    yield "A packet, a file, a line (PATH:LINE) or a place in the specification</label>"
    yield f'<input id="asked" name="q" value="{html_escape(asked)}" autocomplete="off" spellcheck="false"></p>\n'
    for value, words in (("", "Where it comes from"), ("impact", "What depends on it")):
        checked = " checked" if value == about else ""
        yield f'<label><input type="radio" name="about" value="{value}"{checked}> {words}</label>\n'
    yield "<button>Show</button></form>\n"
    if problem:
        yield f"<p>{t(problem, 1000)}</p>\n"
    if answer is None:
        yield "" if asked else f'<p><a href="{site.at}/trace?all=1">List every missing or suspect link</a></p>\n'
        return
    if about == "impact":
        yield from _impact(site, rows_of(answer, "rests"))
    elif "line" in answer or "commit" in answer:
        yield from _line(site, answer)
    else:
        yield from _doubts(site, answer)


def _impact(site: Site, rests: Sequence[Answer]) -> Iterator[str]:
    yield "" if rests else "<p>No packet depends on it.</p>\n"
    yield '<ul class="plain">\n'
    for one in rests[:_MOST]:
        yield f"<li>{packet_link(site, str(one.get('packet', '')))} {t(lane_words(str(one.get('lane', ''))))}"
        yield f'<div class="said">{t(one.get("how", ""), 500)}</div></li>\n'
    yield "</ul>\n"


def _line(site: Site, answer: Answer) -> Iterator[str]:
    """Yield the answer about a line of a file, as pairs of names and values."""
    yield '<dl class="pairs">\n'
    for name, value in answer.items():
        packets = rows_of(answer, name)
        if packets and all(one.get("packet") for one in packets):
            others = ({**one, "packet": ""} for one in packets)
            links = (packet_link(site, str(one["packet"])) for one in packets)
            shown = "<br>".join(f"{link} {t(_flat(rest), 2000)}" for link, rest in zip(links, others, strict=True))
        else:
            shown = t(value if isinstance(value, (str, int)) else _flat(value), 2000)
        if value not in ("", None, [], {}):
            yield f"<div><dt>{t(name.replace('_', ' ').capitalize())}</dt><dd>{shown}</dd></div>\n"
    yield "</dl>\n"


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_flat(each)}" for name, each in value.items() if each not in ("", None, [], {}))
    if isinstance(value, list):
        return ", ".join(map(_flat, value))
    return str(value)


def _doubts(site: Site, answer: Answer) -> Iterator[str]:
    """Yield the traced packets, and the missing or suspect links."""
    doubts, packets = rows_of(answer, "doubts"), rows_of(answer, "packets")
    title = f"{len(doubts)} missing or suspect links" if doubts else "No link is missing or suspect"
    yield f'<section aria-labelledby="doubts"><h2 id="doubts">{title}</h2>\n<ul class="unmet">\n'
    for one in doubts[:_MOST]:
        packet = packet_link(site, str(one["packet"])) if one.get("packet") else ""
        yield f"<li>{packet} {t(one.get('message') or _flat(one), 1000)} <small>{t(one.get('code', ''))}</small></li>\n"
    yield "</ul></section>\n"
    yield '<section aria-labelledby="traced"><h2 id="traced">Packets</h2>\n<ul class="plain">\n'
    for one in packets[:_MOST]:
        counts = [
            f"{len(rows_of(one, name))} {words}"
            for name, words in (("anchors", "requirements"), ("criteria", "criteria"), ("commits", "commits"))
        ]
        yield f"<li>{_titled(site, str(one.get('id', '')), str(one.get('title') or ''))}"
        yield f'<div class="said">{t(lane_words(str(one.get("lane", ""))))}; {", ".join(counts)}</div></li>\n'
    yield "</ul></section>\n"
