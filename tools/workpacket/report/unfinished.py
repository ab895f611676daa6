"""Unfinished work on a terminal: what would go on, what is stopped, and what an agent is to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workpacket.report.door import escape, escape_lines
from workpacket.report.style import PLAIN, Role, Style


class StopRow(NamedTuple):
    code: str
    message: str
    remedy: str


class WorkRow(NamedTuple):
    id: str
    where: str
    why: str
    command: str
    stops: tuple[StopRow, ...]
    doubts: tuple[StopRow, ...] = ()


def render_work(
    ready: Sequence[WorkRow], stopped: Sequence[WorkRow], style: Style = PLAIN, *, numbered: bool = False
) -> str:
    lines = [style.paint("would go on:", "good")] if ready else []
    for number, row in enumerate(ready, 1):
        lines.append(
            f"{f'{number:>2}' if numbered else ' '} {style.paint(escape(row.id), 'code')}  {escape(row.where)}"
        )
        lines.append(f"    {escape(row.why)}")
        lines += _reasons(row.doubts, "warning", style)
        lines.append(f"    {style.paint('help:', 'help')} {escape(row.command)}")
    lines += [style.paint("stopped:", "warning")] if stopped else []
    for row in stopped:
        lines.append(f"  {style.paint(escape(row.id), 'code')}  {escape(row.where)}")
        lines += [*_reasons(row.stops, "error", style), *_reasons(row.doubts, "warning", style)]
    return "".join(f"{line}\n" for line in lines)


def _reasons(rows: Sequence[StopRow], role: Role, style: Style) -> Iterator[str]:
    for row in rows:
        yield f"    {style.paint(row.code, role)}: {escape(row.message)}"
        yield f"    {style.paint('help:', 'help')} {escape(row.remedy)}"


def render_task(id_: str, said: Sequence[str], task: str, command: str) -> str:
    """One block: what was done, and what whoever called does next."""
    lines = [f"{escape(id_)} goes on", *(escape(one) for one in said)]
    what = escape_lines(task).rstrip("\n") if task else f"next: {escape(command)}"
    return "".join(f"{line}\n" for line in [*lines, what])


def render_refusal(id_: str, code: str, message: str) -> str:
    return f"{escape(id_)} does not go on: {escape(message)} ({code})\n"
