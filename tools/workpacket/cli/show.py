"""Commands that look at one packet: `show`, `history`, and `why`, which shows what keeps it from its next lane.

The runs of packets, for commands that show packets: the store is opened only where a log has an open link.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from workpacket.audit.tracing import evidence_of, latest_evidence, same
from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import ACTING, refuse, unmet_json, unmet_lines
from workpacket.cli.read_only import packet_facts, show_json
from workpacket.errors import WorkpacketError
from workpacket.git.objects import list_tree, read_objects
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.ledger.fold import PacketState, fold
from workpacket.ledger.log import Log, read_log
from workpacket.lifecycle.contract import stated
from workpacket.lifecycle.contract_drift import contract_unmet, covered
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.next_steps import PacketStatus, why
from workpacket.lifecycle.review import Work
from workpacket.lifecycle.separation import CLAIMED, lease_claimed, proven_events
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.model.lanes import lane_of_token
from workpacket.model.layout import LOG_FOLDER
from workpacket.model.wording import counted
from workpacket.report.escape import escape
from workpacket.report.packet import CriterionView, PacketView, TaskView, lines
from workpacket.report.runs import PacketRun, linked_runs
from workpacket.shell.approvals.gate_queries import ACTIVATION, verdict_question
from workpacket.shell.work_done import branch_here, work_done
from workpacket.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.runtime.stores.contract import Store


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:]{8}Z)?\Z")
_EVENT = re.compile(r"[0-9a-f]{12,64}\Z")
# What keeps a packet from its next lane may be an approval.
_QUESTIONS: Final = (ACTIVATION, verdict_question("PASS"))
_RECENT: Final = 8

_PATIENCE = 3.0  # seconds


def _run_show(arguments: Arguments) -> int:
    if arguments.value("at"):
        return _show_as_of(arguments, arguments.value("at"))
    repository, facts, packet = packet_facts(arguments, questions=_QUESTIONS)
    view = _view(facts, packet, _status(repository, facts, packet))
    runs = runs_of({view.id: packet.state}).get(view.id, ())
    if arguments.flag("json"):
        return show_json(arguments, _as_json(facts, packet, view, runs))
    for line in lines(view, style_of(arguments), full=arguments.flag("full")):
        print(line)
    for run in runs:
        print(f"{'run':<13}{escape(run.sentence)}")
    print(f"next: workpacket {'why' if packet.lane else 'history'} {view.id}")
    return exits.OK


def _show_as_of(arguments: Arguments, at: str) -> int:
    """What the log said then. Documents are not shown: git has them, and this shows what they say now."""
    repository, facts, packet = packet_facts(arguments)
    state = fold(log_at(arguments, repository, packet.log, at))
    view = PacketView(
        id=state.packet,
        lane=state.lane,
        holder=_holder(state, proven_events(facts.policy.actors, [packet])),
        task=None,
        rows=tuple(_assignment_rows(state)),
        recent=_recent(state.history),
        events=len(state.history),
        command="",
        unmet=(),
    )
    if arguments.flag("json"):
        return show_json(arguments, _as_json(facts, packet, view, linked_runs(state, unfinished=True), state))
    for line in lines(view, style_of(arguments), full=arguments.flag("full")):
        print(line)
    print(f"next: workpacket history {view.id}")
    return exits.OK


def _status(repository: Repository, facts: Facts, packet: PacketFacts) -> PacketStatus:
    work = work_done(repository, packet, facts.target_branch) if packet.lane == "IN_PROGRESS" else Work("")
    return why(facts, packet, work, branch_here(repository))


def _view(facts: Facts, packet: PacketFacts, status: PacketStatus) -> PacketView:
    state = packet.state
    return PacketView(
        id=status.id,
        lane=status.lane,
        holder=_holder(state, proven_events(facts.policy.actors, [packet])),
        task=_task(packet),
        rows=tuple(_rows(facts, packet)),
        recent=_recent(state.history),
        events=len(state.history),
        command=status.command,
        unmet=status.unmet,
    )


def _task(packet: PacketFacts) -> TaskView | None:
    document = packet.packet or packet.stub
    if document is None:
        return None
    contract = stated(document, packet.refinement)
    if isinstance(contract, str):
        return TaskView(unreadable=contract)
    proved = _proofs(packet)
    return TaskView(
        title=contract.title,
        what=contract.what,
        why=contract.why,
        criteria=tuple(
            replace(proved.get(same(text), CriterionView(0, "")), number=number, text=text)
            for number, text in enumerate(contract.criteria, 1)
        ),
        scope=contract.scope,
        out_of_scope=contract.out_of_scope,
        risk=contract.risk,
    )


_RESULTS = {"met": "proved", "not_met": "failed", "not_applicable": "not applicable"}


def _proofs(packet: PacketFacts) -> dict[str, CriterionView]:
    """By the text of the criterion, the last proof since the packet was last claimed: what came before was for other
    work."""
    claimed = max((event.clock for event in packet.state.history if event.type == "claimed"), default=0)
    rows = [each for each in latest_evidence(packet) if each[0].clock > claimed]
    found = [evidence_of(event, row, commit) for event, row, commit in rows]
    return {
        same(one.criterion): CriterionView(0, "", _RESULTS[one.result], one.what, one.exit_code, one.commit)
        for one in found
    }


def _holder(state: PacketState, proven: frozenset[str]) -> str:
    lease = state.lease
    if lease is None:
        return ""
    return f"{lease.holder}{lease_claimed(state, proven)} until {lease.expires_at or 'it is released'}"


def _rows(facts: Facts, packet: PacketFacts) -> Iterator[tuple[str, str]]:
    depends = [f"{name} ({facts.lane_of(name)})" if facts.lane_of(name) else name for name in packet.dependencies()]
    if depends:
        yield "depends on", ", ".join(depends)
    yield from _assignment_rows(packet.state)
    said = covered(packet.log)
    if said:
        yield "contract", said
    yield from (("changed", f"{one.message} (contract_changed)") for one in contract_unmet(packet))
    files = _files(packet)
    if files:
        yield "files", ", ".join(files.values())


def _assignment_rows(state: PacketState) -> Iterator[tuple[str, str]]:
    assignment = state.assignment
    named = (
        ("assignee", assignment.assignee),
        ("branch", assignment.branch),
        ("work tree", assignment.worktree),
        ("superseded", state.superseded_by),
    )
    yield from ((name, value) for name, value in named if value)


def _files(packet: PacketFacts) -> dict[str, str]:
    sources = {"packet": packet.packet_source, "stub": packet.stub_source, "refinement": packet.refinement_source}
    return {kind: source.path for kind, source in sources.items() if source is not None}


def _recent(history: Sequence[LogEvent]) -> tuple[str, ...]:
    return tuple(f"{event.at} {event.type} by {event.actor.id}" for event in history[-_RECENT:])


def _as_json(
    facts: Facts, packet: PacketFacts, view: PacketView, runs: Sequence[PacketRun], state: PacketState | None = None
) -> dict[str, Json]:
    """`state` is that of an earlier time; nothing of now is told beside it."""
    then = state or packet.state
    proven = proven_events(facts.policy.actors, [packet])
    lease, assignment = then.lease, then.assignment
    files: dict[str, Json] = dict(_files(packet))
    changed = [one.message for one in contract_unmet(packet)] if state is None else []
    return {
        "id": view.id,
        "lane": view.lane,
        **((view.task or TaskView()).json()),
        "depends": [{"id": name, "lane": facts.lane_of(name)} for name in packet.dependencies()],
        "holder": lease.holder if lease else "",
        "until": (lease.expires_at or "") if lease else "",
        "assignee": assignment.assignee,
        "branch": assignment.branch,
        "worktree": assignment.worktree,
        "superseded_by": then.superseded_by,
        "contract": covered(packet.log) if state is None else "",
        "contract_changed": [*changed],
        "files": files if state is None else {},
        "heads": [*then.heads],
        "events": len(then.history),
        "proven": sum(event.id in proven for event in then.history),
        "recent": [{"at": one.at, "type": one.type, "actor": one.actor.id} for one in then.history[-_RECENT:]],
        "unmet": [unmet_json(one) for one in view.unmet],
        "next": view.command,
        "runs": [run.as_json() for run in runs],
    }


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


_SHOW = Command(
    "show",
    _run_show,
    arguments="WP_ID",
    description="""
What to do and why, when it is done and how far that is proved, where to work, who holds it, what happened last, and
what is missing for the next lane. Without --full, long lists are cut short. With --at, only what the log said then.""",
    options=(
        Option("full", "show lists whole"),
        Option("at", "as of this day, event or revision", value="DATE|EVENT|REV"),
        *ACTING,
    ),
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
    repository, facts, packet = packet_facts(arguments, questions=_QUESTIONS)
    standing = _status(repository, facts, packet)
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


def runs_of(states: Mapping[str, PacketState], *, ask_store: bool = True) -> dict[str, tuple[PacketRun, ...]]:
    """By packet, for packets with runs. If the store cannot be read, only the log is used."""
    some = {name: state for name, state in states.items() if state.runs}
    found = None
    if ask_store and any(state.open_runs for state in some.values()):
        try:
            found = _with_store(some)
        except (WorkpacketError, OSError):
            found = None  # `doctor` says what is wrong with the store
    if found is None:
        found = {name: linked_runs(state, unfinished=_unfinished(state)) for name, state in some.items()}
    return {name: runs for name, runs in found.items() if runs}


def _with_store(states: Mapping[str, PacketState]) -> dict[str, tuple[PacketRun, ...]] | None:
    """None if there is no store."""
    from workpacket.bridges.packet_runs import with_store

    store = _store()
    if store is None:
        return None
    try:
        identity, held = store.identity, {lease.stream: lease.holder for lease in store.leases()}
        return {
            name: with_store(state, store, identity, held, unfinished=_unfinished(state))
            for name, state in states.items()
        }
    finally:
        store.close()


def _store() -> Store | None:
    """Opened directly, because the runtime around it would cost more than the board, which must be fast."""
    from pathlib import Path

    from workpacket.runtime.stores.place import server_url, store_path

    if server_url():
        from workpacket.runtime.stores.place import store_on_server

        return store_on_server(server_url(), patience=_PATIENCE)
    path = store_path(Path.cwd())
    if not path.exists():
        return None
    from workpacket.runtime.stores.sqlite.store import SQLiteStore

    return SQLiteStore(path, timeout=_PATIENCE)


def cache_dependencies(shown: Mapping[str, tuple[PacketRun, ...]]) -> tuple[bool, list[str]]:
    """Whether the output stays correct until a file changes, and which files besides the log. It does not for a live
    run, whose process may end at any time. Runs that are not live only change in the store.
    """
    states = {run.state for runs in shown.values() for run in runs}
    if states <= {"blocked"}:
        return True, []
    from pathlib import Path

    from workpacket.runtime.stores.place import server_url, store_path

    if server_url() or "live" in states:
        return False, []
    path = str(store_path(Path.cwd()))
    return True, [path, f"{path}-wal"]


def _unfinished(state: PacketState) -> bool:
    lane = lane_of_token(state.lane)
    return lane is None or lane.unfinished
