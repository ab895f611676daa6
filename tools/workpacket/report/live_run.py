"""Pages about runs: all runs with the queue and the threads, and one run with its steps as a tree and as a time line.

They show the JSON answers of commands. Inputs and results are shown as they are stored: secrets were hidden before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from workpacket.model.wording import counted
from workpacket.report.catalogue import catalogue
from workpacket.report.live_page import (
    Answer,
    Form,
    Site,
    actions,
    command,
    moment,
    packet_link,
    part_of,
    rows_of,
    run_link,
    t,
    words_of,
)

_EVENTS: Final = 200
_MOST_RUNS: Final = 1000
_MOST_STEPS: Final = 1000
_FINE: Final = frozenset({"pass", "not_applicable"})
_SECONDS: Final = 1_000_000


# ---- all runs ----------------------------------------------------------------------------------------------------


class QueuedJobs(NamedTuple):
    """The jobs of a queue; `problem` is why they are not known."""

    jobs: Sequence[Answer] = ()
    problem: str = ""


def runs_content(
    site: Site, answer: Answer, queue: QueuedJobs | None, forms: Sequence[Form], now: datetime, problem: str
) -> Iterator[str]:
    """Yield the table of runs, with the workers; `queue` is None if the store has none, and `problem` is why the runs
    are not known."""
    rows = rows_of(answer, "runs")
    yield "<h1>Runs</h1>\n"
    yield f"<p>{t(problem, 500)}</p>\n" if problem else ""
    if not rows and not problem:
        yield "<p>There are no runs here.</p>\n"
    if rows:
        yield f'<p class="state">{_summed(rows, now)}</p>\n'
        yield from _table(site, rows[:_MOST_RUNS])
        left = len(rows) - _MOST_RUNS
        yield f"<p>{left} more: {command('workpacket runtime runs list')}</p>\n" if left > 0 else ""
        yield from _workers(rows)
    if queue is not None:
        yield from _queue(site, queue)
    yield from _threads(site, rows_of(answer, "threads"))
    yield from actions(site, forms)


def _summed(rows: Sequence[Answer], now: datetime) -> str:
    """Return the number of runs in each state, and how many ended lately."""
    states = Counter(str(one.get("state", "")) for one in rows)
    told = [f"{count} {t(state)}" for state, count in states.most_common()]
    for minutes in (5, 60):
        since = now.timestamp() - 60 * minutes
        ended = sum(
            one.get("state") == "completed" and (_seconds(str(one.get("since", ""))) or 0) >= since for one in rows
        )
        told.append(f"{ended} completed in the last {minutes} minutes ({ended / minutes:.2g} a minute)")
    return "; ".join(told)


def _table(site: Site, rows: Sequence[Answer]) -> Iterator[str]:
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Table of runs"><table>\n<thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in ("Run", "State", "Packet", "Attention", "Since"))
    yield "</tr></thead><tbody>\n"
    for one in rows:
        packet = packet_link(site, str(one["packet"])) if one.get("packet") else ""
        yield f'<tr><th scope="row">{run_link(site, str(one.get("run", "")))}</th>'
        yield f"<td>{_run_state(one)}</td><td>{packet}</td>"
        yield f"<td>{t(one.get('attention', ''))}</td><td>{moment(_utc(str(one.get('since', ''))))}</td></tr>\n"
    yield "</tbody></table></div>\n"


def _workers(rows: Sequence[Answer]) -> Iterator[str]:
    """Yield the processes that hold runs now."""
    held: dict[str, list[Answer]] = {}
    for one in rows:
        if one.get("holder") and one.get("state") == "live":
            held.setdefault(str(one["holder"]), []).append(one)
    if held:
        yield '<section aria-labelledby="workers"><h2 id="workers">Workers</h2>\n<ul class="plain">\n'
        for holder, its in sorted(held.items()):
            names = ", ".join(t(one.get("run", "")) for one in its[:5])
            yield f"<li>{t(holder, 200)}: {counted(len(its), 'run')} ({names})</li>\n"
        yield "</ul></section>\n"


def _queue(site: Site, queue: QueuedJobs) -> Iterator[str]:
    yield '<section aria-labelledby="queue"><h2 id="queue">Queue</h2>\n'
    states = Counter(str(job.get("state", "")) for job in queue.jobs)
    told = ", ".join(f"{count} {t(state)}" for state, count in states.most_common())
    yield f"<p>{t(queue.problem, 500) if queue.problem else told or 'Nothing is waiting.'}</p>\n<ul class='plain'>\n"
    for job in queue.jobs[:200]:
        said = f"{t(job.get('reason', ''))}: {t(job.get('detail', ''), 500)}"
        why = f"<div class='said'>{said}</div>" if job.get("reason") else ""
        tries = "1 try" if job.get("tries") == 1 else f"{t(job.get('tries', 0))} tries"
        yield f"<li>{t(job.get('job', ''))} {_run_state(job)} {run_link(site, str(job.get('run', '')))}, {tries}{why}"
        yield "</li>\n"
    yield "</ul></section>\n"


def _threads(site: Site, threads: Sequence[Answer]) -> Iterator[str]:
    """Yield the LangGraph threads, each with the packet that its name begins with."""
    if not threads:
        return
    yield '<section aria-labelledby="threads"><h2 id="threads">LangGraph threads</h2>\n<ul class="plain">\n'
    for one in threads[:200]:
        packet = f" of {packet_link(site, str(one['packet']))}" if one.get("packet") else ""
        events = counted(_number(one.get("version")), "record")
        yield f"<li>{run_link(site, str(one.get('run', '')))}{packet}, {events}</li>\n"
    yield "</ul></section>\n"


def _run_state(one: Answer) -> str:
    state = str(one.get("state", ""))
    return f'<span class="chip run-{t(state)}">{t(state)}</span>'


# ---- one run -----------------------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """A step, an effect, a wait or a child run. `path` contains the children that it belongs to. The times are in
    microseconds."""

    path: tuple[str, ...]
    kind: str
    state: str
    began: int
    ended: int
    tries: int
    said: str
    value: str

    @property
    def name(self) -> str:
        return self.path[-1]


def run_content(site: Site, shown: Answer, plan: Answer, forms: Sequence[Form]) -> Iterator[str]:
    """Yield one run: the output of `runs show` and of `resume --plan`."""
    yield f"<p class='crumb'><a href='{site.at}/runs'>Runs</a></p>\n<h1>{t(shown.get('run', ''))}</h1>\n"
    packet = f" of {packet_link(site, str(shown['packet']))}" if shown.get("packet") else ""
    yield f'<p class="state">{_run_state(shown)}{packet}, attempt {t(shown.get("attempt", ""))}, '
    counts = [counted(_number(shown.get(name)), name.rstrip("s")) for name in ("steps", "effects")]
    yield f"{', '.join(counts)}</p>\n"
    yield from _facts(shown)
    yield from _decision(plan)
    yield from actions(site, forms)
    events = rows_of(shown, "events")
    tree = _tree_of(_steps(events, str(shown.get("state", ""))))
    yield from _bars(list(_in_order(tree)))
    yield from _tree(tree)
    yield from _log(shown, events)


def _facts(shown: Answer) -> Iterator[str]:
    published = ((f"Published {name}", value) for name, value in part_of(shown, "published").items())
    facts = [
        ("Stopped by", _why(str(shown.get("attention") or ""))), ("Held by", shown.get("holder")),
        ("Waits", shown.get("waits")), ("In progress", ", ".join(words_of(shown, "in_flight"))), *published,
    ]  # fmt: skip
    if any(value for _, value in facts):
        yield '<dl class="pairs">\n'
        yield from (
            f"<div><dt>{t(name, 100)}</dt><dd>{t(value, 1000)}</dd></div>\n"
            for name, value in facts
            if value not in ("", None)
        )
        yield "</dl>\n"


def _why(code: str) -> str:
    """Return a stop reason in words, with what is usually done."""
    reason = catalogue().get(code)
    return f"{code}: {reason.title}. {reason.remedy}" if reason is not None else code


def _decision(plan: Answer) -> Iterator[str]:
    decision = part_of(plan, "decision")
    if not decision:
        return
    code = f" ({t(decision['code'])})" if decision.get("code") else ""
    title = f"Resume: {t(decision.get('action', ''))}{code}"
    yield f'<section aria-labelledby="plan-title"><h2 id="plan-title">{title}</h2>\n'
    checks = rows_of(decision, "checks")
    stopping = [check for check in checks if check.get("result") not in _FINE]
    yield from _checks(stopping)
    passed = counted(len(checks) - len(stopping), "check")
    yield f'<details id="passed"><summary>{passed} passed or not applicable</summary>\n'
    yield from _checks([check for check in checks if check.get("result") in _FINE])
    yield "</details>\n"
    yield f"<p>Next: {command(str(plan['next']))}</p>\n" if plan.get("next") else ""
    yield "</section>\n"


def _checks(checks: Sequence[Answer]) -> Iterator[str]:
    yield '<ul class="plain">\n' if checks else ""
    for check in checks:
        result = str(check.get("result", ""))
        details = "; ".join(words_of(check, "details"))
        yield f'<li><span class="result {t(result)}">{t(result.replace("_", " "))}</span> '
        yield f"{t(check.get('check', ''))} {t(details, 500)}</li>\n"
    yield "</ul>\n" if checks else ""


# The events that end something, and the state in which it then is.
_ENDS: Final = {
    "step.completed": ("step", "done"), "step.failed": ("step", "failed"),
    "effect.succeeded": ("effect", "done"), "effect.failed": ("effect", "failed"),
    "effect.resolved": ("effect", "settled"), "effect.matched": ("effect", "done before"),
    "wait.ended": ("wait", "done"),
}  # fmt: skip
_BEGINS: Final = {
    "step.started": ("step", "running"), "effect.started": ("effect", "running"), "wait.begun": ("wait", "waiting"),
    "effect.doubted": ("effect", "in doubt"),
}  # fmt: skip


def _steps(events: Sequence[Answer], run_state: str) -> Iterator[_Step]:
    """Yield the steps in the order in which they began. Those that a run left open are as its state says."""
    found: dict[tuple[tuple[str, ...], str], _Step] = {}
    last = max((_micros(event) for event in events), default=0)
    for event in events:
        kind, state = _ENDS.get(str(event.get("type")), None) or _BEGINS.get(str(event.get("type")), ("", ""))
        data = part_of(event, "data")
        if not kind or not data.get("step"):
            continue
        path, at = tuple(str(data["step"]).split("/")), _micros(event)
        before = found.get((path, kind))
        took = data.get("ms")
        spent = took * 1000 if isinstance(took, int) else 0
        began = min(at - spent, before.began) if before is not None else at - spent
        if data.get("child"):
            kind = "child run"
        tries = (before.tries if before is not None else 0) + (state in {"done", "failed"})
        found[path, kind] = _Step(
            path, kind, state, began, at if state not in {"running", "waiting"} else 0, tries,
            str(data.get("error") or data.get("note") or data.get("target") or ""), str(event.get("value") or ""),
        )  # fmt: skip
    for step in sorted(found.values(), key=lambda one: (one.began, len(one.path))):
        left = "interrupted" if run_state != "live" and step.state == "running" else step.state
        yield step._replace(state=left, ended=step.ended or last)


def _took(step: _Step) -> str:
    seconds = (step.ended - step.began) / _SECONDS
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class _Node(NamedTuple):
    """A step, the effects and waits with the same name, and what belongs to it."""

    here: list[_Step]
    below: dict[str, _Node]


def _tree_of(steps: Iterable[_Step]) -> _Node:
    root = _Node([], {})
    for step in [*steps][-_MOST_STEPS:]:
        node = root
        for name in step.path:
            node = node.below.setdefault(name, _Node([], {}))
        node.here.append(step)
    return root


def _in_order(node: _Node) -> Iterator[_Step]:
    """Yield each child run before what belongs to it."""
    yield from node.here
    for below in node.below.values():
        yield from _in_order(below)


def _tree(root: _Node) -> Iterator[str]:
    """Yield the steps as nested lists: each child run contains its own."""
    if root.below:
        yield '<section aria-labelledby="tree-title"><h2 id="tree-title">Steps</h2>\n'
        yield from _branch(root)
        yield "</section>\n"


def _branch(node: _Node) -> Iterator[str]:
    yield '<ul class="tree">\n'
    for name, below in node.below.items():
        yield "<li>"
        yield "<br>".join(map(_line, below.here)) or f"{t(name, 200)} <small>child run, not finished</small>"
        yield from _branch(below) if below.below else ()
        yield "</li>\n"
    yield "</ul>\n"


def _line(step: _Step) -> str:
    tries = f", {step.tries} tries" if step.tries > 1 else ""
    said = f" <span class='said'>{t(step.said, 300)}</span>" if step.said and step.said != step.name else ""
    kind = "" if step.kind == "step" else f" <small>{step.kind}</small>"
    state = f'<span class="result {t(step.state.replace(" ", "-"))}">{t(step.state)}</span>'
    value = f'<div class="said"><code>{t(step.value, 1000)}</code></div>' if step.value not in ("", "null") else ""
    return f"{state} {t(step.name, 200)}{kind} <small>{_took(step)}{tries}</small>{said}{value}"


_WIDTH: Final = 720
_ROW: Final = 22
_NAMED: Final = 200
_MOST_BARS: Final = 80


def _bars(steps: Sequence[_Step]) -> Iterator[str]:
    """Yield the steps over time: one bar each, with a length that shows how long it took; indented below its child
    run."""
    if not steps:
        return
    drawn = steps[-_MOST_BARS:]
    first, last = min(one.began for one in drawn), max(one.ended for one in drawn)
    span = max(last - first, 1)
    height = _ROW * len(drawn)
    yield '<section aria-labelledby="bars-title"><h2 id="bars-title">Time line</h2>\n'
    told = f"{len(drawn)} steps in {(last - first) / _SECONDS:.1f} s; the list below has their times"
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Time line, which scrolls">'
    yield f'<svg class="bars" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{told}">'
    for number, step in enumerate(drawn):
        left = _NAMED + (step.began - first) / span * (_WIDTH - _NAMED - 8)
        width = max((step.ended - step.began) / span * (_WIDTH - _NAMED - 8), 3)
        y, indent = number * _ROW, 10 * min(len(step.path) - 1, 6)
        named = t(step.name if len(step.name) <= 26 else f"{step.name[:25]}…")
        yield f'<text x="{indent}" y="{y + 15}">{named}</text>'
        kinds = f"{step.kind.replace(' ', '-')} {step.state.replace(' ', '-')}"
        yield f'<rect class="bar {kinds}" x="{left:.1f}" y="{y + 4}" width="{width:.1f}" height="{_ROW - 8}" rx="2">'
        yield f"<title>{t('/'.join(step.path), 200)}: {t(step.state)}, {_took(step)}</title></rect>"
    yield "</svg></div></section>\n"


def _log(shown: Answer, events: Sequence[Answer]) -> Iterator[str]:
    yield '<section aria-labelledby="events-title"><h2 id="events-title">Log</h2>\n<ol class="timeline">\n'
    for event in reversed(events[-_EVENTS:]):
        yield f"<li>{moment(_utc(str(event.get('time', ''))))} <strong>{t(event.get('type', ''))}</strong>"
        yield f'<div class="said">{_said(part_of(event, "data"))}</div>'
        value = str(event.get("value") or "")
        if value not in ("", "null"):
            yield f'<details id="value-{t(event.get("version", ""))}"><summary>As stored</summary>'
            yield f"<pre>{t(value, 4100)}</pre></details>"
        yield "</li>\n"
    yield "</ol>\n"
    if len(events) > _EVENTS:
        before = events[-_EVENTS].get("version", "")
        earlier = f"workpacket runtime runs show {shown.get('run')} --before {before}"
        yield f"<p>{len(events) - _EVENTS} earlier events: {command(earlier)}</p>\n"
    yield "</section>\n"


def _said(data: Mapping[str, object]) -> str:
    """Return the plain values of an event; a digest tells a person nothing."""
    return "; ".join(
        f"{t(name)}: {t(value, 300)}"
        for name, value in data.items()
        if isinstance(value, (str, int)) and value not in ("", False) and not str(value).startswith("jcs-1:")
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _micros(event: Answer) -> int:
    return _number(event.get("recorded_at"))


def _utc(moment_shown: str) -> str:
    """Return a time shown by the runtime, in the form used in the log."""
    return f"{moment_shown.replace(' ', 'T')}Z" if len(moment_shown) == 19 else moment_shown


def _seconds(shown: str) -> float | None:
    try:
        return datetime.fromisoformat(_utc(shown)).timestamp()
    except ValueError:
        return None
