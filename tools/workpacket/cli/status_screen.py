"""What `status` prints, computed from the packets."""

from __future__ import annotations

from collections import Counter

from workpacket.cli.cached_output import Output
from workpacket.cli.linked_runs import cache_dependencies, runs_of
from workpacket.cli.options import Arguments
from workpacket.cli.read_only import facts_from_summaries, open_for_reading, output
from workpacket.lifecycle.board_sync import hand_edits
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.gates import lease_held
from workpacket.lifecycle.next_steps import ready
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.event_types import FORKED
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope

_NO_LANES = (FORKED, "no log")


def compute(arguments: Arguments) -> Output:
    repository = open_for_reading()
    facts = facts_from_summaries(repository)
    counts = Counter(packet.lane or "no log" for packet in facts.packets.values())
    held = _held(facts)
    edits = [f"{packet.id} (line {line}: {token}, log: {packet.lane})" for packet, token, line in hand_edits(facts)]
    rows = ready(facts)
    runs = runs_of({name: packet.state for name, packet in facts.packets.items()})
    steady, also = cache_dependencies(runs)
    lasts = steady and not held
    if arguments.flag("json"):
        lanes: dict[str, Json] = dict(counts)
        listed: list[Json] = [*edits]
        names: list[Json] = [row.id for row in rows]
        holding: dict[str, Json] = dict(held)
        data: dict[str, Json] = {"lanes": lanes, "held": holding, "hand_edits": listed, "ready": names}
        data["runs"] = {name: [run.as_json() for run in its] for name, its in runs.items()}
        return output(repository, render_envelope("status", exits.OK, [], data), lasts=lasts, also=also)
    known = facts.policy.lanes.tokens
    tokens = (*known, *sorted(counts.keys() - {*known, *_NO_LANES}), *_NO_LANES)
    lines = [f"{counts[token]:6}  {escape(token)}" for token in tokens if counts[token]]
    lines += [f"held: {name} by {escape(holder)}" for name, holder in held.items()]
    lines += [f"run: {escape(run.sentence)}" for its in runs.values() for run in its]
    lines += [f"hand edit: {escape(edit)}" for edit in edits]
    lines.append(f"next: {_next(facts, counts, bool(edits), [row.command for row in rows])}")
    return output(repository, "\n".join(lines) + "\n", lasts=lasts, also=also)


def _held(facts: Facts) -> dict[str, str]:
    now = facts.moment.now
    found = {name: lease_held(packet.state, now) for name, packet in sorted(facts.packets.items())}
    return {name: holder for name, holder in found.items() if holder and facts.packets[name].lane == "IN_PROGRESS"}


def _next(facts: Facts, counts: Counter[str], edited: bool, commands: list[str]) -> str:
    if not facts.packets:
        return "workpacket new WP-1-NAME-v1 --what TEXT --why TEXT"
    if counts["no log"]:
        return "workpacket adopt"
    if edited:
        return "workpacket board sync --adopt, or workpacket board sync"
    if commands:
        return commands[0]
    stubs = sorted(name for name, packet in facts.packets.items() if packet.lane == "STUB")
    return f"workpacket why {stubs[0]}" if stubs else "workpacket list"
