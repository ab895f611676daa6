"""The audit of a repository as one value, which every format of the report renders."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from workpacket.audit.packet_row import (
    AuditedPacket,
    LaneMove,
    PacketRow,
    obstacles,
    packet_doubts,
    row_of,
    submitted_lanes,
)
from workpacket.audit.tracing import (
    AuditFacts,
    Requirement,
    audit_finding,
    requirements,
    trace,
    uncovered,
)
from workpacket.digests import sha256
from workpacket.documents.document import stem_of
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.projections import in_force
from workpacket.lifecycle.proofs import same
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.event_types import FORKED
from workpacket.model.lanes import ARCHIVED, HOLDER, LaneTable
from workpacket.model.layout import ATTESTATIONS_FOLDER, LOG_FOLDER, envelope_path
from workpacket.model.reasons import SEVERITIES, Family, Reason
from workpacket.problem import Problem
from workpacket.value import Value, replace

# A packet's stub, packet and refinement are the first of its paths.
_OWN = 3
_POINTS = 60
_SHORTEST = timedelta(minutes=1)


class Point(Value):
    """The lanes at a point in time, in the order of `lane_order`."""

    at: str
    counts: tuple[int, ...]


def lane_order(moves: Iterable[LaneMove], lanes: LaneTable) -> tuple[str, ...]:
    """Return the policy's lanes, followed by other lanes in the logs and by '' for packets without a lane."""
    told = {move.lane for move in moves}
    return (*lanes.tokens, *sorted(told - {"", FORKED, *lanes.tokens}), FORKED)


def board_history(told: Iterable[LaneMove], order: Sequence[str]) -> list[Point]:
    """Sample about sixty evenly spaced times between the first move and the last."""
    # Moves of one packet at the same time stay in log order.
    moves = sorted(told, key=lambda move: move.at)
    if not moves:
        return []
    points: list[Point] = []
    lanes: dict[str, str] = {}
    counts: Counter[str] = Counter()
    waiting = iter([*moves, None])
    move = next(waiting)
    for written in _moments(moves[0].at, moves[-1].at):
        while move is not None and move.at <= written:
            counts[lanes.get(move.packet, "")] -= 1
            lanes[move.packet] = move.lane
            counts[move.lane] += 1
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


def base_rows(governed: Facts, rows: Mapping[str, PacketRow]) -> list[BaseRow]:
    by_base: dict[str, list[PacketRow]] = {}
    for row in rows.values():
        by_base.setdefault(row.id.base, []).append(row)
    return [_base_row(governed, rows, base, by_base[base]) for base in sorted(by_base)]


def _base_row(governed: Facts, rows: Mapping[str, PacketRow], base: str, revisions: list[PacketRow]) -> BaseRow:
    revisions.sort(key=lambda row: row.id.revision or 1)
    # One base at a time, because `in_force` examines all packets that it is given.
    only = replace(governed, packets={row.id.text: governed.packets[row.id.text] for row in revisions})
    current = in_force(only, base, {}, {})
    active = rows[current.id] if current is not None else None
    superseded = [(row.superseded_by, row.id.text) for row in revisions if row.superseded_by]
    return BaseRow(
        base,
        active.id.text if active is not None else "",
        active.lane if active is not None else "",
        tuple((row.id.text, row.lane) for row in revisions),
        tuple(superseded),
        active.approvals if active is not None else 0,
        active.proved if active is not None else 0,
        active.criteria if active is not None else 0,
        tuple(dict.fromkeys(commit for row in revisions for commit in row.commits)),
    )


def who_acts(finding: Problem, family: Family, packet: PacketRow | None, lanes: LaneTable) -> str:
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
    return (packet.holder or "the coder") if packet.holder is not None else "the orchestrator"


def coverage(facts: AuditFacts, rows: Mapping[str, PacketRow]) -> tuple[Sequence[Requirement], Sequence[Requirement]]:
    """Return all requirements of the current specification and, separately, those without a live packet."""
    if facts.specification is None:
        return (), ()
    path = facts.specification.path
    found = requirements(facts.specification, facts.policy.roadmap_headings)
    live = [row for row in rows.values() if row.lane not in ARCHIVED]
    anchors = [anchor for row in live for anchor in row.anchors]
    left = uncovered(found, [(one.first, one.last) for one in anchors if one.path == path and one.first > 0])
    planned = {same(words) for row in live for words in row.planned}
    return found, [one for one in left if not any(words.endswith(same(one.title)) for words in planned)]


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
    facts: AuditFacts, rows: Mapping[str, PacketRow], required: Sequence[Requirement]
) -> list[RequirementRow]:
    """Return the matrix of requirements and packets, in text order."""
    named: list[list[str]] = [[] for _ in required]
    starts = [one.first for one in required]
    path = facts.specification.path if facts.specification is not None else ""
    for name, row in rows.items():
        if row.lane in ARCHIVED:
            continue
        for anchor in row.anchors:
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
    packets: Mapping[str, PacketRow]
    matters: Sequence[AuditFinding]
    bases: Sequence[BaseRow]
    history: Sequence[Point]
    lane_order: Sequence[str]
    gaps: Sequence[Gap]
    requirements: Sequence[RequirementRow]
    uncovered: Sequence[Requirement]
    doubted: frozenset[str]
    root: str


class Auditor:
    """Audits packets one after the other, because the logs of all packets may not fit into memory.

    `visit` is called for each packet, and keeps what a report needs besides the rows.
    """

    def __init__(self, visit: Callable[[AuditedPacket], None] | None = None) -> None:
        self._visit = visit
        self._rows: dict[str, PacketRow] = {}
        self._doubts: list[Problem] = []

    def take(self, facts: AuditFacts) -> None:
        """Audit the packets in `facts`. Packets must come in the order of their names."""
        for name, packet in sorted(facts.packets.items()):
            audited = AuditedPacket(facts, packet, trace(facts, packet), obstacles(facts, packet))
            self._rows[name] = row_of(audited)
            self._doubts += packet_doubts(packet, audited.trace, facts.policy.lanes)
            if self._visit is not None:
                self._visit(audited)

    def made(self, facts: AuditFacts, governed: Facts, reasons: Mapping[str, Reason]) -> Audit:
        """Return the audit. `facts.packets` are all packets; `governed` has the facts about the same packets, including
        the registers; `reasons` gives the family of each code.
        """
        rows = self._rows
        moves = [move for row in rows.values() for move in row.moves]
        order = lane_order(moves, facts.policy.lanes)
        required, left = coverage(facts, rows)
        matters = _matters(facts, rows, [*facts.findings, *uncovered_findings(facts, left), *self._doubts], reasons)
        doubts = [matter for matter in matters if _is_doubt(matter.finding, reasons)]
        return Audit(
            facts=facts,
            packets=rows,
            matters=matters,
            bases=base_rows(governed, rows),
            history=board_history(moves, order),
            lane_order=order,
            gaps=_gaps(facts, rows, required, left, doubts),
            requirements=requirement_rows(facts, rows, required),
            uncovered=left,
            doubted=frozenset(matter.packet for matter in doubts),
            root=log_root(rows),
        )


def log_root(rows: Mapping[str, PacketRow]) -> str:
    """Return one digest over the heads of all logs."""
    heads: dict[str, Json] = {name: list(row.heads) for name, row in rows.items()}
    return sha256(canonical_bytes(heads)).hexdigest()


def _matters(
    facts: AuditFacts, rows: Mapping[str, PacketRow], found: Sequence[Problem], reasons: Mapping[str, Reason]
) -> list[AuditFinding]:
    """Return each finding once, most severe first."""
    owner = owner_of(rows)
    ordered = sorted(dict.fromkeys(found), key=lambda one: (SEVERITIES.index(one.severity), one.order))
    owners = [owner(finding.path) for finding in ordered]
    written = _written(facts, zip(owners, ordered, strict=True))
    return [
        _matter(facts, finding, name, rows.get(name), written.get(finding.path, ""), reasons)
        for finding, name in zip(ordered, owners, strict=True)
    ]


def _written(facts: AuditFacts, found: Iterable[tuple[str, Problem]]) -> dict[str, str]:
    """Return when the events were written that findings are about, by path."""
    by_packet: dict[str, set[str]] = {}
    for name, finding in found:
        if name and finding.path.endswith(".json"):
            by_packet.setdefault(name, set()).add(finding.path)
    times: dict[str, str] = {}
    for name, paths in by_packet.items():
        known = facts.read(name).log.by_id
        times |= {path: event.at for path in paths if (event := known.get(stem_of(path))) is not None}
    return times


def _matter(
    facts: AuditFacts,
    finding: Problem,
    name: str,
    packet: PacketRow | None,
    written: str,
    reasons: Mapping[str, Reason],
) -> AuditFinding:
    change = facts.changes.get(finding.path)
    pending = finding.path in facts.uncommitted
    since = written or (change.at if change is not None and not pending else "")
    return AuditFinding(
        finding, name, since, who_acts(finding, reasons[finding.code].family, packet, facts.policy.lanes), pending
    )


def owner_of(rows: Mapping[str, PacketRow]) -> Callable[[str], str]:
    """Return a function that maps a path to its packet, using the packet's log, its own files, its envelopes or the
    files that it depends on.
    """
    known: dict[str, str] = {}
    for name, row in rows.items():
        for path in row.paths[:_OWN]:
            known[path] = name
        for envelope in row.envelopes:
            known[envelope_path(envelope)] = name
        for path in row.paths[_OWN:]:
            known[path] = name

    def owner(path: str) -> str:
        if path.startswith(f"{LOG_FOLDER}/"):
            name = path.split("/")[2]
            return name if name in rows else ""
        return known.get(path, "")

    return owner


def _is_doubt(finding: Problem, reasons: Mapping[str, Reason]) -> bool:
    return finding.severity == "error" and reasons[finding.code].family in {"approval", "integrity"}


def _doubtful(doubts: Sequence[AuditFinding], folder: str) -> set[str]:
    paths = (one.finding.path for one in doubts)
    return {path for path in paths if path.startswith(f"{folder}/") and path.endswith(".json")}


def _lost_events(facts: AuditFacts, doubts: Sequence[AuditFinding]) -> int:
    """Count the doubtful files of the log that are not counted as events, because they are missing or unreadable."""
    by_packet: dict[str, set[str]] = {}
    owners = {one.finding.path: one.packet for one in doubts}
    for path in _doubtful(doubts, LOG_FOLDER):
        by_packet.setdefault(owners[path], set()).add(path)
    lost = len(by_packet.pop("", ()))
    return lost + sum(
        len(paths - {event.path for event in facts.read(name).state.history}) for name, paths in by_packet.items()
    )


def _gaps(
    facts: AuditFacts,
    rows: Mapping[str, PacketRow],
    required: Sequence[Requirement],
    left: Sequence[Requirement],
    doubts: Sequence[AuditFinding],
) -> list[Gap]:
    """Return the categories. Everything that belongs to a doubtful packet counts as not in order, so that the numbers
    do not contradict the findings.
    """
    doubted = {matter.packet for matter in doubts}
    every = rows.values()
    sound = [row for name, row in rows.items() if name not in doubted]
    live = [row for row in every if row.lane not in ARCHIVED]
    working = [row for row in live if row.has_packet]
    finished = [row for row in working if row.lane in submitted_lanes(facts.policy.lanes)]
    named = {envelope_path(envelope) for row in every for envelope in row.envelopes}
    forged = len(_doubtful(doubts, ATTESTATIONS_FOLDER) - named)
    anchors = [anchor for row in live for anchor in row.anchors]

    def proved(chosen: Sequence[PacketRow]) -> tuple[int, int]:
        return sum(row.sound for row in chosen if row.id.text not in doubted), sum(row.criteria for row in chosen)

    return [
        Gap("Requirements with a packet", len(required) - len(left), len(required)),
        Gap("Packets with a requirement", sum(bool(row.anchors) for row in working), len(working)),
        Gap("Anchors that still match the specification", sum(one.found for one in anchors), len(anchors)),
        Gap("Criteria with evidence, in all packets", *proved(working)),
        Gap("Criteria with evidence, in finished work", *proved(finished)),
        Gap("Valid signed decisions", sum(row.valid for row in sound), sum(row.decisions for row in every) + forged),
        Gap(
            "Events with a proven actor; the rest are claimed, not proven",
            sum(row.proven for row in sound),
            sum(row.events for row in every) + _lost_events(facts, doubts),
        ),
        Gap("Packets with an intact log", sum(bool(row.lane) for row in sound), len(rows)),
    ]
