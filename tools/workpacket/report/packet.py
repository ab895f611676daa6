"""One packet, as a person or an agent needs to see it to work on it: the task, its proofs, its holder, and what is
missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from workpacket.model.canonical import Json
from workpacket.model.lanes import lane_words
from workpacket.model.wording import counted
from workpacket.problem import Problem, by_remedy
from workpacket.report.terminal import Style, escape, wrap
from workpacket.value import Value

# The number of entries of a list that the short form shows; --full shows all.
_FEW: Final = 8
_LABEL: Final = 13
_SHORT: Final = 12


class CriterionView(Value):
    """A line of DONE_MEANS.

    `state` follows from the log; `proof` is the command, the location, or the reason why none is needed.
    """

    number: int
    text: str
    state: str = "open"
    proof: str = ""
    exit_code: int | None = None
    commit: str = ""

    def json(self) -> dict[str, Json]:
        return {
            "number": self.number,
            "text": self.text,
            "state": self.state,
            "proof": self.proof,
            "exit_code": self.exit_code,
            "commit": self.commit,
        }


class TaskView(Value):
    """What a packet's documents say. `unreadable` says why this is unknown."""

    title: str = ""
    what: str = ""
    why: str = ""
    criteria: tuple[CriterionView, ...] = ()
    scope: tuple[str, ...] = ()
    out_of_scope: tuple[str, ...] = ()
    risk: str = ""
    unreadable: str = ""

    def json(self) -> dict[str, Json]:
        return {
            "title": self.title,
            "what": self.what,
            "why": self.why,
            "criteria": [one.json() for one in self.criteria],
            "scope": list(self.scope),
            "out_of_scope": list(self.out_of_scope),
            "risk": self.risk,
        }


class PacketView(Value):
    """A packet to show. `rows` are facts from the log and the files, each with its label. `recent` are its last events,
    oldest first.
    """

    id: str
    lane: str
    holder: str
    task: TaskView | None
    rows: tuple[tuple[str, str], ...]
    recent: tuple[str, ...]
    events: int
    command: str
    unmet: tuple[Problem, ...]


def lines(view: PacketView, style: Style, *, full: bool) -> Iterator[str]:
    lane = f"{view.id} is {lane_words(view.lane) or 'without a log'}" + (
        f", held by {view.holder}" if view.holder else ""
    )
    yield style.paint(escape(lane), "code")
    for label, text in (*_task_rows(view.task, full=full), *view.rows):
        yield from _row(label, text, style)
    shown = view.recent if full else view.recent[-3:]
    for number, event in enumerate(shown):
        yield from _row(counted(view.events, "event")[: _LABEL - 1] if not number else "", event, style)
    if view.unmet:
        groups = by_remedy(view.unmet)
        yield from _row("missing", f"{counted(len(groups), 'condition')} for `{view.command}`", style)
        told = groups if full else groups[:_FEW]
        for group in told:
            hint = f" -> {group[0].hint}" if group[0].hint else ""
            yield from _row("", "; ".join(f"{one.message} ({one.code})" for one in group) + hint, style)
        if len(told) < len(groups):
            yield from _row("", f"and {len(groups) - len(told)} more (--full)", style)


def _task_rows(task: TaskView | None, *, full: bool) -> Iterator[tuple[str, str]]:
    if task is None:
        return
    if task.unreadable:
        yield "unreadable", task.unreadable
    said = [("what", task.what or task.title), ("why", task.why)]
    yield from ((label, text) for label, text in said if text)
    for number, one in enumerate(task.criteria):
        yield "done when" if not number else "", _criterion(one)
    for label, listed in (("scope", task.scope), ("out of scope", task.out_of_scope)):
        shown = listed if full else listed[:_FEW]
        rest = f", and {len(listed) - len(shown)} more (--full)" if len(shown) < len(listed) else ""
        if listed:
            yield label, ", ".join(shown) + rest
    if task.risk:
        yield "risk", task.risk


def _criterion(one: CriterionView) -> str:
    ended = f", exit {one.exit_code}" if one.exit_code else ""
    at = f" at {one.commit[:_SHORT]}" if one.commit else ""
    proof = f" ({one.proof}{ended}{at})" if one.proof else ""
    return f"{one.number}. [{one.state}] {one.text}{proof}"


def _row(label: str, text: str, style: Style) -> Iterator[str]:
    """Yield the label and the text; if the terminal's width is known, the text is wrapped and indented."""
    room = style.columns - _LABEL if style.columns and style.columns > 2 * _LABEL else None
    folded = wrap(escape(text), room) if room else [escape(text)]
    for number, line in enumerate(folded):
        head = label if not number else ""
        yield f"{style.paint(head, 'gutter') if head else ''}{' ' * (_LABEL - len(head))}{line}".rstrip()
