"""Runs on a terminal: a list, the timeline of one, the checks of a decision. Rows come in as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from workpacket.report.door import escape
from workpacket.report.style import PLAIN, Role, Style
from workpacket.report.width import text_width, wrap

_STATE_ROLES: dict[str, Role] = {
    "live": "info", "completed": "good", "interrupted": "warning", "stopped": "error", "cancelled": "warning",
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


class Moment(NamedTuple):
    """One event of a timeline; `sign` says which of the few sorts it is."""

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
    """One line for each run; on a narrow terminal the id stands on a line of its own."""
    if not rows:
        return "no runs\n"
    width = max(text_width(escape(row.id)) for row in rows)
    lines: list[str] = []
    for row in rows:
        name = escape(row.id)
        state = style.paint(f"{row.state:<11}", _STATE_ROLES.get(row.state, "info"))
        rest = "  ".join(filter(None, (state, row.since, escape(row.attention)))).rstrip()
        if style.columns is not None and width + 40 > style.columns:
            lines += [style.paint(name, "code"), f"  {rest}"]
        else:
            lines.append(f"{style.paint(name, 'code')}{' ' * (width - text_width(name))}  {rest}")
    return "\n".join(lines) + "\n"


def render_facts(facts: Iterable[tuple[str, str]]) -> str:
    """What is known of one run, a line each; what is empty is left out."""
    shown = [(name, escape(value)) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    return "".join(f"{name:<{width}}  {value}\n" for name, value in shown)


def render_timeline(moments: Iterable[Moment], style: Style = PLAIN) -> str:
    return "".join(f"{line}\n" for moment in moments for line in _moment_lines(moment, style))


def _moment_lines(moment: Moment, style: Style) -> list[str]:
    sign, role = _SIGNS[moment.sign]
    head = f"{moment.version:>5}  {moment.time}  "
    text = escape(moment.text)
    room = None if style.columns is None else style.columns - len(head) - 2
    if room is None or room < 20:
        return [f"{head}{style.paint(sign, role)} {text}"]
    first, *rest = wrap(text, room)
    return [f"{head}{style.paint(sign, role)} {first}", *(" " * (len(head) + 2) + line for line in rest)]


def render_checks(checks: Sequence[CheckRow], style: Style = PLAIN) -> str:
    """The checks of a decision, in their order."""
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        result = style.paint(f"{check.result.replace('_', ' '):<14}", _STATE_ROLES.get(check.result, "gutter"))
        lines.append(f"  {check.name:<{width}}  {result}  {escape(check.code)}".rstrip())
        lines += [f"    {escape(detail)}" for detail in check.details]
    return "\n".join(lines) + "\n"


class QuestionRow(NamedTuple):
    """What waits for a person: a heading, what is to be seen, and the digest that an answer is bound to."""

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


def next_line(text: str, style: Style = PLAIN) -> str:
    """The one line that says what to do now."""
    return f"{style.paint('next:', 'help')} {escape(text)}\n"
