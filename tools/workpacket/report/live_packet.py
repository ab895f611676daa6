"""Pages about one packet or run, and about what is waiting for a person. They show the JSON answers of commands: a page
shows what the terminal would show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from workpacket.model.lanes import lane_words
from workpacket.model.wording import counted
from workpacket.report.board import sign_of
from workpacket.report.live_page import (
    Form,
    Site,
    command,
    ends,
    form,
    moment,
    packet_link,
    page,
    paragraphs,
    run_link,
    t,
    unmet_list,
)

Answer: TypeAlias = Mapping[str, object]
_EVENTS: Final = 200
_FINE: Final = frozenset({"pass", "not_applicable"})
_SAID: Final = ("holder", "to", "by", "verdict", "reason", "branch", "commit", "until", "rule", "target", "text", "run")


def _rows(data: Answer, name: str) -> Sequence[Answer]:
    found = data.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _words(data: Answer, name: str) -> Sequence[str]:
    found = data.get(name)
    return [str(one) for one in found] if isinstance(found, list) else []


def _part(data: Answer, name: str) -> Answer:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


# ---- a packet ----------------------------------------------------------------------------------------------------


class PacketPage:
    """What the `show`, `log show`, `packet contract` and `approvals list` commands say about one packet; `changes` is
    the difference between its contract and the approved one; `forge` is the repository's address on its forge.
    """

    def __init__(
        self, show: Answer, history: Answer, contract: Answer, approvals: Answer, changes: Sequence[str], forge: str
    ) -> None:
        self.show, self.history, self.contract, self.approvals = show, history, contract, approvals
        self.changes, self.forge = changes, forge

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
        name = t(self.show.get("id", ""))
        yield f'<p class="said"><a href="{site.at}/audit#{name}">Trace and evidence</a>, in the audit</p>\n'
        yield from self._missing()
        yield from _forms(site, forms)
        yield from self._task(site)
        yield from self._differences()
        yield from self._runs(site)
        yield from self._approvals()
        yield from self._timeline(site)

    def _missing(self) -> Iterator[str]:
        unmet = _rows(self.show, "unmet")
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
            if listed := _words(show, name):
                yield f"<div><dt>{label}</dt><dd>{'<br>'.join(map(t, listed[:200]))}</dd></div>\n"
        if depends := _rows(show, "depends"):
            each = [
                f"{packet_link(site, str(one.get('id')))} {t(lane_words(str(one.get('lane', ''))))}" for one in depends
            ]
            yield f"<div><dt>Depends on</dt><dd>{'<br>'.join(each)}</dd></div>\n"
        files = ", ".join(map(str, _part(show, "files").values()))
        yield f"<div><dt>Files</dt><dd>{t(files)}</dd></div>\n" if files else ""
        yield "</dl>\n"
        if criteria := _rows(show, "criteria"):
            yield '<h3>Done means</h3>\n<ol class="criteria">\n'
            for one in criteria:
                yield f"<li>{_criterion(one, self.forge)}</li>\n"
            yield "</ol>\n"
        yield "</section>\n"

    def _differences(self) -> Iterator[str]:
        if not self.changes:
            return
        yield '<section aria-labelledby="changes-title"><h2 id="changes-title">Changed since it was approved</h2>\n'
        yield '<pre class="changes">'
        for line in self.changes[:2000]:
            kind = {"+": "ins", "-": "del"}.get(line[:1])
            yield f"<{kind}>{t(line)}</{kind}>\n" if kind else f"{t(line)}\n"
        yield "</pre></section>\n"

    def _runs(self, site: Site) -> Iterator[str]:
        runs = _rows(self.show, "runs")
        if runs:
            yield '<section aria-labelledby="runs-title"><h2 id="runs-title">Runs</h2>\n<ul class="plain">\n'
            for one in runs:
                code = f" ({t(one['code'])})" if one.get("code") else ""
                yield f"<li>{run_link(site, str(one.get('run', '')))} {t(one.get('state', ''))}{code}"
                yield f"<div>{command(str(one['command']))}</div></li>\n" if one.get("command") else "</li>\n"
            yield "</ul></section>\n"

    def _approvals(self) -> Iterator[str]:
        gates = _rows(self.approvals, "gates")
        if not gates:
            return
        yield '<section aria-labelledby="approvals-title"><h2 id="approvals-title">Approvals</h2>\n'
        for gate in gates:
            state = "met" if gate.get("met") else "not met"
            yield f"<h3>{t(gate.get('gate', ''))}: {state}</h3>\n<ul class='plain'>\n"
            for one in _rows(gate, "decisions"):
                against = ", ".join(_words(one, "against"))
                yield f"<li>{t(one.get('decision', ''))} by {t(one.get('approver', ''))} ({t(one.get('role', ''))}) "
                yield f"{moment(str(one.get('issued_at') or ''))}{f': {t(against)}' if against else ''}</li>\n"
            yield "</ul>\n"
            yield from unmet_list(_rows(gate, "unmet")) if gate.get("unmet") else ()
        yield "</section>\n"

    def _timeline(self, site: Site) -> Iterator[str]:
        events = _rows(self.history, "events")
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


def _commit(commit: str, forge: str) -> str:
    shown = f"<code>{t(commit[:12])}</code>"
    is_id = forge.startswith("https://") and commit.isalnum()
    return f'<a href="{t(forge)}/commit/{t(commit)}" rel="noreferrer">{shown}</a>' if is_id else shown


def _event(site: Site, event: Answer, forge: str) -> Iterator[str]:
    data, actor = _part(event, "data"), _part(event, "actor")
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


def _forms(site: Site, forms: Sequence[Form]) -> Iterator[str]:
    if not forms:
        return
    yield '<section aria-labelledby="acts-title"><h2 id="acts-title">Actions</h2>\n<div class="acts">\n'
    if site.actor:
        for one in forms:
            yield from form(site, one)
    else:
        yield '<ul class="plain">'
        yield from (f"<li>{t(one.title)}: {command(one.command)}</li>" for one in forms)
        yield "</ul><p>These pages only read. To act in them: <code>workpacket board serve --write</code></p>"
    yield "</div></section>\n"


# ---- what waits for a person -------------------------------------------------------------------------------------


def waiting_content(site: Site, report: Answer, questions: Answer, unknown: str) -> Iterator[str]:
    """Yield what is waiting for the viewer, then what is waiting for others; `unknown` is why the runs are not
    known."""
    waiting, leases, asked = _rows(report, "waiting"), _rows(report, "leases"), _rows(questions, "questions")
    yield "<h1>What waits for a person</h1>\n"
    if not (waiting or leases or asked or unknown):
        yield "<p>Nothing waits.</p>\n"
    if asked:
        yield '<section aria-labelledby="asked"><h2 id="asked">Questions of runs</h2>\n<ul class="plain">\n'
        for one in asked:
            answers = ", ".join(_words(one, "answers"))
            question = t(one.get("question", ""), 1000)
            yield f"<li>{run_link(site, str(one.get('run', '')))}: {question} ({t(answers)})</li>\n"
        yield "</ul></section>\n"
    if unknown:
        yield f"<p>The runs are not known: {t(unknown, 500)}</p>\n"
    for others in (False, True):
        yield from _needs(site, [one for one in waiting if bool(one.get("others")) == others], others=others)
    if leases:
        yield '<section aria-labelledby="leases"><h2 id="leases">Leases that end soon</h2>\n<ul class="plain">\n'
        for one in sorted(leases, key=lambda one: bool(one.get("others"))):
            until = ends(str(one.get("ends", "")))
            yield f"<li>{_titled(site, one)}<div>held by {t(one.get('holder', ''), 100)}, {until}</div></li>\n"
        yield "</ul></section>\n"


def _needs(site: Site, waiting: Sequence[Answer], *, others: bool) -> Iterator[str]:
    needs = dict.fromkeys(str(one.get("for", "")) for one in waiting)
    for number, need in enumerate(needs):
        name, title = f"need-{number}{'-others' if others else ''}", need.capitalize()
        title = f"{title} from someone else" if others else title
        yield f'<section aria-labelledby="{name}"><h2 id="{name}">{t(title)}</h2>\n<ul class="plain">\n'
        for one in waiting:
            if one.get("for") == need:
                detail = f"; {t(one['detail'], 500)}" if one.get("detail") else ""
                since = moment(str(one.get("since", "")))
                yield f'<li>{_titled(site, one)}<div class="said">{since}{detail}</div></li>\n'
        yield "</ul></section>\n"


def _titled(site: Site, one: Answer) -> str:
    name = str(one.get("id", ""))
    title = f" {t(one['title'], 200)}" if one.get("title") else ""
    return f"{packet_link(site, name)}{title}"


# ---- runs --------------------------------------------------------------------------------------------------------


def runs_content(site: Site, answer: Answer, problem: str) -> Iterator[str]:
    """Yield the table of runs; `problem` is why the runs are not known."""
    rows = _rows(answer, "runs")
    yield "<h1>Runs</h1>\n"
    if problem:
        yield f"<p>{t(problem, 500)}</p>\n"
    if not rows:
        yield "<p>There are no runs here.</p>\n"
        return
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Table of runs"><table>\n<thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in ("Run", "State", "Packet", "Attention", "Since"))
    yield "</tr></thead><tbody>\n"
    for one in rows[:1000]:
        packet = packet_link(site, str(one["packet"])) if one.get("packet") else ""
        yield f'<tr><th scope="row">{run_link(site, str(one.get("run", "")))}</th>'
        yield f"<td>{_run_state(one)}</td><td>{packet}</td>"
        yield f"<td>{t(one.get('attention', ''))}</td><td>{moment(_utc(str(one.get('since', ''))))}</td></tr>\n"
    yield "</tbody></table></div>\n"


def _run_state(one: Answer) -> str:
    state = str(one.get("state", ""))
    return f'<span class="chip run-{t(state)}">{t(state)}</span>'


def _utc(moment_shown: str) -> str:
    """Return a time shown by the runtime, in the form used in the log."""
    return f"{moment_shown.replace(' ', 'T')}Z" if len(moment_shown) == 19 else moment_shown


def run_content(site: Site, shown: Answer, plan: Answer, forms: Sequence[Form]) -> Iterator[str]:
    """Yield one run: the output of `runs show` and of `resume --plan`."""
    yield f"<p class='crumb'><a href='{site.at}/runs'>Runs</a></p>\n<h1>{t(shown.get('run', ''))}</h1>\n"
    packet = f" of {packet_link(site, str(shown['packet']))}" if shown.get("packet") else ""
    yield f'<p class="state">{_run_state(shown)}{packet}, attempt {t(shown.get("attempt", ""))}, '
    yield f"{t(shown.get('steps', 0))} steps, {t(shown.get('effects', 0))} effects</p>\n"
    yield from _decision(plan)
    yield from _forms(site, forms)
    events = _rows(shown, "events")
    yield from _bars(events)
    yield '<section aria-labelledby="events-title"><h2 id="events-title">Events</h2>\n<ol class="timeline">\n'
    for event in reversed(events[-_EVENTS:]):
        data = _part(event, "data")
        said = "; ".join(
            f"{t(name)}: {t(value, 300)}"
            for name, value in data.items()
            if isinstance(value, (str, int)) and value != ""
        )
        yield f"<li>{moment(_utc(str(event.get('time', ''))))} <strong>{t(event.get('type', ''))}</strong>"
        yield f'<div class="said">{said}</div></li>\n' if said else "</li>\n"
    yield "</ol></section>\n"


def _decision(plan: Answer) -> Iterator[str]:
    decision = _part(plan, "decision")
    if not decision:
        return
    code = f" ({t(decision['code'])})" if decision.get("code") else ""
    title = f"Resume: {t(decision.get('action', ''))}{code}"
    yield f'<section aria-labelledby="plan-title"><h2 id="plan-title">{title}</h2>\n'
    checks = _rows(decision, "checks")
    stopping = [check for check in checks if check.get("result") not in _FINE]
    yield from _checks(stopping)
    yield f"<details><summary>{counted(len(checks) - len(stopping), 'check')} passed or not applicable</summary>\n"
    yield from _checks([check for check in checks if check.get("result") in _FINE])
    yield "</details>\n"
    yield f"<p>Next: {command(str(plan['next']))}</p>\n" if plan.get("next") else ""
    yield "</section>\n"


def _checks(checks: Sequence[Answer]) -> Iterator[str]:
    yield '<ul class="plain">\n' if checks else ""
    for check in checks:
        result = str(check.get("result", ""))
        details = "; ".join(_words(check, "details"))
        yield f'<li><span class="result {t(result)}">{t(result.replace("_", " "))}</span> '
        yield f"{t(check.get('check', ''))} {t(details, 500)}</li>\n"
    yield "</ul>\n" if checks else ""


_WIDTH: Final = 720
_ROW: Final = 22
_NAMED: Final = 200


def _bars(events: Sequence[Answer]) -> Iterator[str]:
    """Yield the steps and effects over time: one bar each, with a length that shows how long the step or effect
    took."""
    steps = [
        event for event in events if str(event.get("type", "")) in {"step.completed", "step.failed", "effect.succeeded"}
    ]
    times = [at for event in events if (at := _seconds(str(event.get("time", "")))) is not None]
    if not steps or not times:
        return
    first, last = min(times), max(times)
    span = max(last - first, 1)
    steps = steps[-60:]
    height = _ROW * len(steps)
    yield '<section aria-labelledby="bars-title"><h2 id="bars-title">Steps over time</h2>\n'
    told = f"{len(steps)} steps; their times are in the list of events"
    yield f'<svg class="bars" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{told}">'
    for number, event in enumerate(steps):
        data = _part(event, "data")
        end = _seconds(str(event.get("time", ""))) or first
        took = data.get("ms")
        seconds = took / 1000 if isinstance(took, int) else 0.0
        start = max(end - seconds, first)
        left = _NAMED + (start - first) / span * (_WIDTH - _NAMED - 8)
        width = max((end - start) / span * (_WIDTH - _NAMED - 8), 4)
        failed = " failed" if event.get("type") == "step.failed" else ""
        y = number * _ROW
        yield f'<text x="0" y="{y + 15}">{t(str(data.get("step", ""))[:28])}</text>'
        yield f'<rect class="bar{failed}" x="{left:.1f}" y="{y + 4}" width="{width:.1f}" height="{_ROW - 8}" rx="2"/>'
    yield "</svg></section>\n"


def _seconds(shown: str) -> float | None:
    try:
        return datetime.fromisoformat(shown).timestamp()
    except ValueError:
        return None
