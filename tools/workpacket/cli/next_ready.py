"""What `next` prints, computed from the packets."""

from __future__ import annotations

from workpacket.cli.cached_output import Output
from workpacket.cli.options import Arguments
from workpacket.cli.read_only import facts_from_summaries, open_for_reading, output
from workpacket.lifecycle.next_steps import Ready, ready
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.report.json_report import render_envelope


def compute(arguments: Arguments) -> Output:
    repository = open_for_reading()
    agent = arguments.value("for")
    rows = ready(facts_from_summaries(repository), agent)
    text = _as_json(rows) if arguments.flag("json") else _as_text(rows)
    # What an agent holds depends on the time, because leases end.
    return output(repository, text, lasts=not agent)


def _as_json(rows: list[Ready]) -> str:
    listed: list[Json] = [
        {
            "id": row.id,
            "lane": row.lane,
            "next": row.command,
            "risk": row.risk,
            "waiting": row.waiting,
            "since": row.since,
        }
        for row in rows
    ]
    return render_envelope("next", exits.OK, [], {"ready": listed})


def _as_text(rows: list[Ready]) -> str:
    lines = []
    for row in rows:
        waiting = f"  {row.waiting} wait for it" if row.waiting else ""
        lines.append(f"{row.id}  {row.lane}  {row.risk or '-'}  since {row.since}{waiting}")
    if not rows:
        lines.append("nothing is ready")
    lines.append(f"next: {rows[0].command if rows else 'workpacket status'}")
    return "\n".join(lines) + "\n"
