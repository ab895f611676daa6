"""One packet: `show` (everything that a person or an agent needs to work on it), `why` (what keeps it from its next
lane), `log show` (what happened to it), and the log as of an earlier time.

Also the runs of packets, for commands that show packets: the store is opened only if a log has an open link.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from workpacket.cli.options import FETCH, Arguments, Command, Option, usage
from workpacket.cli.packet_command import ACTING, is_package_id, refuse, unmet_json
from workpacket.cli.read_only import asking_files, fetch_first, output, packet_facts, show_json
from workpacket.cli.views import compares_work_tree
from workpacket.cli.workspace import Output
from workpacket.documents.spec_pointer import specification_places
from workpacket.git.objects import list_tree, read_objects
from workpacket.git.repository import Repository, branch_here, commit_of, has_references, main_remote
from workpacket.ledger.fold import PacketState, fold
from workpacket.ledger.log import Log, read_log
from workpacket.lifecycle.authorship import CLAIMED, lease_claimed, lease_events
from workpacket.lifecycle.contract import stated
from workpacket.lifecycle.contract_drift import contract_unmet, covered
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ACTIVATION_GATE, approval_asked
from workpacket.lifecycle.next_steps import PacketStatus, waits_for_merge, why
from workpacket.lifecycle.proofs import evidence_of, latest_evidence, same
from workpacket.lifecycle.review import Work
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.model.lanes import OVER, lane_of_token, lane_words
from workpacket.model.layout import LOG_FOLDER, SEEN_CLAIMS
from workpacket.model.wording import counted, next_line
from workpacket.problem import WorkpacketError, by_remedy
from workpacket.report.json_report import render_envelope
from workpacket.report.packet import CriterionView, PacketView, TaskView, lines
from workpacket.report.runs import PacketRun, linked_runs
from workpacket.report.terminal import escape, unmet_lines
from workpacket.shell.base import NOBODY_YET, settings_folder
from workpacket.shell.cache import Cache
from workpacket.shell.governing.execution import ACTIVATION, unseen_moves, verdict_question
from workpacket.shell.work_done import work_done
from workpacket.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.problem import Problem
    from workpacket.runtime.stores.contract import Store
    from workpacket.shell.claim_refs import RemoteClaim


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:]{8}Z)?\Z")
_EVENT = re.compile(r"[0-9a-f]{12,64}\Z")
# An approval may be what keeps a packet from its next lane.
QUESTIONS: Final = (ACTIVATION, verdict_question("PASS"))

_PATIENCE = 3.0  # seconds


def status_of(repository: Repository, facts: Facts, packet: PacketFacts) -> PacketStatus:
    work = work_done(repository, packet, facts.target_branch) if packet.lane == "IN_PROGRESS" else Work("")
    found = why(facts, packet, work, branch_here(repository))
    name, now = packet.id.text, facts.moment.now
    claims = [_held_elsewhere(repository, facts, claim) for claim in claims_of_others(repository, {name: packet}, now)]
    return replace(found, unmet=(*unseen_moves(repository, facts, packet), *claims, *found.unmet))


def claims_of_others(repository: Repository, packets: Mapping[str, PacketFacts], now: str) -> list[RemoteClaim]:
    """Return the claims of other clones, as last fetched. Few repositories have such claims."""
    if not has_references(repository, SEEN_CLAIMS):
        return []
    from workpacket.shell.claim_refs import claims_elsewhere

    return claims_elsewhere(repository, packets, now)


def _held_elsewhere(repository: Repository, facts: Facts, claim: RemoteClaim) -> Problem:
    from workpacket.shell.claim_refs import held_elsewhere

    return held_elsewhere(claim, main_remote(repository), facts.policy.claim_ref.replace("{id}", claim.packet))


def log_at(arguments: Arguments, repository: Repository, log: Log, at: str) -> Log:
    """Return the log as of a date, an event (including everything before it), or a revision of the repository."""
    if _DATE.match(at):
        return log.until(at if "T" in at else f"{at}T23:59:59Z")
    if _EVENT.match(at):
        found = [identity for identity in log.by_id if identity.startswith(at)]
        if len(found) > 1:
            raise usage(arguments.command, "invalid_value", f"{at} is ambiguous: it matches several events")
        if found:
            return log.as_of(found)
    try:
        commit = commit_of(repository, at)
    except WorkpacketError as error:
        what = f"--at requires a date such as 2026-12-31, an event or a commit, not {at!r}"
        raise usage(arguments.command, "invalid_value", what) from error
    entries = list_tree(repository, commit, f"{LOG_FOLDER}/{log.packet}")
    contents = read_objects(repository, [entry.object_id for entry in entries])
    return read_log(log.packet, {entry.path.rpartition("/")[2]: contents[entry.object_id] for entry in entries})


_SHOWN = ("holder", "to", "by", "verdict", "reason", "branch", "commit", "until", "rule", "target", "text")


def _run_history(arguments: Arguments) -> int:
    repository, facts, packet = packet_facts(arguments)
    events, proven = packet.state.history, _proven(repository, facts, packet.log.events)
    if arguments.flag("json"):
        rows: list[Json] = [{"id": event.id, **event.json(), "proven": event.id in proven} for event in events]
        heads: list[Json] = [*packet.log.heads]
        return show_json(arguments, {"id": packet.id.text, "lane": packet.lane, "heads": heads, "events": rows})
    for event in events:
        print(escape(_line(event) + (f"; {CLAIMED}" if proven and event.id not in proven else "")))
    if events and not proven:
        print(f"who acted: {CLAIMED}")
    for event in packet.log.renamed.values():
        print(escape(f"{_line(event)} (belongs to a different packet, which was renamed)"))
    print(
        f"{packet.id} is {lane_words(packet.lane) or 'without a log'}"
        + (", on two branches" if len(packet.log.heads) > 1 else "")
    )
    if approval_words(facts, packet):
        print(f"approval: {approval_words(facts, packet)}")
    print(f"next: workpacket {f'why {packet.id}' if events else 'help adopt'}")
    return exits.OK


def _proven(repository: Repository, facts: Facts, events: Iterable[LogEvent]) -> frozenset[str]:
    if not facts.policy.actors.present:
        return frozenset()
    from workpacket.shell.keys import proven_events  # without actors, there is nothing to verify

    return proven_events(repository, facts.policy.actors, events)


def approval_words(facts: Facts, packet: PacketFacts) -> str:
    """Return the note about an approval that the policy does not require; '' if there is none."""
    if not packet.light:
        return ""
    from workpacket.lifecycle.forms import unasked  # most packets are not in the light form

    return unasked(facts, packet)


def _line(event: LogEvent) -> str:
    move = f" {event.lane_from or '(none)'} -> {event.lane_to}" if event.lane_to else ""
    said = "".join(f"; {key}: {value}" for key in _SHOWN if (value := event.text(key)))
    return (
        f"{event.clock:4}  {event.id[:12]}  {event.at}  {event.actor.id} ({event.actor.kind})  {event.type}{move}{said}"
    )


_HISTORY = Command(
    "history",
    _run_history,
    arguments="[WP_ID]",
    examples=("workpacket log show WP-1-Parser-v1", "workpacket log show WP-1-Parser-v1 --json"),
)


def _run_why(arguments: Arguments) -> int:
    if arguments.words and is_package_id(arguments.words[0]):
        from workpacket.cli.implement import why as why_package

        return why_package(arguments)
    fetch_first(arguments)
    repository, facts, packet = packet_facts(arguments, questions=QUESTIONS)
    standing = status_of(repository, facts, packet)
    runs = runs_of({standing.id: packet.state}, facts.policy.temporal_ui).get(standing.id, ())
    listed: list[Json] = [run.as_json() for run in runs]
    moved = _moved_by(repository, facts, packet)
    if arguments.flag("exit-code") and standing.unmet:
        return refuse(
            arguments, standing.id, standing.unmet, {"lane": standing.lane, "runs": listed, "moved_by": moved}
        )
    if arguments.flag("json"):
        unmet: list[Json] = [unmet_json(one) for one in standing.unmet]
        data = {"id": standing.id, "lane": standing.lane, "next": standing.command, "unmet": unmet}
        return show_json(arguments, {**data, "runs": listed, "moved_by": moved})
    lane = lane_words(standing.lane) or "without a log"
    print(f"{standing.id} is {lane}" + (f", moved by {escape(', '.join(map(str, moved)))}" if moved else ""))
    if approval_words(facts, packet):
        print(f"approval: {approval_words(facts, packet)}")
    if waits_for_merge(facts, packet):
        from workpacket.lifecycle.forms import UNASKED

        print(f"verdict: {UNASKED}; with one from someone else, it becomes VALIDATED")
    if standing.unmet:
        print(f"{counted(len(by_remedy(standing.unmet)), 'condition')} not met for `{standing.command}`:")
        sys.stdout.write("".join(unmet_lines(standing.unmet, arguments.style(sys.stdout))))
    for run in runs:
        print(
            f"run: {escape(run.sentence)}\n     -> {escape(run.command)}" + (f"\n     {run.page}" if run.page else "")
        )
    print(f"next: {escape(standing.unmet[0].hint if standing.unmet else standing.command)}")
    return exits.OK


def _moved_by(repository: Repository, facts: Facts, packet: PacketFacts) -> list[Json]:
    """Return the actor who moved the packet to its lane; if the log has forked, there are several."""
    moves = packet.state.latest_moves
    proven = _proven(repository, facts, moves)
    return [move.actor.id if move.id in proven else f"{move.actor.id} ({CLAIMED})" for move in moves]


_WHY = Command(
    "why",
    _run_why,
    arguments="[WP_ID]",
    options=(Option("exit-code", "exit with 3 if any condition is unmet"), FETCH, *ACTING),
    examples=("workpacket why WP-1-Parser-v1", "workpacket why WP-1-Parser-v1 --json"),
)


DECLARED: Final = {command.name: command for command in (_HISTORY, _WHY)}


def runs_of(
    states: Mapping[str, PacketState], pages: str, *, ask_store: bool = True
) -> dict[str, tuple[PacketRun, ...]]:
    """Return the runs of each packet that has runs. If the store cannot be read, only the log is used. `pages` is the
    address of Temporal's pages.
    """
    some = {name: state for name, state in states.items() if state.runs}
    found = None
    if ask_store and any(state.open_runs for state in some.values()):
        try:
            found = _with_store(some, pages)
        except (WorkpacketError, OSError):
            found = None  # `doctor` reports what is wrong with the store
    if found is None:
        found = {name: linked_runs(state, unfinished=_unfinished(state), pages=pages) for name, state in some.items()}
    return {name: runs for name, runs in found.items() if runs}


def _with_store(states: Mapping[str, PacketState], pages: str) -> dict[str, tuple[PacketRun, ...]] | None:
    """Open the store for reading; return None if there is none."""
    from workpacket.bridges.run_links import with_store

    store = _store()
    if store is None:
        return None
    try:
        identity, held = store.identity, {lease.stream: lease.holder for lease in store.leases()}
        return {
            name: with_store(state, store, identity, held, unfinished=_unfinished(state), pages=pages)
            for name, state in states.items()
        }
    finally:
        store.close()


def _store() -> Store | None:
    """Open the store directly: opening the runtime around it would take longer than the whole board, which must be
    fast."""
    from pathlib import Path

    from workpacket.runtime.stores.place import store_path, store_url

    if store_url():
        from workpacket.runtime.stores.place import store_at

        return store_at(store_url(), patience=_PATIENCE)
    path = store_path(Path.cwd())
    if not path.exists():
        return None
    from workpacket.runtime.stores.sqlite.store import SQLiteStore

    return SQLiteStore(path, timeout=_PATIENCE)


def cache_dependencies(shown: Mapping[str, tuple[PacketRun, ...]]) -> tuple[bool, list[str]]:
    """Return whether the output remains correct until a file changes, and the files that it depends on besides the log.
    It does not remain correct if a run is live, because the process may end at any time. Runs that are not live change
    only in the store.
    """
    states = {run.state for runs in shown.values() for run in runs}
    if states <= {"blocked"}:
        return True, []
    from pathlib import Path

    from workpacket.runtime.stores.place import store_path, store_url

    if store_url() or "live" in states:
        return False, []
    path = str(store_path(Path.cwd()))
    return True, [path, f"{path}-wal"]


def _unfinished(state: PacketState) -> bool:
    lane = lane_of_token(state.lane)
    return lane is None or lane.unfinished


_RECENT: Final = 8


def compute(arguments: Arguments, _cache: Cache) -> Output:
    """Return the output of the command."""
    if arguments.value("at"):
        return _as_of(arguments, arguments.value("at"))
    repository, facts, packet = packet_facts(arguments, questions=QUESTIONS)
    view = _view(repository, facts, packet, status_of(repository, facts, packet))
    runs = runs_of({view.id: packet.state}, facts.policy.temporal_ui).get(view.id, ())
    lasts, also = cache_dependencies({view.id: runs})
    asks = asking_files(arguments, repository)
    lasts = lasts and _lasts(facts, packet) and asks is not None
    if packet.lane == "IN_PROGRESS":
        lasts = lasts and compares_work_tree(arguments, str(repository.git_dir))
        also.append(str(repository.git_dir / "FETCH_HEAD"))  # commits that prove the same work may be fetched
    until = _until(packet.state, facts.moment.now)
    specifications = (f"{repository.root}/{path}" for path in specification_places(facts.spec_pointer))
    # The answer about approvals depends on the policy that this account has seen last.
    also += [f"{settings_folder()}/trust/", *(asks or ()), *specifications]
    if arguments.flag("json"):
        return output(
            repository, _envelope(_as_json(repository, facts, packet, view, runs)), lasts=lasts, until=until, also=also
        )
    shown = [
        *lines(view, arguments.style(sys.stdout), full=arguments.flag("full")),
        *(f"{'run':<13}{escape(run.sentence)}{f', {run.page}' if run.page else ''}" for run in runs),
        next_line(f"workpacket {'why' if packet.lane else 'log show'} {view.id}"),
    ]
    return output(repository, "\n".join(shown) + "\n", lasts=lasts, until=until, also=also)


def _lasts(facts: Facts, packet: PacketFacts) -> bool:
    """Whether the answer remains correct until a governed file or a git reference changes, or a known time is reached.

    Work in progress is also compared with the work tree (`compares_work_tree`). Approvals expire as time passes.
    """
    asked = approval_asked(facts.policy, light=packet.light, standing=packet.standing)
    verdicts = [each for gate, each in facts.approvals.items() if asked or gate != ACTIVATION_GATE]
    # As long as the policy names no approvers, time changes nothing.
    return all(each.unmet and {one.code for one in each.unmet} <= NOBODY_YET for each in verdicts)


def _until(state: PacketState, now: str) -> str:
    """Return when the lease or the first waiver expires; '' if nothing more will expire."""
    ends = [event.text("expires_at") or "" for event in state.waivers]
    ends += [state.lease.expires_at] if state.lease is not None else []
    return min((end for end in ends if end > now), default="")


def _as_of(arguments: Arguments, at: str) -> Output:
    """Return what the log said at an earlier time. Documents are left out: git has their old versions."""
    repository, facts, packet = packet_facts(arguments)
    state = fold(log_at(arguments, repository, packet.log, at))
    view = PacketView(
        id=state.packet,
        lane=state.lane,
        holder=_holder(state, _proven(repository, facts, lease_events(state))),
        task=None,
        rows=tuple(_assignment_rows(state)),
        recent=_recent(state.history),
        events=len(state.history),
        command="",
        unmet=(),
    )
    if arguments.flag("json"):
        data = _as_json(
            repository, facts, packet, view, linked_runs(state, unfinished=True, pages=facts.policy.temporal_ui), state
        )
        return output(repository, _envelope(data), lasts=False)
    shown = [
        *lines(view, arguments.style(sys.stdout), full=arguments.flag("full")),
        next_line(f"workpacket log show {view.id}"),
    ]
    return output(repository, "\n".join(shown) + "\n", lasts=False)


def _envelope(data: Mapping[str, Json]) -> str:
    return render_envelope("show", exits.OK, [], data)


def _view(repository: Repository, facts: Facts, packet: PacketFacts, status: PacketStatus) -> PacketView:
    state = packet.state
    # No one works on what is over, even if the lease has not ended.
    over = packet.lane in OVER
    return PacketView(
        id=status.id,
        lane=status.lane,
        holder="" if over else _holder(state, _proven(repository, facts, lease_events(state))),
        task=task_of(packet),
        rows=tuple(_rows(facts, packet)),
        recent=_recent(state.history),
        events=len(state.history),
        command=status.command,
        unmet=status.unmet,
    )


def task_of(packet: PacketFacts) -> TaskView | None:
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
    """Return, keyed by the criterion's text, the last proof since the packet was last claimed: earlier proofs are about
    other work.
    """
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
    unasked = approval_words(facts, packet)
    if unasked:
        yield "approval", unasked
    named = [f"{event.type} names {digest[:12]}" for event in packet.log.events for digest in event.attest]
    if named:
        yield "signed", f"{', '.join(named)} (to verify: workpacket approvals list {packet.id})"
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
    repository: Repository,
    facts: Facts,
    packet: PacketFacts,
    view: PacketView,
    runs: Sequence[PacketRun],
    state: PacketState | None = None,
) -> dict[str, Json]:
    """Return the packet as JSON. If `state` is from an earlier time, current facts are left out."""
    then = state or packet.state
    proven = _proven(repository, facts, packet.log.events)
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
