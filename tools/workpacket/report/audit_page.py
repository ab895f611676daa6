"""An audit as a self-contained page: it needs no network, and uses a script only for what is rendered on demand.

Everything from the repository is text: escaped in HTML, and in JSON that no browser runs. The page's content security
policy allows one style sheet and one script, by digest, and nothing else. The board over time is an SVG of stacked
areas, with its numbers in a table.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape as html_escape
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote

from workpacket import __version__
from workpacket.audit.overview import Audit, AuditFinding, Gap, Point
from workpacket.model.canonical import Json
from workpacket.model.reasons import Reason
from workpacket.model.wording import counted
from workpacket.report.audit_data import (
    Group,
    PacketTexts,
    groups,
    head_json,
    lanes_of,
    matter_json,
    place,
    sentence,
    told,
)

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 200, 40, 24


# With fewer changes of the board, the areas are slabs that show less than the table of lanes.
_FEWEST_CHANGES = 5


def board_chart(points: Sequence[Point], order: Sequence[str]) -> str:
    """Draw the chart; '' if there is too little to show."""
    if sum(one.counts != other.counts for one, other in pairwise(points)) < _FEWEST_CHANGES:
        return ""
    highest = max(sum(point.counts) for point in points) or 1
    drawn = [index for index in range(len(order)) if any(point.counts[index] for point in points)]
    areas = [_area(points, drawn, position, highest, order) for position in range(len(drawn))]
    same_day = points[0].at[:10] == points[-1].at[:10]
    first, last = (point.at[:16].replace("T", " ") if same_day else point.at[:10] for point in (points[0], points[-1]))
    label = f"Packets by lane from {first} to {last}; the table below shows the numbers."
    return "".join(
        (
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT + BOTTOM}" role="img" aria-label="{html_escape(label)}">',
            *areas,
            f'<line class="axis" x1="{LEFT}" y1="{HEIGHT}" x2="{WIDTH}" y2="{HEIGHT}"/>',
            f'<text x="{LEFT - 6}" y="12" text-anchor="end">{highest}</text>',
            f'<text x="{LEFT - 6}" y="{HEIGHT}" text-anchor="end">0</text>',
            f'<text x="{LEFT}" y="{HEIGHT + 17}">{first}</text>',
            f'<text x="{WIDTH}" y="{HEIGHT + 17}" text-anchor="end">{last}</text>',
            "</svg>",
        )
    )


def _area(points: Sequence[Point], drawn: Sequence[int], position: int, highest: int, order: Sequence[str]) -> str:
    """Draw one lane, stacked on the previous ones."""
    below = [sum(point.counts[index] for index in drawn[:position]) for point in points]
    lane = order[drawn[position]]
    upper = [low + point.counts[drawn[position]] for low, point in zip(below, points, strict=True)]
    outline = " ".join([*_steps(upper, highest), *reversed(_steps(below, highest))])
    return f'<polygon class="lane-{lane}" points="{outline}"><title>{lane}</title></polygon>'


def _steps(values: Sequence[int], highest: int) -> list[str]:
    """Return a lane's line as steps, because packets change lanes instantly; each time has its own position."""
    corners: list[str] = []
    for number, value in enumerate(values):
        if not number or value != values[number - 1]:
            corners.append(f"{_x(number, len(values))},{_y(value, highest)}")
        if number == len(values) - 1 or value != values[number + 1]:
            corners.append(f"{_x(number + 1, len(values))},{_y(value, highest)}")
    return corners


def _x(number: int, count: int) -> str:
    return f"{LEFT + (WIDTH - LEFT) * number / count:.1f}"


def _y(value: int, highest: int) -> str:
    return f"{HEIGHT - (HEIGHT - 4) * value / highest:.1f}"


# The number of packets in the page itself; the script shows the others, this many at a time.
ROWS = 100
# The number of packets whose details are stored, and read by the browser, together.
CHUNK = 50
# The number of findings of one code in the page.
_LISTED = 20


class PageFiles(NamedTuple):
    """The style and the script of the page."""

    style: str
    script: str


def text(value: str) -> str:
    """Escape a sanitized string from the repository as text for the page."""
    return html_escape(told(value))


def inert(value: Json) -> str:
    """Return JSON that is safe between script tags, because nothing in it can end them."""
    encoded = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def render_audit_page(
    audit: Audit, texts: PacketTexts, reasons: Mapping[str, Reason], files: PageFiles
) -> Iterator[str]:
    """Yield the page. The `texts` of the packets were encoded by `inert`."""
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(files.style)}; script-src {_digest(files.script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"Audit of {text(audit.facts.name)}" if audit.facts.name else "Audit"
    found = groups(audit.matters, reasons)
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{html_escape(policy)}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
    yield f'<link rel="icon" href="data:,">\n<style>{files.style}</style>\n</head>\n<body>\n'
    yield '<a class="skip" href="#content">Skip to the content</a>\n'
    yield f"<header>\n<h1>{title}</h1>\n{_as_of(audit)}</header>\n"
    yield _navigation()
    yield '<main id="content" tabindex="-1">\n<div id="overview">\n'
    yield from _verdict(audit, found)
    yield from _progress(audit)
    rows = rows_of(audit)
    yield from _packets(rows)
    yield from _requirements(audit)
    yield from _notes(found, audit)
    yield '</div>\n<article id="packet" hidden></article>\n</main>\n'
    yield f"<footer><p>Log root <code>{audit.root}</code>: the same for everyone who has the same history. "
    yield f"Generated by workpacket {__version__}.</p></footer>\n"
    yield from _data(audit, texts, rows)
    yield f"<script>{files.script}</script>\n</body>\n</html>\n"


def _as_of(audit: Audit) -> str:
    facts = audit.facts
    commit = "Before the first commit."
    if facts.head is not None:
        commit = f"<code>{facts.head.id[:12]}</code>"
        if facts.forge:
            commit = f'<a href="{html_escape(facts.forge)}/commit/{facts.head.id}">{commit}</a>'
        when = f"{commit}, <time>{facts.head.at}</time>"
        commit = f"As of commit {when}: {text(facts.head.title)}"
    checked = f"{counted(len(audit.packets), 'packet')}, {counted(facts.files_checked, 'file')} checked"
    pending = f"; {counted(len(facts.uncommitted), 'file')} not committed" if facts.uncommitted else ""
    return f"<p>{commit}</p>\n<p>{checked}{pending}.</p>\n"


def _navigation() -> str:
    parts = {
        "verdict": "Is anything wrong?",
        "progress": "Progress",
        "packets": "Packets",
        "requirements": "Requirements",
        "notes": "Notes",
    }
    items = "".join(f'<li><a href="#{place}">{name}</a></li>' for place, name in parts.items())
    return f'<nav aria-label="Parts of the report"><ul>{items}</ul></nav>\n'


def _verdict(audit: Audit, found: list[Group]) -> Iterator[str]:
    grave = [group for group in found if group.severity != "info"]
    worst = grave[0].severity if grave else "good"
    yield f'<section id="verdict" aria-labelledby="verdict-title">\n<h2 id="verdict-title" class="{worst}">'
    yield f"{sentence(audit)}</h2>\n"
    if not grave:
        count = counted(audit.facts.files_checked, "file")
        yield f"<p>Every rule was applied to {count}; every signature, event and link was verified.</p>\n"
    for group in grave:
        yield from _group(group, audit)
    yield "</section>\n"


def _group(group: Group, audit: Audit) -> Iterator[str]:
    """Yield the element for one kind of finding: what, how often, since when, and who must act; it unfolds to show each
    occurrence.
    """
    who = ", ".join(text(name) for name in group.who[:3]) + (" and others" if len(group.who) > 3 else "")
    yield f'<details class="group {group.severity}" id="code-{group.code}"><summary>'
    yield f'<span class="severity">{group.severity}</span> <strong>{html_escape(group.title)}</strong> '
    yield f'<span class="count">{counted(len(group.matters), "place")}</span> '
    yield f'<span class="since">{group.when}</span> <span class="who">to act: {who}</span></summary>\n<ul>\n'
    for matter in group.matters[:_LISTED]:
        yield f"<li>{_matter(matter, audit)}</li>\n"
    yield "</ul>\n"
    if len(group.matters) > _LISTED:
        more = len(group.matters) - _LISTED
        yield f'<p><a href="#find=code:{group.code}">{more} more</a>, at their packets.</p>\n'
    hint = group.matters[0].finding.hint
    yield f'<p class="hint">{text(hint)} <code>workpacket explain {group.code}</code></p>\n' if hint else ""
    yield "</details>\n"


def _matter(matter: AuditFinding, audit: Audit) -> str:
    packet = f'<a href="#{matter.packet}">{matter.packet}</a> ' if matter.packet else ""
    where = f"<code>{html_escape(place(matter))}</code>"
    address = _file_address(matter, audit)
    return f"{packet}{text(matter.finding.message)} " + (f'<a href="{address}">{where}</a>' if address else where)


def _file_address(matter: AuditFinding, audit: Audit) -> str:
    """Return the address of the location on the forge; '' if the forge does not have the file in this state."""
    facts, finding = audit.facts, matter.finding
    if not facts.forge or facts.head is None or matter.pending or not finding.path:
        return ""
    line = f"#L{finding.line}" if finding.line else ""
    path = quote(finding.path.encode("utf-8", "surrogateescape"))
    return html_escape(f"{facts.forge}/blob/{facts.head.id}/{path}{line}")


def _progress(audit: Audit) -> Iterator[str]:
    yield '<section id="progress" aria-labelledby="progress-title">\n<h2 id="progress-title">Progress</h2>\n'
    lanes = lanes_of(audit)
    yield '<ul class="lanes">'
    yield from (f'<li class="lane-{lane}"><b>{count}</b> {lane}</li>' for lane, count in lanes)
    yield "</ul>\n<figure>"
    yield board_chart(audit.history, audit.lane_order)
    yield f"<figcaption>The board over time</figcaption>{_history_table(audit)}</figure>\n"
    yield f'{_wide("Gaps")}<table class="gaps"><caption>Gaps. A packet with an error in its approvals, '
    yield 'log or evidence does not count as done.</caption><thead><tr><th scope="col">What</th>'
    yield '<th scope="col">Done</th>'
    yield '<th scope="col">Of</th><th scope="col">Share</th></tr></thead><tbody>'
    for gap in audit.gaps:
        yield f'<tr><th scope="row">{gap.name}</th><td>{gap.done}</td><td>{gap.of}</td><td>{_share(gap)}</td></tr>'
    yield "</tbody></table></div>\n</section>\n"


def _share(gap: Gap) -> str:
    """Return the share as a bar with its percentage, rounded down, so that only complete items show 100%."""
    if not gap.of:
        return "none asked"
    return f'<meter max="{gap.of}" value="{gap.done}"></meter> <span>{100 * gap.done // gap.of} %</span>'


def _history_table(audit: Audit) -> str:
    """Return the chart's numbers at about a dozen points in time."""
    points = audit.history
    if not points:
        return "<p>No packet has moved yet.</p>"
    lanes = [n for n in range(len(audit.lane_order)) if any(point.counts[n] for point in points)]
    step = max(len(points) // 12, 1)
    chosen = [*points[:-1:step], points[-1]]
    head = "".join(f'<th scope="col">{text(audit.lane_order[n])}</th>' for n in lanes)
    rows = "".join(
        f'<tr><th scope="row">{point.at}</th>{"".join(f"<td>{point.counts[n]}</td>" for n in lanes)}</tr>'
        for point in chosen
    )
    table = f'<table><thead><tr><th scope="col">Time</th>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f"<details><summary>As numbers</summary>{_wide('The board in numbers')}{table}</div></details>"


def _wide(label: str) -> str:
    """Return a scrollable element for wide content, which the keyboard can scroll too."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{label}">'


def rows_of(audit: Audit) -> list[list[Json]]:
    """Return a row for each packet, those with findings first: id, lane, title, what it waits for, errors, warnings,
    since, holder, who approved, who judged, codes.
    """
    codes: dict[str, list[AuditFinding]] = {}
    for matter in audit.matters:
        codes.setdefault(matter.packet, []).append(matter)
    rows: list[list[Json]] = []
    for name, row in audit.packets.items():
        own = codes.get(name, ())
        counts = [sum(one.finding.severity == kind for one in own) for kind in ("error", "warning")]
        named = " ".join(dict.fromkeys(one.finding.code for one in own))
        people = [told(who) for who in (row.holder or "", row.approved_by, row.judged_by)]
        lane = row.lane or "no log"
        rows.append([name, lane, told(row.title), row.waits_for, *counts, row.since, *people, named])
    return sorted(rows, key=_urgency)


def _urgency(row: list[Json]) -> tuple[int, int, str]:
    errors, warnings = row[4], row[5]
    assert isinstance(errors, int)
    assert isinstance(warnings, int)
    return -errors, -warnings, str(row[0])


def _packets(rows: Sequence[Sequence[Json]]) -> Iterator[str]:
    yield '<section id="packets" aria-labelledby="packets-title">\n<h2 id="packets-title">Packets</h2>\n'
    yield '<form id="search" role="search" hidden><label for="query">Find packets</label> '
    yield '<input id="query" type="search" autocomplete="off" spellcheck="false" aria-describedby="query-help">'
    yield '<span id="query-help">by id, title, person or lane; code:NAME for a finding</span>'
    yield '<label for="waits">Waits for</label> <select id="waits"><option value="">anything</option>'
    waiting = sorted({str(row[3]) for row in rows} - {""})
    yield "".join(f'<option value="{word}">{word}</option>' for word in waiting)
    yield "</select></form>\n"
    yield '<p id="found" role="status"></p>\n'
    yield f'{_wide("Table of packets")}<table id="list"><thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in _HEADS)
    yield "</tr></thead><tbody>\n"
    for row in rows[:ROWS]:
        name, lane, title, waits, errors, warnings, since, *people = row[:-1]
        yield f'<tr><th scope="row"><a href="#{name}">{name}</a></th><td class="lane-{lane}">{lane}</td>'
        yield f"<td>{html_escape(str(title))}</td><td>{waits}</td><td>{errors or ''}</td><td>{warnings or ''}</td>"
        yield f"<td>{str(since)[:10]}</td>{''.join(f'<td>{html_escape(str(who))}</td>' for who in people)}</tr>\n"
    yield "</tbody></table></div>\n"
    if len(rows) > ROWS:
        yield f"<noscript><p>These are {ROWS} of {len(rows)}, those with findings first. Without a script, "
        yield "<code>workpacket audit --format markdown</code> lists all.</p></noscript>\n"
    yield '<div id="pages" hidden><button type="button" id="before">Previous</button> <span id="page"></span> '
    yield '<button type="button" id="after">Next</button></div>\n</section>\n'


_HEADS = (
    "Packet", "Lane", "Title", "Waits for", "Errors", "Warnings", "In lane since",
    "Held by", "Approved by", "Judged by",
)  # fmt: skip


def _requirements(audit: Audit) -> Iterator[str]:
    """Yield the matrix of requirements and packets; all of it is in the JSON report."""
    yield '<section id="requirements" aria-labelledby="requirements-title">\n'
    yield '<h2 id="requirements-title">Requirements</h2>\n'
    if not audit.requirements:
        yield "<p>The specification in force has no requirement, or there is none.</p>\n</section>\n"
        return
    yield f"{_wide('Requirements and packets')}<table><thead><tr>"
    yield "".join(
        f'<th scope="col">{name}</th>' for name in ("Requirement", "Line", "Packets", "Criteria with evidence")
    )
    yield "</tr></thead><tbody>\n"
    for row in audit.requirements[:ROWS]:
        named = ", ".join(f'<a href="#{name}">{name}</a> {audit.packets[name].lane}' for name in row.packets)
        own = [audit.packets[name] for name in row.packets]
        criteria = sum(one.criteria for one in own)
        proved = f"{sum(one.proved for one in own)} of {criteria}" if criteria else ""
        yield f'<tr><th scope="row">{text(row.requirement.title)}</th><td>{row.requirement.first}</td>'
        yield f"<td>{named or 'none'}</td><td>{proved}</td></tr>\n"
    yield "</tbody></table></div>\n"
    if len(audit.requirements) > ROWS:
        more = len(audit.requirements) - ROWS
        yield f"<p>{more} more: <code>workpacket audit --format json</code> lists all.</p>\n"
    yield "</section>\n"


def _notes(found: list[Group], audit: Audit) -> Iterator[str]:
    yield '<section id="notes" aria-labelledby="notes-title">\n<h2 id="notes-title">Notes</h2>\n'
    mild = [group for group in found if group.severity == "info"]
    if not mild:
        yield "<p>None.</p>\n"
    for group in mild:
        yield from _group(group, audit)
    yield "</section>\n"


def _data(audit: Audit, texts: PacketTexts, rows: Sequence[Sequence[Json]]) -> Iterator[str]:
    """Yield the data for the script: one row for each packet, and the details in parts that are read on demand."""
    names = [str(row[0]) for row in rows]
    index: dict[str, Json] = {"head": head_json(audit), "rows": [list(row) for row in rows], "chunk": CHUNK}
    yield f'<script type="application/json" id="index">{inert(index)}</script>\n'
    matters: dict[str, list[Json]] = {}
    for matter in audit.matters:
        matters.setdefault(matter.packet, []).append(matter_json(matter))
    for start in range(0, len(names), CHUNK):
        yield f'<script type="application/json" id="chunk-{start // CHUNK}">['
        for number, name in enumerate(names[start : start + CHUNK]):
            own = f'"matters":{inert(matters.get(name, []))}}}'
            yield f"{',' if number else ''}{texts.text(name, audit)[:-1]},{own}"
        yield "]</script>\n"
