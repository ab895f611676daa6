"""Commands that look at one packet: `show`, `history`, and `why`, which shows what keeps it from its next lane."""

from __future__ import annotations

import re
import sys
from typing import Final

from workpacket.cli.linked_runs import runs_of
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import ACTING, refuse, unmet_json, unmet_lines
from workpacket.cli.read_only import packet_facts, show_json
from workpacket.git.objects import list_tree, read_objects
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.ledger.fold import PacketState, fold
from workpacket.ledger.log import Log, read_log
from workpacket.lifecycle.contract_drift import contract_unmet, covered
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.next_steps import why
from workpacket.lifecycle.review import Work
from workpacket.lifecycle.separation import CLAIMED, lease_claimed, proven_events
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.model.layout import LOG_FOLDER
from workpacket.model.wording import counted
from workpacket.report.escape import escape
from workpacket.report.runs import linked_runs
from workpacket.shell.approvals.gate_queries import ACTIVATION, verdict_question
from workpacket.shell.governing.execution import unseen_moves
from workpacket.shell.work_done import branch_here, work_done
from workpacket.value import replace

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:]{8}Z)?\Z")
_EVENT = re.compile(r"[0-9a-f]{12,64}\Z")


def _run_show(arguments: Arguments) -> int:
    repository, facts, packet = packet_facts(arguments)
    proven = proven_events(facts.policy.actors, [packet])
    at = arguments.value("at")
    state = fold(log_at(arguments, repository, packet.log, at)) if at else packet.state
    runs = runs_of({state.packet: state}).get(state.packet, ()) if not at else linked_runs(state, unfinished=True)
    changed = [one.message for one in contract_unmet(packet)] if not at else []
    if arguments.flag("json"):
        told: list[Json] = [*changed]
        data = {**_as_json(packet, state, proven), "contract_changed": told, "runs": [run.as_json() for run in runs]}
        return show_json(arguments, data)
    doubts = [("changed", f"{message} (contract_changed)") for message in changed]
    for name, value in [*_as_rows(packet, state, proven), *doubts, *(("run", run.sentence) for run in runs)]:
        print(f"{name:<12}{escape(value)}")
    print(f"next: workpacket {'history' if at else 'why'} {packet.id}")
    return exits.OK


def log_at(arguments: Arguments, repository: Repository, log: Log, at: str) -> Log:
    """The log as of a date, an event (with all before it), or a revision of the repository."""
    if _DATE.match(at):
        return log.until(at if "T" in at else f"{at}T23:59:59Z")
    if _EVENT.match(at):
        found = [identity for identity in log.by_id if identity.startswith(at)]
        if len(found) > 1:
            raise usage(arguments.command, "invalid_value", f"{at} is ambiguous: it matches several events")
        if found:
            return log.as_of(found)
    commit = commit_of(repository, at)
    entries = list_tree(repository, commit, f"{LOG_FOLDER}/{log.packet}")
    contents = read_objects(repository, [entry.object_id for entry in entries])
    return read_log(log.packet, {entry.path.rpartition("/")[2]: contents[entry.object_id] for entry in entries})


def _as_rows(packet: PacketFacts, state: PacketState, proven: frozenset[str]) -> list[tuple[str, str]]:
    lane = packet.lane if state is packet.state else state.lane
    rows = [("id", packet.id.text), ("lane", lane or "without a log")]
    said = covered(packet.log)
    rows += [("contract", said)] if said else []
    if packet.packet_source is not None or packet.stub_source is not None:
        rows.append(("file", packet.packet_path if packet.packet_source is not None else packet.stub_path))
    if packet.refinement_source is not None:
        rows.append(("refinement", packet.refinement_path))
    if state.lease is not None:
        until = state.lease.expires_at or "it is released"
        rows.append(("held by", f"{state.lease.holder}{lease_claimed(state, proven)} until {until}"))
    assignment = state.assignment
    rows += [
        (name, value)
        for name, value in (
            ("assignee", assignment.assignee),
            ("branch", assignment.branch),
            ("worktree", assignment.worktree),
            ("superseded", state.superseded_by),
            ("depends on", ", ".join(packet.dependencies())),
        )
        if value
    ]
    return rows


def _as_json(packet: PacketFacts, state: PacketState, proven: frozenset[str]) -> dict[str, Json]:
    rows: dict[str, Json] = dict(_as_rows(packet, state, proven))
    depends: list[Json] = [*packet.dependencies()]
    heads: list[Json] = [*state.heads]
    lane = packet.lane if state is packet.state else state.lane
    return {**rows, "lane": lane, "depends on": depends, "heads": heads, **_counts(state, proven)}


def _counts(state: PacketState, proven: frozenset[str]) -> dict[str, Json]:
    return {"events": len(state.history), "proven": sum(event.id in proven for event in state.history)}


_SHOW = Command(
    "show",
    _run_show,
    arguments="WP_ID",
    options=(Option("at", "as of this day, event or revision", value="DATE|EVENT|REV"),),
    examples=("workpacket show WP-1-Parser-v1", "workpacket show WP-1-Parser-v1 --at 2026-03-01"),
)


_SHOWN = ("holder", "to", "by", "verdict", "reason", "branch", "commit", "until", "rule", "target", "text")


def _run_history(arguments: Arguments) -> int:
    _, facts, packet = packet_facts(arguments)
    events, proven = packet.state.history, proven_events(facts.policy.actors, [packet])
    if arguments.flag("json"):
        rows: list[Json] = [{"id": event.id, **event.json(), "proven": event.id in proven} for event in events]
        heads: list[Json] = [*packet.log.heads]
        return show_json(arguments, {"id": packet.id.text, "lane": packet.lane, "heads": heads, "events": rows})
    for event in events:
        print(escape(_line(event) + (f"; {CLAIMED}" if proven and event.id not in proven else "")))
    if events and not proven:
        print(f"who acted: {CLAIMED}")
    print(
        f"{packet.id} is {packet.lane or 'without a log'}" + (", on two branches" if len(packet.log.heads) > 1 else "")
    )
    print(f"next: workpacket {'why' if events else 'adopt'}{f' {packet.id}' if events else ''}")
    return exits.OK


def _line(event: LogEvent) -> str:
    move = f" {event.lane_from or '(none)'} -> {event.lane_to}" if event.lane_to else ""
    said = "".join(f"; {key}: {value}" for key in _SHOWN if (value := event.text(key)))
    return (
        f"{event.clock:4}  {event.id[:12]}  {event.at}  {event.actor.id} ({event.actor.kind})  {event.type}{move}{said}"
    )


_HISTORY = Command(
    "history",
    _run_history,
    arguments="WP_ID",
    examples=("workpacket history WP-1-Parser-v1", "workpacket history WP-1-Parser-v1 --json"),
)


def _run_why(arguments: Arguments) -> int:
    repository, facts, packet = packet_facts(arguments, questions=(ACTIVATION, verdict_question("PASS")))
    work = work_done(repository, packet, facts.target_branch) if packet.lane == "IN_PROGRESS" else Work("")
    standing = why(facts, packet, work, branch_here(repository))
    standing = replace(standing, unmet=(*unseen_moves(repository, packet), *standing.unmet))
    runs = runs_of({standing.id: packet.state}).get(standing.id, ())
    listed: list[Json] = [run.as_json() for run in runs]
    moved = _moved_by(facts, packet)
    if arguments.flag("gate") and standing.unmet:
        return refuse(
            arguments, standing.id, standing.unmet, {"lane": standing.lane, "runs": listed, "moved_by": moved}
        )
    if arguments.flag("json"):
        unmet: list[Json] = [unmet_json(one) for one in standing.unmet]
        data = {"id": standing.id, "lane": standing.lane, "next": standing.command, "unmet": unmet}
        return show_json(arguments, {**data, "runs": listed, "moved_by": moved})
    lane = standing.lane or "without a log"
    print(f"{standing.id} is {lane}" + (f", moved by {escape(', '.join(map(str, moved)))}" if moved else ""))
    if standing.unmet:
        print(f"{counted(len(standing.unmet), 'condition')} not met for `{standing.command}`:")
        sys.stdout.write("".join(unmet_lines(standing.unmet)))
    for run in runs:
        print(f"run: {escape(run.sentence)}\n     -> {escape(run.command)}")
    print(f"next: {escape(standing.unmet[0].hint if standing.unmet else standing.command)}")
    return exits.OK


def _moved_by(facts: Facts, packet: PacketFacts) -> list[Json]:
    """Who brought it to its lane; in a fork there are several."""
    proven = proven_events(facts.policy.actors, [packet])
    moves = packet.state.latest_moves
    return [move.actor.id if move.id in proven else f"{move.actor.id} ({CLAIMED})" for move in moves]


_WHY = Command(
    "why",
    _run_why,
    arguments="WP_ID",
    options=(Option("gate", "exit with 3 if anything is unmet"), *ACTING),
    examples=("workpacket why WP-1-Parser-v1", "workpacket why WP-1-Parser-v1 --json"),
)


DECLARED: Final = {command.name: command for command in (_SHOW, _HISTORY, _WHY)}
