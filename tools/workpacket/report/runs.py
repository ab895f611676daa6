"""Runs on a terminal: a list, the timeline of a run, the checks of a decision, unfinished work. Rows are plain values.

The runs of a packet are shown from its log alone, or combined with the run store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Final, Literal, NamedTuple
from urllib.parse import quote as quoted

from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.fold import LinkedRun, PacketState
from workpacket.model.canonical import Json
from workpacket.model.wording import next_line
from workpacket.problem import Problem
from workpacket.report.terminal import PLAIN, Role, Style, escape, escape_lines, text_width, wrap
from workpacket.value import Value, replace

Standing = Literal["live", "stale", "blocked", "ended", "not begun", "open"]

TEMPORAL = "temporal:"  # how the store of a workflow is called in a packet's log; its namespace follows
# An address that means the same wherever it is shown: no account, no query, nothing to escape.
_PAGES: Final = lazy_pattern(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?")

_MEANING = {
    "live": "a process is running",
    "stale": "its process has ended",
    "blocked": "it stopped",
    "ended": "its link was not closed",
    "not begun": "it was linked but never started",
    "open": "its store is not here",
}


class PacketRun(Value):
    """A run that is unfinished, or that was stopped and not resumed. `code` is its stop reason, `command` is what to do
    now, and `page` is the address of its page, if it has one.
    """

    run: str
    state: Standing
    code: str = ""
    command: str = ""
    page: str = ""

    @property
    def words(self) -> str:
        """As in `blocked (verification_failed)`."""
        return f"{self.state} ({self.code})" if self.code else self.state

    @property
    def sentence(self) -> str:
        meaning = "" if self.state == "blocked" and self.code else f": {_MEANING[self.state]}"
        return f"{self.run} is {self.words}{meaning}"

    def as_json(self) -> dict[str, Json]:
        return {"run": self.run, "state": self.state, "code": self.code, "command": self.command, "page": self.page}


def linked_runs(state: PacketState, *, unfinished: bool, pages: str = "") -> tuple[PacketRun, ...]:
    """Return the runs according to the log. Stopped runs of a finished packet need no attention. `pages` is the address
    of Temporal's pages, from the policy.
    """
    return tuple(_of_log(state, pages, unfinished=unfinished))


def page_of(run: LinkedRun, pages: str) -> str:
    """Return the address of a workflow's page; '' if the run is not a workflow, or the policy names no pages."""
    if not run.store.startswith(TEMPORAL) or not _PAGES.fullmatch(pages):
        return ""
    namespace = quoted(run.store.removeprefix(TEMPORAL), safe="", errors="replace")
    return f"{pages.rstrip('/')}/namespaces/{namespace}/workflows/{quoted(run.run, safe='', errors='replace')}"


def _of_log(state: PacketState, pages: str, *, unfinished: bool) -> Iterable[PacketRun]:
    for run in state.runs:
        page = page_of(run, pages)
        there = f"temporal workflow describe -w {quote(run.run)}" if run.store.startswith(TEMPORAL) else ""
        if run.closed is None:
            command = there or f"workpacket runtime runs unlink {quote(run.run)} --reason TEXT"
            yield PacketRun(run.run, "open", "", command, page)
        elif unfinished and run.closed.text("outcome") == "stopped":
            command = there or f"workpacket resume {quote(run.run)} --plan"
            yield PacketRun(run.run, "blocked", run.closed.text("code") or "", command, page)


def seen(run: PacketRun, state: Standing, code: str = "") -> PacketRun:
    """Return the same run, with its state according to the store."""
    name = quote(run.run)
    commands = {"live": f"workpacket runtime runs tail {name}", "ended": "workpacket runtime runs settle"}
    commands["not begun"] = commands["ended"]
    return replace(run, state=state, code=code, command=commands.get(state, f"workpacket resume {name} --plan"))


def mark(runs: Sequence[PacketRun]) -> str:
    """Describe all runs of a packet in a few words, such as `1 run live, 1 blocked (stalled)`; '' if there are none."""
    counts = Counter(run.words for run in runs)
    told = [f"{count} {words}" for words, count in counts.items()]
    return f"runs: {', '.join(told)}" if told else ""


_STATE_ROLES: dict[str, Role] = {
    "live": "info", "completed": "good", "interrupted": "warning", "stopped": "error", "cancelled": "warning",
    "moved": "info",
    "pass": "good", "confirmed": "good", "complete": "good", "confirm": "warning", "warn": "warning", "block": "error",
}  # fmt: skip
_SIGNS: dict[str, tuple[str, Role]] = {
    "begin": (">", "info"), "done": ("+", "good"), "wait": ("?", "warning"), "fail": ("x", "error"),
    "mark": ("*", "code"), "end": ("=", "good"),
}  # fmt: skip


class RunRow(NamedTuple):
    id: str
    state: str
    attention: str
    since: str


class TimelineEvent(NamedTuple):
    """One event of a timeline; `sign` is the symbol for its kind."""

    version: int
    time: str
    sign: str
    text: str


class CheckRow(NamedTuple):
    name: str
    result: str
    code: str
    details: Sequence[str]


def render_runs(rows: Sequence[RunRow], style: Style = PLAIN) -> str:
    """Return one line for each run; on a narrow terminal the id is on a separate line."""
    if not rows:
        return "no runs\n"
    names = [escape(row.id) for row in rows]
    widths = list(map(text_width, names))
    width = max(widths)
    narrow = style.columns is not None and width + 40 > style.columns
    states = {state: style.paint(f"{state:<11}", _STATE_ROLES.get(state, "info")) for state in {r.state for r in rows}}
    lines: list[str] = []
    for (_, state, attention, since), name, own in zip(rows, names, widths, strict=True):
        rest = "  ".join(filter(None, (states[state], since, attention and escape(attention)))).rstrip()
        shown = style.paint(name, "code")
        lines.append(f"{shown}\n  {rest}" if narrow else f"{shown}{' ' * (width - own)}  {rest}")
    return "\n".join(lines) + "\n"


def render_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Return what is known about one run, one line each; empty values are left out."""
    shown = [(name, escape(value)) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    return "".join(f"{name:<{width}}  {value}\n" for name, value in shown)


def rows_of_dependencies(data: Mapping[str, Json]) -> list[Json]:
    """Return, for each file in a `lockfile_changed` event, its packages by kind and their number."""
    files = data.get("lockfiles")
    return [one for one in map(_row_of_file, files if isinstance(files, list) else ()) if one]


def _row_of_file(row: Json) -> dict[str, Json]:
    if not isinstance(row, Mapping):
        return {}
    direct = row.get("direct")
    kinds = direct if isinstance(direct, Mapping) else {}
    named: dict[str, Json] = {}
    for kind in ("added", "removed", "updated"):
        listed = kinds.get(kind)
        named[kind] = (
            [str(one.get("name")) for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
        )
    return {"path": str(row.get("path")), "new_packages": row.get("new_packages") or 0, **named}


_MOST_PACKAGES = 5
_KINDS_OF_CHANGE = {"added": "+", "removed": "-", "updated": "~"}


def told_of_dependencies(data: Mapping[str, Json]) -> list[str]:
    """Return the lines that describe a `lockfile_changed` event: packages, their number, and warnings."""
    lines = []
    for row in rows_of_dependencies(data):
        assert isinstance(row, Mapping)
        changes = []
        for kind, sign in _KINDS_OF_CHANGE.items():
            names = row[kind]
            assert isinstance(names, list)
            more = f" and {len(names) - _MOST_PACKAGES} more" if len(names) > _MOST_PACKAGES else ""
            shown = ", ".join(map(str, names[:_MOST_PACKAGES]))
            changes += [f"{sign}{len(names)} ({shown}{more})"] if names else []
        count = f"{row['new_packages']} new in all" if row["new_packages"] else ""
        lines.append(f"{row['path']}: {', '.join([*changes, *filter(None, [count])]) or 'changed'}")
    warnings = data.get("warnings")
    lines += [f"warning: {one}" for one in warnings] if isinstance(warnings, list) else []
    return lines


def render_timeline(moments: Iterable[TimelineEvent], style: Style = PLAIN) -> str:
    return "".join(f"{line}\n" for moment in moments for line in _moment_lines(moment, style))


def _moment_lines(moment: TimelineEvent, style: Style) -> list[str]:
    sign, role = _SIGNS[moment.sign]
    head = f"{moment.version:>5}  {moment.time}  "
    text = escape(moment.text)
    room = None if style.columns is None else style.columns - len(head) - 2
    if room is None or room < 20:
        return [f"{head}{style.paint(sign, role)} {text}"]
    first, *rest = wrap(text, room)
    return [f"{head}{style.paint(sign, role)} {first}", *(" " * (len(head) + 2) + line for line in rest)]


def render_checks(checks: Sequence[CheckRow], style: Style = PLAIN) -> str:
    """Return the checks of a decision, in order."""
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        result = style.paint(f"{check.result.replace('_', ' '):<14}", _STATE_ROLES.get(check.result, "gutter"))
        lines.append(f"  {check.name:<{width}}  {result}  {escape(check.code)}".rstrip())
        lines += [f"    {escape(detail)}" for detail in check.details]
    return "\n".join(lines) + "\n"


class QuestionRow(NamedTuple):
    """A question for a person: a heading, the facts to look at, and the digest that an answer must contain."""

    id: str
    question: str
    facts: Sequence[tuple[str, str]]
    digest: str


def render_questions(rows: Iterable[QuestionRow], style: Style = PLAIN) -> str:
    lines: list[str] = []
    for row in rows:
        lines.append(f"question {style.paint(escape(row.id), 'code')}: {escape(row.question)}\n")
        facts = render_facts((*row.facts, ("digest", row.digest)))
        lines += [f"  {line}\n" for line in facts.splitlines()]
    return "".join(lines)


def painted_next_line(text: str, style: Style) -> str:
    """Return what comes next; each alternative is on a line of its own, so that it can be pasted."""
    label, _, rest = next_line(escape(text)).partition(" ")
    first, *others = rest.split(", or: ")
    lines = [f"{style.paint(label, 'help')} {first}\n"]
    again = style.paint("or:".rjust(len(label)), "help")
    lines += [f"{again} {other}\n" for other in others]
    return "".join(lines)


class WorkRow(NamedTuple):
    id: str
    where: str
    why: str
    command: str
    stops: tuple[Problem, ...]
    doubts: tuple[Problem, ...] = ()


def render_work(
    ready: Sequence[WorkRow], stopped: Sequence[WorkRow], style: Style = PLAIN, *, numbered: bool = False
) -> str:
    lines = [style.paint("would continue:", "good")] if ready else []
    for number, row in enumerate(ready, 1):
        lines.append(
            f"{f'{number:>2}' if numbered else ' '} {style.paint(escape(row.id), 'code')}  {escape(row.where)}"
        )
        lines.append(f"    {escape(row.why)}")
        lines += _reasons(row.doubts, "warning", style)
        lines += _help(row.command, style)
    lines += [style.paint("stopped:", "warning")] if stopped else []
    for row in stopped:
        lines.append(f"  {style.paint(escape(row.id), 'code')}  {escape(row.where)}")
        lines += [*_reasons(row.stops, "error", style), *_reasons(row.doubts, "warning", style)]
    return "".join(f"{line}\n" for line in lines)


def _reasons(rows: Sequence[Problem], role: Role, style: Style) -> Iterator[str]:
    for row in rows:
        yield f"    {style.paint(row.code, role)}: {escape(row.message)}"
        yield from _help(row.hint, style)


def _help(text: str, style: Style) -> Iterator[str]:
    first, *others = escape(text).split(", or: ")
    yield f"    {style.paint('help:', 'help')} {first}"
    for other in others:
        yield f"    {style.paint('  or:', 'help')} {other}"


def render_task(id_: str, said: Sequence[str], task: str, command: str) -> str:
    """Return one block: what was done, and what the caller does next."""
    lines = [f"{escape(id_)} goes on", *(escape(one) for one in said)]
    what = escape_lines(task).rstrip("\n") if task else f"next: {escape(command)}"
    return "".join(f"{line}\n" for line in [*lines, what])


def render_refusal(id_: str, code: str, message: str) -> str:
    return f"{escape(id_)} cannot continue: {escape(message)} ({code})\n"
