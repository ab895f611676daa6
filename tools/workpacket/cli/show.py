"""`show`: everything that a person or an agent needs to work on a packet."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from workpacket.cli.history import QUESTIONS, approval_words, cache_dependencies, log_at, runs_of, status_of
from workpacket.cli.options import Arguments
from workpacket.cli.packet_command import unmet_json
from workpacket.cli.read_only import asking_files, output, packet_facts
from workpacket.cli.views import compares_work_tree
from workpacket.cli.workspace import Output
from workpacket.documents.spec_pointer import specification_places
from workpacket.ledger.fold import PacketState, fold
from workpacket.lifecycle.authorship import lease_claimed, lease_events, proven_events
from workpacket.lifecycle.contract import stated
from workpacket.lifecycle.contract_drift import contract_unmet, covered
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ACTIVATION_GATE, approval_asked
from workpacket.lifecycle.next_steps import PacketStatus
from workpacket.lifecycle.proofs import evidence_of, latest_evidence, same
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.model.lanes import OVER
from workpacket.model.wording import next_line
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.report.packet import CriterionView, PacketView, TaskView, lines
from workpacket.report.runs import PacketRun, linked_runs
from workpacket.shell.base import NOBODY_YET, settings_folder
from workpacket.shell.cache import Cache
from workpacket.value import replace

_RECENT: Final = 8


def compute(arguments: Arguments, _cache: Cache) -> Output:
    """Return the output of the command."""
    if arguments.value("at"):
        return _as_of(arguments, arguments.value("at"))
    repository, facts, packet = packet_facts(arguments, questions=QUESTIONS)
    view = _view(facts, packet, status_of(repository, facts, packet))
    runs = runs_of({view.id: packet.state}).get(view.id, ())
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
        return output(repository, _envelope(_as_json(facts, packet, view, runs)), lasts=lasts, until=until, also=also)
    shown = [
        *lines(view, arguments.style(sys.stdout), full=arguments.flag("full")),
        *(f"{'run':<13}{escape(run.sentence)}" for run in runs),
        next_line(f"workpacket {'why' if packet.lane else 'log show'} {view.id}"),
    ]
    return output(repository, "\n".join(shown) + "\n", lasts=lasts, until=until, also=also)


def _lasts(facts: Facts, packet: PacketFacts) -> bool:
    """Whether the answer stays correct until a governed file or a git reference changes, or a known moment comes.

    Work in progress is also compared with the work tree (`compares_work_tree`). Approvals end with time.
    """
    asked = approval_asked(facts.policy, light=packet.light, standing=packet.standing)
    verdicts = [each for gate, each in facts.approvals.items() if asked or gate != ACTIVATION_GATE]
    # As long as the policy names no approvers, time changes nothing.
    return all(each.unmet and {one.code for one in each.unmet} <= NOBODY_YET for each in verdicts)


def _until(state: PacketState, now: str) -> str:
    """Return when the lease or the first waiver ends; '' if nothing ends any more."""
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
        holder=_holder(state, proven_events(facts.policy.actors, lease_events(state))),
        task=None,
        rows=tuple(_assignment_rows(state)),
        recent=_recent(state.history),
        events=len(state.history),
        command="",
        unmet=(),
    )
    if arguments.flag("json"):
        data = _as_json(facts, packet, view, linked_runs(state, unfinished=True), state)
        return output(repository, _envelope(data), lasts=False)
    shown = [
        *lines(view, arguments.style(sys.stdout), full=arguments.flag("full")),
        next_line(f"workpacket log show {view.id}"),
    ]
    return output(repository, "\n".join(shown) + "\n", lasts=False)


def _envelope(data: Mapping[str, Json]) -> str:
    return render_envelope("show", exits.OK, [], data)


def _view(facts: Facts, packet: PacketFacts, status: PacketStatus) -> PacketView:
    state = packet.state
    # No one works on what is over, even if the lease has not ended.
    over = packet.lane in OVER
    return PacketView(
        id=status.id,
        lane=status.lane,
        holder="" if over else _holder(state, proven_events(facts.policy.actors, lease_events(state))),
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
    """Return, by the text of the criterion, the last proof since the packet was last claimed: earlier proofs are about
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
    facts: Facts, packet: PacketFacts, view: PacketView, runs: Sequence[PacketRun], state: PacketState | None = None
) -> dict[str, Json]:
    """Return the packet as JSON. If `state` is from an earlier time, current facts are left out."""
    then = state or packet.state
    proven = proven_events(facts.policy.actors, packet.log.events)
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
