"""The page of one packet. It shows the JSON answers of commands: what the terminal would show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape as html_escape
from typing import Final, NamedTuple
from urllib.parse import quote

from workpacket.model.lanes import lane_words
from workpacket.model.wording import counted
from workpacket.report.board import sign_of
from workpacket.report.live_page import (
    Answer,
    Form,
    Site,
    actions,
    command,
    ends,
    moment,
    packet_link,
    page,
    paragraphs,
    part_of,
    rows_of,
    run_link,
    t,
    unmet_list,
    words_of,
)

_EVENTS: Final = 200
_SAID: Final = ("holder", "to", "by", "verdict", "reason", "branch", "commit", "until", "rule", "target", "text", "run")


# ---- a packet ----------------------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """The lines of a file around a finding; `first` is the number of the first one."""

    first: int
    lines: Sequence[str]


class PacketPage(NamedTuple):
    """What commands say about one packet: `show`, `log show`, `approvals list` and, about its files, `check`.
    `changes` is the difference between its contract and the approved one; `excerpts` are the places of the findings;
    `forge` is the repository's address on its forge.
    """

    show: Answer
    history: Answer
    approvals: Answer
    found: Sequence[Answer]
    excerpts: Sequence[Lines]
    changes: Sequence[str]
    forge: str

    def render(self, site: Site, forms: Sequence[Form]) -> str:
        return page(site, str(self.show.get("title") or self.show.get("id", "")), self._content(site, forms))

    def _content(self, site: Site, forms: Sequence[Form]) -> Iterator[str]:
        show = self.show
        lane = str(show.get("lane", ""))
        yield f'<p class="crumb">{t(show.get("id", ""))}</p>\n<h1>{t(show.get("title") or show.get("id"), 300)}</h1>\n'
        yield f'<p class="state"><span class="chip {t(lane.lower())}">'
        yield f'<span aria-hidden="true">{t(sign_of(lane))}</span> '
        yield f"{t(lane_words(lane) or 'no log')}</span>"
        if show.get("holder"):
            yield f" held by {t(show['holder'], 100)}, lease {ends(str(show.get('until') or ''))}"
        yield "</p>\n"
        yield from self._missing()
        yield from actions(site, forms)
        yield from self._findings()
        yield from self._differences()
        yield from self._task(site)
        place = f"{site.at}/packet/{quote(str(show.get('id', '')), safe='')}/trace"
        yield f'<details class="act" id="trace" data-load="{place}"><summary>Trace from requirement to commit</summary>'
        yield f'<div><a href="{place}">Trace</a></div></details>\n'
        yield from self._runs(site)
        yield from self._approvals()
        yield from self._timeline(site)

    def _missing(self) -> Iterator[str]:
        unmet = rows_of(self.show, "unmet")
        following = str(self.show.get("next", ""))
        yield '<section id="missing" aria-labelledby="missing-title"><h2 id="missing-title">Next step</h2>\n'
        if unmet:
            yield f"<p>{counted(len(unmet), 'condition')} not met for {command(following)}</p>\n"
            yield from unmet_list(unmet)
        else:
            yield f"<p>Nothing is missing. {command(following) if following else ''}</p>\n"
        yield "</section>\n"

    def _task(self, site: Site) -> Iterator[str]:
        show = self.show
        yield '<section aria-labelledby="task-title"><h2 id="task-title">Contract</h2>\n<dl class="pairs">\n'
        for label, name in (("What", "what"), ("Why", "why"), ("Risk", "risk"), ("Branch", "branch")):
            if show.get(name):
                yield f"<div><dt>{label}</dt><dd>{paragraphs(show[name])}</dd></div>\n"
        for label, name in (("Scope", "scope"), ("Out of scope", "out_of_scope")):
            if listed := words_of(show, name):
                yield f"<div><dt>{label}</dt><dd>{'<br>'.join(map(t, listed[:200]))}</dd></div>\n"
        if depends := rows_of(show, "depends"):
            each = [
                f"{packet_link(site, str(one.get('id')))} {t(lane_words(str(one.get('lane', ''))))}" for one in depends
            ]
            yield f"<div><dt>Depends on</dt><dd>{'<br>'.join(each)}</dd></div>\n"
        files = ", ".join(map(str, part_of(show, "files").values()))
        yield f"<div><dt>Files</dt><dd>{t(files)}</dd></div>\n" if files else ""
        yield "</dl>\n"
        if criteria := rows_of(show, "criteria"):
            yield '<h3>Done means</h3>\n<ol class="criteria">\n'
            for one in criteria:
                yield f"<li>{_criterion(one, self.forge)}</li>\n"
            yield "</ol>\n"
        yield "</section>\n"

    def _differences(self) -> Iterator[str]:
        if not self.changes:
            return
        yield '<section aria-labelledby="changes-title"><h2 id="changes-title">Changed since it was approved</h2>\n'
        yield '<pre class="changes" tabindex="0">'
        yield f"{words_marked(self.changes[:2000])}\n</pre></section>\n"

    def _findings(self) -> Iterator[str]:
        """Yield what `check` finds in the packet's own files, each with the lines that it is about."""
        if not self.found:
            return
        count = counted(len(self.found), "finding")
        yield f'<section aria-labelledby="found-title"><h2 id="found-title">{count} in its files</h2>\n'
        yield '<ul class="unmet">\n'
        for one, excerpt in zip(self.found, self.excerpts, strict=True):
            yield f"<li><span>{t(one.get('message', ''))}</span> <small>{t(one.get('code', ''))}, "
            yield f"{t(one.get('severity', ''))}, {t(one.get('path', ''))}:{t(one.get('line', ''))}</small>"
            yield from _excerpt(one, excerpt)
            yield f"<div>{command(str(one['hint']))}</div>" if one.get("hint") else ""
            yield "</li>\n"
        yield "</ul></section>\n"

    def _runs(self, site: Site) -> Iterator[str]:
        runs = rows_of(self.show, "runs")
        if runs:
            yield '<section aria-labelledby="runs-title"><h2 id="runs-title">Runs</h2>\n<ul class="plain">\n'
            for one in runs:
                code = f" ({t(one['code'])})" if one.get("code") else ""
                yield f"<li>{run_link(site, str(one.get('run', '')))} {t(one.get('state', ''))}{code}"
                page = str(one.get("page") or "")
                yield f'<div><a href="{html_escape(page)}">{t(page)}</a></div>' if page else ""
                yield f"<div>{command(str(one['command']))}</div></li>\n" if one.get("command") else "</li>\n"
            yield "</ul></section>\n"

    def _approvals(self) -> Iterator[str]:
        gates = rows_of(self.approvals, "gates")
        if not gates:
            return
        yield '<section aria-labelledby="approvals-title"><h2 id="approvals-title">Approvals</h2>\n'
        for gate in gates:
            state = "met" if gate.get("met") else "not met"
            yield f"<h3>{t(gate.get('gate', ''))}: {state}</h3>\n<ul class='plain'>\n"
            for one in rows_of(gate, "decisions"):
                against = ", ".join(words_of(one, "against"))
                yield f"<li>{t(one.get('decision', ''))} by {t(one.get('approver', ''))} ({t(one.get('role', ''))}) "
                yield f"{moment(str(one.get('issued_at') or ''))}{f': {t(against)}' if against else ''}</li>\n"
            yield "</ul>\n"
            yield from unmet_list(rows_of(gate, "unmet")) if gate.get("unmet") else ()
        yield "</section>\n"

    def _timeline(self, site: Site) -> Iterator[str]:
        events = rows_of(self.history, "events")
        yield '<section aria-labelledby="time-title"><h2 id="time-title">Timeline</h2>\n<ol class="timeline">\n'
        for event in reversed(events[-_EVENTS:]):
            yield from _event(site, event, self.forge)
        yield "</ol>\n"
        if len(events) > _EVENTS:
            earlier = f"workpacket log show {self.show.get('id')}"
            yield f"<p>{len(events) - _EVENTS} earlier events: {command(earlier)}</p>\n"
        yield "</section>\n"


def _criterion(one: Answer, forge: str) -> str:
    state = str(one.get("state", ""))
    proof = f' <span class="proof">{command(str(one["proof"]))}</span>' if one.get("proof") else ""
    ended = f", exit {t(one['exit_code'])}" if one.get("exit_code") else ""
    at = f" at {_commit(str(one['commit']), forge)}" if one.get("commit") else ""
    result = f'<span class="result {t(state.replace(" ", "-"))}">{t(state)}{ended}</span>'
    return f"{result} {t(one.get('text', ''))}{proof}{at}"


def _evidence(evidence: Sequence[Answer], forge: str) -> Iterator[str]:
    """Yield what was proved, by whom, with the end of its output where this clone has it."""
    for one in evidence:
        at = f" at {_commit(str(one['commit']), forge)}" if one.get("commit") else ""
        suspect = f' <span class="result failed">suspect: {t(one["suspect"], 500)}</span>' if one.get("suspect") else ""
        yield f'<div class="said">{t(one.get("result", ""))}: {command(str(one.get("what", "")))}{at} '
        yield f"by {t(one.get('by', ''), 100)} {moment(str(one.get('at', '')))}{suspect}"
        if one.get("output"):
            name = f"output-{t(str(one.get('log_sha256', ''))[:12])}"
            yield f'<details id="{name}"><summary>Its output</summary><pre tabindex="0">'
            yield f"{_lines(str(one['output']))}</pre></details>"
        yield "</div>\n"


def _lines(text: str) -> str:
    return "\n".join(t(line, 500) for line in text.splitlines()[-100:])


def _excerpt(finding: Answer, excerpt: Lines) -> Iterator[str]:
    if not excerpt.lines:
        return
    yield '<pre class="excerpt">'
    for number, line in enumerate(excerpt.lines, excerpt.first):
        shown = f"{number:>5}  {t(line, 300)}"
        yield f"<mark>{shown}</mark>\n" if number == finding.get("line") else f"{shown}\n"
    yield "</pre>"


def _anchors(anchors: Sequence[Answer]) -> Iterator[str]:
    yield '<ul class="plain">\n' if anchors else ""
    for one in anchors:
        why = f" {t(one['why'], 500)}" if one.get("why") else ""
        yield f"<li>{t(one.get('name', ''), 300)} <span class='result'>{t(one.get('state', ''))}</span>{why}"
        yield f'<div class="said">{paragraphs(one.get("excerpt", ""), 1000)}</div></li>\n'
    yield "</ul>\n" if anchors else ""


_MARKS: Final = (
    (re.compile(r"\[-(.*?)-\]", re.DOTALL), r"<del>\1</del>"),
    (re.compile(r"\{\+(.*?)\+\}", re.DOTALL), r"<ins>\1</ins>"),
)
_ESCAPED_MARK: Final = re.compile(r"([\[{])\\([-+])|([-+])\\([\]}])")


def words_marked(lines: Sequence[str]) -> str:
    """Return a difference as `packet contract` prints it, with its marked words marked for the page."""
    text = "\n".join(map(t, lines))
    for mark, shown in _MARKS:
        text = mark.sub(shown, text)
    return _ESCAPED_MARK.sub(r"\1\2\3\4", text)


def _commit(commit: str, forge: str) -> str:
    shown = f"<code>{t(commit[:12])}</code>"
    is_id = forge.startswith("https://") and commit.isalnum()
    return f'<a href="{t(forge)}/commit/{t(commit)}" rel="noreferrer">{shown}</a>' if is_id else shown


def _event(site: Site, event: Answer, forge: str) -> Iterator[str]:
    data, actor = part_of(event, "data"), part_of(event, "actor")
    who = "proven" if event.get("proven") else "claimed"
    move = ""
    if data.get("lane_to"):
        move = f' <span class="move">{t(data.get("lane_from") or "nothing")} &rarr; {t(data["lane_to"])}</span>'
    yield f"<li>{moment(str(event.get('at', '')))} <strong>{t(event.get('type', ''))}</strong>{move} by "
    yield f'{t(actor.get("id", ""), 100)} <span class="{who}">{who if who == "proven" else "not proven"}</span>'
    shown = {
        "commit": lambda value: _commit(value, forge),
        "run": lambda value: run_link(site, value),
    }
    said = []
    for name in _SAID:
        value = data.get(name)
        if isinstance(value, str) and value:
            said.append(f"{name}: {shown[name](value) if name in shown else t(value, 1000)}")
    yield f'<div class="said">{"; ".join(said)}</div>' if said else ""
    yield "</li>\n"


# ---- the trace of a packet ---------------------------------------------------------------------------------------


def packet_trace(traced: Answer, forge: str) -> Iterator[str]:
    """Yield how a packet leads from requirements to commits: a drawing, then each link with its text."""
    drawing = trace_graph(traced)
    if drawing:
        yield f'<div class="scroll" tabindex="0" role="region" aria-label="Trace graph">{drawing}</div>\n'
    yield "<h2>Requirements</h2>\n"
    yield from _anchors(rows_of(traced, "anchors"))
    yield '<h2>Criteria and their evidence</h2>\n<ol class="criteria">\n'
    for one in rows_of(traced, "criteria"):
        yield f"<li>{t(one.get('text', ''))}"
        yield from _evidence(rows_of(one, "evidence"), forge)
        yield "</li>\n"
    yield "</ol>\n"
    if commits := rows_of(traced, "commits"):
        yield '<h2>Commits</h2>\n<ul class="plain">\n'
        for one in commits:
            where = "" if one.get("on_target") else ", not on the target branch" if one.get("known") else ", not here"
            yield f"<li>{_commit(str(one.get('id', '')), forge)} {t(one.get('title', ''), 200)} "
            yield f'<span class="said">{t(one.get("role", ""))}{where} {moment(str(one.get("at", "")))}</span></li>\n'
        yield "</ul>\n"


# ---- the trace as a drawing --------------------------------------------------------------------------------------

_COLUMN: Final = 190
_BOX: Final = 168
_ROW: Final = 34
_MOST_ROWS: Final = 30


def trace_graph(traced: Answer) -> str:
    """Return a drawing of what leads where: requirements, the packet, criteria, evidence, commits; '' if there is
    nothing to draw."""
    criteria, anchors = rows_of(traced, "criteria")[:_MOST_ROWS], rows_of(traced, "anchors")[:_MOST_ROWS]
    if not criteria and not anchors:
        return ""
    evidence = [(number, one) for number, each in enumerate(criteria) for one in rows_of(each, "evidence")]
    commits = list({str(one.get("id")): one for one in rows_of(traced, "commits")}.values())[:_MOST_ROWS]
    boxes: list[list[tuple[str, str]]] = [
        [(str(one.get("name", "")), "" if one.get("state") == "holds" else "doubted") for one in anchors],
        [(str(traced.get("id", "")), "")],
        [(f"{one.get('number')}. {one.get('text', '')}", "" if rows_of(one, "evidence") else "open")
         for one in criteria],
        [(str(one.get("what", "")), "doubted" if one.get("suspect") or one.get("result") != "met" else "")
         for _, one in evidence[:_MOST_ROWS]],
        [(f"{str(one.get('id', ''))[:12]} {one.get('title', '')}", "" if one.get("on_target") else "open")
         for one in commits],
    ]  # fmt: skip
    height = _ROW * max(map(len, boxes))
    places = [[_ROW * (height / _ROW - len(column)) / 2 + _ROW * row for row in range(len(column))] for column in boxes]
    numbers = {str(one.get("id")): row for row, one in enumerate(commits)}
    joined = [(0, row, 1, 0) for row in range(len(anchors))] + [(1, 0, 2, row) for row in range(len(criteria))]
    for row, (criterion, one) in enumerate(evidence[:_MOST_ROWS]):
        joined.append((2, criterion, 3, row))
        if str(one.get("commit")) in numbers:
            joined.append((3, row, 4, numbers[str(one.get("commit"))]))
    told = f"{len(anchors)} requirements, {len(criteria)} criteria, {len(evidence)} proofs, {len(commits)} commits"
    width = _COLUMN * len(boxes)
    drawn = [f'<svg class="graph" viewBox="0 0 {width} {height + 4:.0f}" role="img" aria-label="{told}">']
    drawn += [_edge(one, places) for one in joined]
    drawn += [
        _boxed(column, places[column][row], *box) for column, its in enumerate(boxes) for row, box in enumerate(its)
    ]
    return "".join((*drawn, "</svg>"))


def _edge(joined: tuple[int, int, int, int], places: Sequence[Sequence[float]]) -> str:
    column, row, other, below = joined
    x, y = column * _COLUMN + _BOX, places[column][row] + _ROW / 2
    to_x, to_y = other * _COLUMN, places[other][below] + _ROW / 2
    middle = (x + to_x) / 2
    return f'<path d="M{x:.0f} {y:.0f}C{middle:.0f} {y:.0f} {middle:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"/>'


def _boxed(column: int, y: float, text: str, state: str) -> str:
    shown = text if len(text) <= 22 else f"{text[:21]}…"
    x = column * _COLUMN
    return (
        f'<g class="{state}"><title>{t(text, 500)}</title>'
        f'<rect x="{x}" y="{y + 3:.0f}" width="{_BOX}" height="{_ROW - 8}" rx="4"/>'
        f'<text x="{x + 8}" y="{y + 20:.0f}">{t(shown)}</text></g>'
    )
