"""The fold computes the state of a packet from its log.

The lane comes from the graph (`lanes`), everything else from replaying the events by clock and id. Both depend
only on the set of files, not on the order in which they arrived. The state is a value for gates, boards and reports to
read.

The history of a packet may have branches. Every move depends on the moves that its writer saw. The *latest* moves of a
history are those on which no other move depends. If there is only one, or if all agree, the packet is in that lane. If
they contradict each other, the packet is forked until a `fork.resolved` event names them all: any other move on a fork
becomes part of the contradiction. Moves that agree still contradict each other if a holder, a commit or a verdict was
recorded on the way to one of them; otherwise a packet done and judged on two branches would combine two pieces of work.

The fold does not judge whether a move is legal; the lanes are stated in the events (docs/approvals/moves.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from operator import and_
from typing import Final, TypeAlias

from workpacket.ledger.log import Log, fault
from workpacket.model.event_types import ENDING_VERDICTS, FORKED, LIGHT_FORM
from workpacket.model.events import LogEvent
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import Problem
from workpacket.value import Value, replace

# The events that define the contract in force.
SETS_CONTRACT: Final = frozenset({"activated", "amended"})
_SAYS_FORM: Final = SETS_CONTRACT | {"created"}

Latest: TypeAlias = "tuple[str, ...]"

# Moves that name a holder, a commit or a verdict. A settlement replaces everything that it settled.
_NAMING: Final = frozenset(
    {"claimed", "released", "handed_over", "submitted", "merged", "verdict.given", "fork.resolved"}
)


class PacketLease(Value):
    """The holder of the packet, and the end of the lease. If the packet is older than its log, its lease does not
    expire.
    """

    holder: str
    lease: str
    expires_at: str


class Assignment(Value):
    """Where the work will be done, and who will do it; '' if unknown."""

    assignee: str = ""
    branch: str = ""
    worktree: str = ""
    base_commit: str = ""
    base_packet: str = ""


class LinkedRun(Value):
    """A run that works on the packet. `closed` is the event with its outcome and digest. A run resumed after closing is
    linked again: `linked` is the first open link, otherwise the last one. `store` distinguishes runs that have the same
    name in two clones.
    """

    run: str
    linked: LogEvent
    closed: LogEvent | None = None

    @property
    def store(self) -> str:
        return self.linked.text("store") or ""


class PacketState(Value):
    """The replay of one log. The tuples of events are in replay order."""

    packet: str
    lane: str
    came_from: str | None
    latest_moves: tuple[LogEvent, ...]
    heads: tuple[str, ...]
    lease: PacketLease | None
    assignment: Assignment
    holders: tuple[str, ...]
    runs: tuple[LinkedRun, ...]
    evidence: tuple[LogEvent, ...]
    verdicts: tuple[LogEvent, ...]
    approvals: tuple[LogEvent, ...]
    waivers: tuple[LogEvent, ...]
    refinement: LogEvent | None
    presented: LogEvent | None
    superseded_by: str
    history: tuple[LogEvent, ...]
    findings: tuple[Problem, ...]

    @property
    def forked(self) -> bool:
        return self.lane == FORKED

    @property
    def open_runs(self) -> tuple[LinkedRun, ...]:
        return tuple(run for run in self.runs if run.closed is None)

    @property
    def lease_given(self) -> str:
        """Return the latest time at which the current lease was granted or renewed; '' if there is none."""
        lease = self.lease
        return max((event.at for event in self.history if lease and event.text("lease") == lease.lease), default="")

    @property
    def light(self) -> bool:
        """Whether the log says that the packet is in the light form."""
        said = [event for event in self.history if event.type in _SAYS_FORM]
        return bool(said) and said[-1].text("form") == LIGHT_FORM

    @property
    def sound(self) -> bool:
        """Whether the log has no errors that make this state doubtful."""
        return not any(finding.severity == "error" for finding in self.findings)


def setting_events(log: Log, heads: Iterable[str] | None = None) -> tuple[LogEvent, ...]:
    """Return the events that define the current contract, now or at these heads; a fork may have several."""
    setting = [event for event in log.events if event.type in SETS_CONTRACT and event.text("contract")]
    if heads is not None:
        known = log.ancestry(heads)
        setting = [event for event in setting if event.id in known]
    if len(setting) < 2:
        return tuple(setting)
    replaced: set[str] = set()
    for event in setting:
        replaced |= log.ancestry(event.parents)
    return tuple(event for event in setting if event.id not in replaced)


def in_force(log: Log, heads: Iterable[str] | None = None) -> frozenset[str]:
    """Return the digests of the current contracts: usually one, none in logs older than contracts, several after a
    fork.
    """
    return frozenset(str(event.data["contract"]) for event in setting_events(log, heads))


def fold(log: Log) -> PacketState:
    draft = _StateDraft(log)
    for event in log.events:
        change = _CHANGES.get(event.type)
        if change is not None:
            change(draft, event)
    stand = standing(log)
    return PacketState(
        packet=log.packet,
        lane=stand.lane,
        came_from=stand.came_from,
        latest_moves=stand.latest,
        heads=log.heads,
        lease=draft.lease,
        assignment=draft.assignment,
        holders=tuple(draft.holders),
        runs=tuple(draft.runs.values()),
        evidence=tuple(draft.evidence),
        verdicts=tuple(draft.verdicts),
        approvals=tuple(draft.approvals),
        waivers=tuple(draft.waivers),
        refinement=draft.refinement,
        presented=draft.presented,
        superseded_by=draft.superseded_by,
        history=log.events,
        findings=(*log.findings, *stand.findings),
    )


_UNASSIGNED: Final = Assignment()


class _StateDraft:
    """The state of a packet during replay."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.lease: PacketLease | None = None
        self.assignment = _UNASSIGNED
        self.holders: dict[str, None] = {}
        self.runs: dict[tuple[str | None, str], LinkedRun] = {}
        self.links: dict[tuple[str | None, str], list[LogEvent]] = {}
        self.evidence: list[LogEvent] = []
        self.verdicts: list[LogEvent] = []
        self.approvals: list[LogEvent] = []
        self.waivers: list[LogEvent] = []
        self.refinement: LogEvent | None = None
        self.presented: LogEvent | None = None
        self.superseded_by = ""

    @cached_property
    def trunk(self) -> frozenset[str]:
        """Return the events whose writers had seen all earlier events; without branches, these are all events."""
        heads: set[str] = set()
        found: set[str] = set()
        for event in self.log.events:
            if heads.issubset(event.parents):
                found.add(event.id)
            heads.difference_update(event.parents)
            heads.add(event.id)
        return frozenset(found)

    def place(self, event: LogEvent) -> None:
        said = ((key, event.text(key)) for key in ("assignee", "branch", "worktree", "base_commit", "base_packet"))
        self.assignment = replace(self.assignment, **{key: value for key, value in said if value})

    def claim(self, event: LogEvent) -> None:
        self.hold(event)
        self.place(event)

    def hold(self, event: LogEvent) -> None:
        holder = event.text("holder")
        if holder is not None:
            self.holders[holder] = None
            self.lease = PacketLease(holder, event.text("lease") or "", event.text("expires_at") or "")

    def renew(self, event: LogEvent) -> None:
        # A renewal written on another branch after the lease had ended has no effect.
        if self.lease is not None and self.lease.lease == event.text("lease"):
            self.hold(event)

    def let_go(self, _event: LogEvent) -> None:
        self.lease = None

    def hand_over(self, event: LogEvent) -> None:
        self.lease = None
        self.assignment = replace(self.assignment, assignee=str(event.data["to"]))

    def judge(self, event: LogEvent) -> None:
        self.verdicts.append(event)
        if event.text("verdict") in ENDING_VERDICTS:
            self.lease = None

    def supersede(self, event: LogEvent) -> None:
        self.lease = None
        self.superseded_by = str(event.data["by"])

    def resolve(self, event: LogEvent) -> None:
        self.lease = None
        self.hold(event)

    def link(self, event: LogEvent) -> None:
        key = _key_of(event)
        # A run can be linked on two branches; both links stay open until an event that has seen them closes them.
        self.links.setdefault(key, []).append(event)
        self.runs[key] = LinkedRun(key[1], self.links[key][0])

    def close(self, event: LogEvent) -> None:
        """Close the links that the writer of this event had seen: a link made on another branch in the meantime remains
        open.
        """
        key = _key_of(event)
        if key not in self.runs:
            return
        # It has seen everything before it, so its ancestry need not be computed: logs are usually without branches.
        if event.id in self.trunk:
            self.links[key] = []
        else:
            known = self.log.ancestry(event.parents)
            self.links[key] = [link for link in self.links[key] if link.id not in known]
        if self.links[key]:
            self.runs[key] = LinkedRun(key[1], self.links[key][0])
        elif self.runs[key].closed is None:
            self.runs[key] = replace(self.runs[key], closed=event)

    def prove(self, event: LogEvent) -> None:
        self.evidence.append(event)

    def approve(self, event: LogEvent) -> None:
        self.approvals.append(event)

    def waive(self, event: LogEvent) -> None:
        self.waivers.append(event)

    def refine(self, event: LogEvent) -> None:
        self.refinement = event

    def present(self, event: LogEvent) -> None:
        self.presented = event


def _key_of(event: LogEvent) -> tuple[str | None, str]:
    return event.text("store"), str(event.data["run"])


_Change: TypeAlias = Callable[[_StateDraft, LogEvent], None]

# Types not listed here change only the lane.
_CHANGES: Final[Mapping[str, _Change]] = {
    "adopted": _StateDraft.claim,
    "prepared": _StateDraft.place,
    "claimed": _StateDraft.claim,
    "lease.renewed": _StateDraft.renew,
    "released": _StateDraft.let_go,
    "handed_over": _StateDraft.hand_over,
    "submitted": _StateDraft.prove,
    "evidence.recorded": _StateDraft.prove,
    "verdict.given": _StateDraft.judge,
    "merged": _StateDraft.let_go,
    "superseded": _StateDraft.supersede,
    "abandoned": _StateDraft.let_go,
    "overridden": _StateDraft.waive,
    "waived": _StateDraft.waive,
    "refinement.recorded": _StateDraft.refine,
    "refinement.presented": _StateDraft.present,
    "approval.recorded": _StateDraft.approve,
    "run.linked": _StateDraft.link,
    "run.closed": _StateDraft.close,
    "fork.resolved": _StateDraft.resolve,
}


class LaneState(Value):
    """The resulting lane, the latest moves (several if forked), and errors along the way. `came_from` is the lane from
    which the packet was blocked.
    """

    lane: str
    latest: tuple[LogEvent, ...]
    findings: tuple[Problem, ...]
    came_from: str | None = None


def standing(log: Log) -> LaneState:
    """Replay the lane moves of a log."""
    replay = LaneReplay(log)
    ends = replay.join(log.heads)
    latest = tuple(log.by_id[identity] for identity in ends)
    lane = replay.lane(ends)
    findings = replay.gaps
    if lane == FORKED:
        findings += [_forked(log, latest), *(_upon_fork(move) for move in latest if move.id in replay.upon_fork)]
    return LaneState(lane, latest, tuple(findings), replay.blocked_in(ends) if lane == "BLOCKED" else None)


class LaneReplay:
    """For every event of a log, the latest moves in its view and, as bits, all moves that it depends on."""

    def __init__(self, log: Log) -> None:
        self.gaps: list[Problem] = []
        self.upon_fork: set[str] = set()
        self._by_id = log.by_id
        self._latest: dict[str, Latest] = {}
        self._rests_on: dict[str, int] = {}
        self._bit: dict[str, int] = {}
        self._naming = 0
        self._blocked_in: dict[str, str | None] = {}
        for event in log.by_id.values():
            self._take(event)

    def _take(self, event: LogEvent) -> None:
        seen = self.join(event.parents)
        rests_on = 0
        for parent in event.parents:
            rests_on |= self._rests_on[parent]
        if event.moves_lane:
            # A set of moves is one integer, so that joining and comparing histories stays fast in logs of thousands
            # of moves.
            bit = self._bit[event.id] = 1 << len(self._bit)
            rests_on |= bit
            if event.type in _NAMING:
                self._naming |= bit
            if event.lane_to == "BLOCKED":
                self._blocked_in[event.id] = self._block_origin(event)
            seen = self._after_move(event, seen)
        self._latest[event.id] = seen
        self._rests_on[event.id] = rests_on

    def join(self, events: Iterable[str]) -> Latest:
        """Return the latest moves for a viewer who sees all these events."""
        views = [self._latest[identity] for identity in events]
        # The usual case: after its first event, a log without branches has no other.
        if len(views) == 1:
            return views[0]
        moves = dict.fromkeys(move for view in views for move in view)
        return tuple(move for move in moves if not any(self._covers(other, move) for other in moves))

    def lane(self, latest: Latest) -> str:
        """Return the lane that these moves agree on; FORKED if they do not; '' if there are none."""
        if latest[1:] and self._contradict(latest):
            return FORKED
        return next((str(self._by_id[identity].lane_to) for identity in latest), "")

    def blocked_in(self, latest: Iterable[str]) -> str | None:
        """Return the lane from which a packet was blocked, if the latest moves that block the packet agree on it."""
        origins = {self._blocked_in[identity] for identity in latest if identity in self._blocked_in}
        return next(iter(origins)) if len(origins) == 1 else None

    def has_seen(self, event: LogEvent, move: str) -> bool:
        """Whether the event depends on this move."""
        return bool(self._rests_on[event.id] & self._bit[move])

    def since_fork(self, latest: Latest) -> Iterator[tuple[LogEvent, Sequence[LogEvent]]]:
        """Yield, for each of these moves, the moves on its branch since the last one that all branches share."""
        shared = self._shared(latest)
        for identity in latest:
            own = self._rests_on[identity] & ~shared
            yield self._by_id[identity], [self._by_id[move] for move, bit in self._bit.items() if own & bit]

    def _shared(self, latest: Latest) -> int:
        return reduce(and_, (self._rests_on[identity] for identity in latest))

    def _contradict(self, latest: Latest) -> bool:
        moves = [self._by_id[identity] for identity in latest]
        named = ("by", "contract", "refinement")
        if len({(m.type, m.lane_from, m.lane_to, *(str(m.data.get(key)) for key in named)) for m in moves}) > 1:
            return True
        shared = self._shared(latest)
        return any(self._rests_on[identity] & ~shared & self._naming for identity in latest)

    def _block_origin(self, event: LogEvent) -> str | None:
        """Return the lane stated in the `blocked` event itself. A settlement is trusted for the moves that it chose,
        but not for the lane in which the packet was blocked.
        """
        if event.type == "fork.resolved":
            return self.blocked_in(event.texts("moves"))
        return event.lane_from if event.type == "blocked" else event.text("came_from")

    def _covers(self, later: str, earlier: str) -> bool:
        # A move made on a fork does not end the conflicting moves: it joins them.
        return earlier not in self._latest[later] and bool(self._rests_on[later] & self._bit[earlier])

    def _after_move(self, event: LogEvent, seen: Latest) -> Latest:
        before = self.lane(seen)
        # Only a settlement names moves.
        if before == FORKED and not set(seen) <= set(event.texts("moves")):
            kept = (identity for identity in seen if identity not in self.upon_fork)
            self.upon_fork.add(event.id)
            return (*kept, event.id)
        if (event.lane_from or "") != before:
            message = f"{event.type} leaves {event.lane_from}, but the packet was in {before or 'no lane'}"
            self.gaps.append(fault("log_lane_gap", event.path, message))
        return (event.id,)


def _forked(log: Log, latest: Iterable[LogEvent]) -> Problem:
    moves = "; ".join(
        f"{move.type} by {move.actor.id} to {move.lane_to} ({move.id[:12]}, {move.at})"
        for move in sorted(latest, key=lambda move: move.order)
    )
    return fault("packet_forked", f"{LOG_FOLDER}/{log.packet}", f"{log.packet} was moved independently: {moves}")


def _upon_fork(move: LogEvent) -> Problem:
    message = f"{move.type} to {move.lane_to} was recorded while the packet was forked, but does not resolve the fork"
    return fault("log_moved_while_forked", move.path, message)
