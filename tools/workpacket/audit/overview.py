"""The audit of a repository as one value, which every format of the report renders."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from workpacket.audit.tracing import (
    AuditFacts,
    Requirement,
    Trace,
    TracedCommit,
    audit_finding,
    requirements,
    trace,
    uncovered,
    unfinished,
)
from workpacket.digests import sha256
from workpacket.documents.document import stem_of
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ACTIVATING, lease_held
from workpacket.lifecycle.projections import in_force
from workpacket.lifecycle.proofs import same
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.event_types import FORKED
from workpacket.model.lanes import ARCHIVED, HOLDER, SETTLED, WAITING, LaneTable
from workpacket.model.layout import ATTESTATIONS_FOLDER, LOG_FOLDER, envelope_path
from workpacket.model.reasons import SEVERITIES, Family, Reason
from workpacket.problem import Problem
from workpacket.value import Value, replace

_POINTS = 60
_SHORTEST = timedelta(minutes=1)


class Point(Value):
    """The lanes at a point in time, in the order of `lane_order`."""

    at: str
    counts: tuple[int, ...]


def lane_order(packets: Iterable[PacketFacts], lanes: LaneTable) -> tuple[str, ...]:
    """Return the policy's lanes, followed by other lanes in the logs and by '' for packets without a lane."""
    told = {event.lane_to or "" for packet in packets for event in packet.state.history if event.moves_lane}
    return (*lanes.tokens, *sorted(told - {"", FORKED, *lanes.tokens}), FORKED)


def board_history(packets: Iterable[PacketFacts], order: Sequence[str]) -> list[Point]:
    """Sample about sixty evenly spaced times between the first move and the last."""
    told = [event for packet in packets for event in packet.state.history if event.moves_lane]
    # Moves of one packet at the same time stay in log order.
    moves = [(event.at, event.packet, event.lane_to or "") for event in sorted(told, key=lambda event: event.at)]
    if not moves:
        return []
    points: list[Point] = []
    lanes: dict[str, str] = {}
    counts: Counter[str] = Counter()
    waiting = iter([*moves, None])
    move = next(waiting)
    for written in _moments(moves[0][0], moves[-1][0]):
        while move is not None and move[0] <= written:
            counts[lanes.get(move[1], "")] -= 1
            lanes[move[1]] = move[2]
            counts[move[2]] += 1
            move = next(waiting)
        points.append(Point(written, tuple(max(counts[lane], 0) for lane in order)))
    return points


def _moments(first: str, last: str) -> list[str]:
    begin = datetime.fromisoformat(first)
    span = datetime.fromisoformat(last) - begin
    steps = max(1, min(_POINTS, span // _SHORTEST))
    return [*((begin + span * step / steps).strftime("%Y-%m-%dT%H:%M:%SZ") for step in range(steps)), last]


class BaseRow(Value):
    """One base id. `active` is '' if it is unclear which revision is current. `lineage` has (later, earlier) pairs."""

    base: str
    active: str
    lane: str
    revisions: tuple[tuple[str, str], ...]
    lineage: tuple[tuple[str, str], ...]
    approvals: int
    proved: int
    criteria: int
    commits: tuple[str, ...]


def base_rows(facts: AuditFacts, governed: Facts, traces: Mapping[str, Trace]) -> list[BaseRow]:
    by_base: dict[str, list[PacketFacts]] = {}
    for packet in facts.packets.values():
        by_base.setdefault(packet.id.base, []).append(packet)
    return [_row(facts, governed, traces, base, by_base[base]) for base in sorted(by_base)]


def _row(
    facts: AuditFacts, governed: Facts, traces: Mapping[str, Trace], base: str, revisions: list[PacketFacts]
) -> BaseRow:
    revisions.sort(key=lambda packet: packet.id.revision or 1)
    # One base at a time, because `in_force` examines all packets that it is given.
    only = replace(governed, packets={packet.id.text: packet for packet in revisions})
    row = in_force(only, base, {}, {})
    active = row.id if row is not None else ""
    traced = traces.get(active)
    criteria = traced.criteria if traced is not None else ()
    superseded = [(packet.state.superseded_by, packet.id.text) for packet in revisions if packet.state.superseded_by]
    commits = [commit.id for packet in revisions for commit in traces[packet.id.text].commits]
    counting = [each for each in facts.decisions.get(active, ()) if each.decision == "approve" and not each.refusals]
    return BaseRow(
        base,
        active,
        facts.packets[active].lane if active else "",
        tuple((packet.id.text, packet.lane) for packet in revisions),
        tuple(superseded),
        len(counting),
        sum(criterion.proved for criterion in criteria),
        len(criteria),
        tuple(dict.fromkeys(commits)),
    )


def obstacles(facts: AuditFacts, packet: PacketFacts) -> list[str]:
    """Return every obstacle that the log and the documents show. `why` also lists the requirements of gates."""
    return list(_obstacles(facts, packet))


def _obstacles(facts: AuditFacts, packet: PacketFacts) -> Iterator[str]:
    state = packet.state
    if not packet.lane:
        yield "It has no log, so it cannot pass a gate. Run: workpacket adopt"
        return
    if state.forked:
        moves = " and ".join(f"{move.type} by {move.actor.id} at {move.at}" for move in state.latest_moves)
        yield f"It was moved on two branches: {moves}. A person must resolve this."
    if packet.lane == "BLOCKED" and state.latest_moves:
        move = state.latest_moves[-1]
        yield f"Blocked by {move.actor.id} since {move.at}: {move.text('reason') or 'no reason given'}"
        yield f"Until: {move.text('until') or 'nothing was said'}"
    if not unfinished(packet.lane):
        return
    yield from _waits_for(facts, packet)
    if packet.lane == "IN_PROGRESS" and not lease_held(state, facts.now):
        holder = f", last held by {state.lease.holder}" if state.lease is not None and state.lease.holder else ""
        yield f"It has no holder: the lease has expired or been released{holder}."
    if packet.light and packet.lane == "STUB":
        yield "It has not been started."
    elif packet.lane == "STUB" and packet.refinement is None:
        yield "There is no technical refinement yet."
    elif packet.lane == "STUB" and not any(_yes(facts, packet)):
        yield "Its refinement is not signed."


def _waits_for(facts: AuditFacts, packet: PacketFacts) -> Iterator[str]:
    if packet.lane not in WAITING:
        return
    for name in packet.dependencies():
        other = facts.packets.get(name)
        lane = other.lane if other is not None else ""
        if lane not in facts.policy.satisfied_by:
            yield f"It is waiting for {name}, which is {lane or 'unknown'}."


def waits_for(facts: AuditFacts, packet: PacketFacts) -> str:
    """Return one word for what a packet is waiting for, used by the page as a filter; '' if it is done or being worked
    on."""
    lane = packet.lane
    if packet.state.forked:
        return "resolve"
    known = facts.policy.lanes.lane(lane)
    if known is None or known.needs or not known.unfinished:
        return known.needs if known is not None else ""
    if any(_waits_for(facts, packet)):
        return "dependency"
    if lane == "STUB":
        return _stub_waits_for(facts, packet)
    held = lane == "IN_PROGRESS" and lease_held(packet.state, facts.now)
    return "" if held or facts.policy.lanes.is_added(lane) else "coder"


def _stub_waits_for(facts: AuditFacts, packet: PacketFacts) -> str:
    if not packet.light and packet.refinement is None:
        return "refinement"
    asked = not packet.light or facts.policy.packets.approvals == "signed"
    return "approval" if asked and not any(_yes(facts, packet)) else "start"


def who_approved(facts: AuditFacts, packet: PacketFacts) -> str:
    """Return who signed the latest approval of the work, preferably one that counts; '' if there is none."""
    signed = facts.decisions.get(packet.id.text, ())
    approved = [each for each in signed if each.gate in ACTIVATING and each.decision == "approve"]
    latest = max(approved, key=lambda each: (not each.refusals, each.issued_at), default=None)
    return "" if latest is None else latest.approver if not latest.refusals else f"{latest.approver} (does not count)"


def who_judged(facts: AuditFacts, packet: PacketFacts) -> str:
    """Return who gave the latest verdict, marked as claimed if no signature proves it."""
    latest = packet.state.verdicts[-1] if packet.state.verdicts else None
    if latest is None:
        return ""
    return latest.actor.id if latest.id in facts.proven else f"{latest.actor.id} (claimed)"


def _yes(facts: AuditFacts, packet: PacketFacts) -> Iterator[bool]:
    for decision in facts.decisions.get(packet.id.text, ()):
        yield decision.gate in ACTIVATING and decision.decision == "approve" and not decision.refusals


def who_acts(finding: Problem, family: Family, packet: PacketFacts | None, lanes: LaneTable) -> str:
    """Return who can fix a finding: the maintainer for a forgery, the approver for an approval, otherwise the role that
    acts in the lane.
    """
    if family == "integrity":
        return "the maintainer"
    if family == "approval":
        return "an approver"
    if finding.code in {"spec_moved", "requirement_changed"}:
        return "the orchestrator"
    if packet is None:
        return "the orchestrator"
    lane = lanes.lane(packet.lane)
    if lane is None or lane.acts != HOLDER:
        return lane.acts if lane is not None else "the orchestrator"
    return (packet.state.lease.holder or "the coder") if packet.state.lease is not None else "the orchestrator"


# How far the clocks of two machines may differ.
_SKEW: Final = timedelta(minutes=5)


def submitted_lanes(lanes: LaneTable) -> tuple[str, ...]:
    """Return the lanes in which every criterion must already have been proved."""
    return lanes.way[lanes.way.index("IN_PROGRESS") + 1 :]


def packet_doubts(packet: PacketFacts, traced: Trace, lanes: LaneTable) -> list[Problem]:
    """Return all findings about one packet."""
    if packet.lane in SETTLED:
        return []
    return [
        *_changed_requirements(packet, traced),
        *_unproved(packet, traced, lanes),
        *_containment(traced),
        *_without_requirement(packet, traced),
    ]


def _changed_requirements(packet: PacketFacts, traced: Trace) -> Iterator[Problem]:
    """Report changed requirements. Validated work was correct for the version on which it was based; whether it is
    still correct is a separate question.
    """
    for anchor in traced.anchors if packet.lane != "VALIDATED" else ():
        if anchor.state == "changed":
            message = f"{anchor.name or 'the passage'} has changed since the refinement was written: {anchor.why}"
            path = packet.packet_path if packet.light else packet.refinement_path
            yield audit_finding("requirement_changed", path, anchor.line, message)


def _unproved(packet: PacketFacts, traced: Trace, lanes: LaneTable) -> Iterator[Problem]:
    for criterion in traced.criteria if packet.lane in submitted_lanes(lanes) else ():
        if not criterion.proved:
            where = "in the log or in EVIDENCE_MAPPING"
            message = f"DONE_MEANS {criterion.number}, {criterion.text[:100]!r}, has no evidence {where}"
            yield audit_finding("criterion_without_evidence", packet.packet_path, criterion.line, message)
        for each in criterion.evidence:
            if each.suspect:
                message = f"DONE_MEANS {criterion.number}, {criterion.text[:100]!r}: {each.suspect}"
                yield audit_finding("proof_changed", packet.packet_path, criterion.line, message)
    for stray in traced.strays:
        message = f"evidence for {stray.criterion[:100]!r}, which is not listed in DONE_MEANS"
        yield audit_finding("evidence_without_criterion", stray.source, stray.line, message)


def _containment(traced: Trace) -> Iterator[Problem]:
    for commit in traced.commits:
        if commit.role == "target":
            yield from _target_doubts(commit)
        elif commit.role == "merged" and commit.event.text("proof") == "commit":
            yield from _on_target(commit)


def _target_doubts(commit: TracedCommit) -> Iterator[Problem]:
    yield from _on_target(commit)
    if commit.seen is not None and datetime.fromisoformat(commit.seen.at) > _instant(commit.event.at) + _SKEW:
        recorded = f"was recorded at {commit.event.at} as the commit that contains the work"
        message = f"{commit.id[:12]}, committed at {commit.seen.at}, {recorded}"
        yield audit_finding("containment_too_early", commit.event.path, 1, message)


def _on_target(commit: TracedCommit) -> Iterator[Problem]:
    target = commit.event.text("target") or "the target branch"
    if commit.seen is None:
        message = f"{commit.id[:12]}, recorded as merged into {target}, is not a commit in this clone"
        yield audit_finding("commit_not_on_target", commit.event.path, 1, message)
    elif not commit.seen.on_target:
        message = f"{commit.id[:12]}, recorded as merged into {target}, is not on that branch"
        yield audit_finding("commit_not_on_target", commit.event.path, 1, message)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _without_requirement(packet: PacketFacts, traced: Trace) -> Iterator[Problem]:
    if packet.packet is not None and unfinished(packet.lane) and not traced.anchors:
        yield audit_finding("packet_without_requirement", packet.packet_path, 1, f"{packet.id} names no requirement")


def coverage(facts: AuditFacts, traces: Mapping[str, Trace]) -> tuple[Sequence[Requirement], Sequence[Requirement]]:
    """Return all requirements of the current specification and, separately, those without a live packet."""
    if facts.specification is None:
        return (), ()
    path = facts.specification.path
    found = requirements(facts.specification, facts.policy.roadmap_headings)
    live = [name for name in traces if facts.packets[name].lane not in ARCHIVED]
    anchors = [anchor for name in live for anchor in traces[name].anchors]
    left = uncovered(found, [(one.first, one.last) for one in anchors if one.path == path and one.first > 0])
    planned = [same(words) for name in live for words in candidates_of(facts.packets[name])]
    return found, [one for one in left if not any(words.endswith(same(one.title)) for words in planned)]


def candidates_of(packet: PacketFacts) -> list[str]:
    """Return the passages covered only by stubs without anchors: work that is planned but not refined."""
    stub = packet.stub
    if stub is None or packet.refinement is not None:
        return []
    return [text.value for text in stub.spec_anchor_candidates]


def uncovered_findings(facts: AuditFacts, left: Sequence[Requirement]) -> list[Problem]:
    if facts.specification is None:
        return []
    path = facts.specification.path
    return [
        audit_finding("requirement_without_packet", path, one.first, f"no packet is based on {one.title!r}")
        for one in left
    ]


class RequirementRow(Value):
    """A requirement, and the live packets that are based on it."""

    requirement: Requirement
    packets: tuple[str, ...]


def requirement_rows(
    facts: AuditFacts, traces: Mapping[str, Trace], required: Sequence[Requirement]
) -> list[RequirementRow]:
    """Return the matrix of requirements and packets, in text order."""
    named: list[list[str]] = [[] for _ in required]
    starts = [one.first for one in required]
    path = facts.specification.path if facts.specification is not None else ""
    for name, traced in traces.items():
        if facts.packets[name].lane in ARCHIVED:
            continue
        for anchor in traced.anchors:
            if anchor.path != path or not anchor.first:
                continue
            at = max(bisect_right(starts, anchor.first) - 1, 0)
            for index in range(at, bisect_right(starts, anchor.last)):
                if required[index].last >= anchor.first and name not in named[index][-1:]:
                    named[index].append(name)
    return [RequirementRow(one, tuple(names)) for one, names in zip(required, named, strict=True)]


class AuditFinding(Value):
    """A finding, its packet ('' for none), when it first appeared, and who must act.

    `since` is '' if unknown; `pending` means that the file has changed since the last commit.
    """

    finding: Problem
    packet: str
    since: str
    who: str
    pending: bool = False


class Gap(Value):
    """A category: how many items are in it, and how many of them are in order."""

    name: str
    done: int
    of: int


class Audit(Value):
    """The whole audit. `lane_order` is the order of the counts in `history`.

    `root` is one digest over the heads of all logs: two repositories with the same root have the same history.
    `doubted` are the packets with an error in their approvals, their log or their evidence.
    """

    facts: AuditFacts
    traces: Mapping[str, Trace]
    matters: Sequence[AuditFinding]
    obstacles: Mapping[str, Sequence[str]]
    bases: Sequence[BaseRow]
    history: Sequence[Point]
    lane_order: Sequence[str]
    gaps: Sequence[Gap]
    requirements: Sequence[RequirementRow]
    uncovered: Sequence[Requirement]
    doubted: frozenset[str]
    root: str


def audit(facts: AuditFacts, governed: Facts, reasons: Mapping[str, Reason]) -> Audit:
    """Build the audit. `governed` has the facts about the same packets, including the registers; `reasons` gives the
    family of each code.
    """
    order = lane_order(facts.packets.values(), facts.policy.lanes)
    traces = {name: trace(facts, packet) for name, packet in sorted(facts.packets.items())}
    required, left = coverage(facts, traces)
    found = [*facts.findings, *uncovered_findings(facts, left)]
    for name, traced in traces.items():
        found += packet_doubts(facts.packets[name], traced, facts.policy.lanes)
    matters = _matters(facts, found, reasons)
    doubts = [matter for matter in matters if _is_doubt(matter.finding, reasons)]
    return Audit(
        facts=facts,
        traces=traces,
        matters=matters,
        obstacles={name: obstacles(facts, packet) for name, packet in facts.packets.items()},
        bases=base_rows(facts, governed, traces),
        history=board_history(facts.packets.values(), order),
        lane_order=order,
        gaps=_gaps(facts, traces, required, left, doubts),
        requirements=requirement_rows(facts, traces, required),
        uncovered=left,
        doubted=frozenset(matter.packet for matter in doubts),
        root=log_root(facts),
    )


def log_root(facts: AuditFacts) -> str:
    """Return one digest over the heads of all logs."""
    heads: dict[str, Json] = {name: list(packet.log.heads) for name, packet in facts.packets.items()}
    return sha256(canonical_bytes(heads)).hexdigest()


def _matters(facts: AuditFacts, found: Sequence[Problem], reasons: Mapping[str, Reason]) -> list[AuditFinding]:
    """Return each finding once, most severe first."""
    owner = owner_of(facts)
    ordered = sorted(dict.fromkeys(found), key=lambda one: (SEVERITIES.index(one.severity), one.order))
    return [_matter(facts, finding, owner(finding.path), reasons) for finding in ordered]


def _matter(facts: AuditFacts, finding: Problem, name: str, reasons: Mapping[str, Reason]) -> AuditFinding:
    packet = facts.packets.get(name)
    change = facts.changes.get(finding.path)
    event = packet.log.by_id.get(stem_of(finding.path)) if packet is not None else None
    pending = finding.path in facts.uncommitted
    since = event.at if event is not None else change.at if change is not None and not pending else ""
    return AuditFinding(
        finding, name, since, who_acts(finding, reasons[finding.code].family, packet, facts.policy.lanes), pending
    )


def owner_of(facts: AuditFacts) -> Callable[[str], str]:
    """Return a function that maps a path to its packet, using the packet's log, its own files, its envelopes or the
    files that it depends on.
    """
    known: dict[str, str] = {}
    for name, packet in facts.packets.items():
        for path in (packet.stub_path, packet.packet_path, packet.refinement_path):
            known[path] = name
        for decision in facts.decisions.get(name, ()):
            known[envelope_path(decision.envelope)] = name
        for event in packet.state.verdicts:
            report = event.data.get("report")
            if isinstance(report, Mapping):
                known[str(report["path"])] = name

    def owner(path: str) -> str:
        if path.startswith(f"{LOG_FOLDER}/"):
            name = path.split("/")[2]
            return name if name in facts.packets else ""
        return known.get(path, "")

    return owner


def _is_doubt(finding: Problem, reasons: Mapping[str, Reason]) -> bool:
    return finding.severity == "error" and reasons[finding.code].family in {"approval", "integrity"}


def _lost(doubts: Sequence[AuditFinding], folder: str, known: Iterable[str]) -> int:
    """Count the doubtful files that cannot be counted otherwise, because they are missing or cannot be read."""
    paths = {one.finding.path for one in doubts if one.finding.path.startswith(f"{folder}/")}
    return len({path for path in paths if path.endswith(".json")} - set(known))


def _gaps(
    facts: AuditFacts,
    traces: Mapping[str, Trace],
    required: Sequence[Requirement],
    left: Sequence[Requirement],
    doubts: Sequence[AuditFinding],
) -> list[Gap]:
    """Return the categories. Everything that belongs to a doubtful packet counts as not in order, so that the numbers
    do not contradict the findings.
    """
    doubted = {matter.packet for matter in doubts}
    sound = [name for name in facts.packets if name not in doubted]
    live = [name for name, packet in facts.packets.items() if packet.lane not in ARCHIVED]
    working = [name for name in live if facts.packets[name].packet is not None]
    finished = [name for name in working if facts.packets[name].lane in submitted_lanes(facts.policy.lanes)]
    decisions = [each for name in facts.packets for each in facts.decisions.get(name, ())]
    valid = [each for name in sound for each in facts.decisions.get(name, ()) if not each.refusals]
    forged = _lost(doubts, ATTESTATIONS_FOLDER, (envelope_path(each.envelope) for each in decisions))
    anchors = [anchor for name in live for anchor in traces[name].anchors]
    events = [event for packet in facts.packets.values() for event in packet.state.history]
    proven = sum(event.id in facts.proven for name in sound for event in facts.packets[name].state.history)
    lost = _lost(doubts, LOG_FOLDER, (event.path for event in events))

    def proved(names: Iterable[str]) -> tuple[int, int]:
        listed = [(name, criterion) for name in names for criterion in traces[name].criteria]
        return sum(one.proved and not one.suspect and name not in doubted for name, one in listed), len(listed)

    return [
        Gap("Requirements with a packet", len(required) - len(left), len(required)),
        Gap("Packets with a requirement", sum(bool(traces[name].anchors) for name in working), len(working)),
        Gap(
            "Anchors that still match the specification",
            sum(one.state in {"holds", "moved"} for one in anchors),
            len(anchors),
        ),
        Gap("Criteria with evidence, in all packets", *proved(working)),
        Gap("Criteria with evidence, in finished work", *proved(finished)),
        Gap("Valid signed decisions", len(valid), len(decisions) + forged),
        Gap("Events with a proven actor; the rest are claimed, not proven", proven, len(events) + lost),
        Gap("Packets with an intact log", sum(bool(facts.packets[name].lane) for name in sound), len(facts.packets)),
    ]
