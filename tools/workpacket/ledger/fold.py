"""The fold computes the state of a packet from its log.

The lane comes from the graph (`lanes`), everything else from replaying the events in the order (clock, id). Both depend
only on the set of files, not on the order in which they arrived. The state is a value for gates, boards and reports to
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from workpacket.ledger.lanes import standing
from workpacket.ledger.log import Log
from workpacket.model.event_types import ENDING_VERDICTS, FORKED
from workpacket.model.events import LogEvent
from workpacket.problem import Problem
from workpacket.value import Value, replace

# The events that say which contract holds from then on.
SETS_CONTRACT: Final = frozenset({"activated", "amended"})


class PacketLease(Value):
    """Who holds the packet, and until when. The lease of a packet adopted from before the log does not end."""

    holder: str
    lease: str
    expires_at: str


class Assignment(Value):
    """Where and by whom the work will be done; '' if unknown."""

    assignee: str = ""
    branch: str = ""
    worktree: str = ""
    base_commit: str = ""
    base_packet: str = ""


class LinkedRun(Value):
    """A run that works on the packet. `closed` is the event with its outcome and digest. A run resumed after closing is
    linked again: `linked` is the first open link, otherwise the last one. `store` distinguishes runs with the same name
    in two clones.
    """

    run: str
    linked: LogEvent
    closed: LogEvent | None = None

    @property
    def store(self) -> str:
        return self.linked.text("store") or ""


class PacketState(Value):
    """The replay of one log. The tuples of events are in the order of replay."""

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
    def sound(self) -> bool:
        """Whether the log has no errors that make this state doubtful."""
        return not any(finding.severity == "error" for finding in self.findings)


def setting_events(log: Log, heads: Iterable[str] | None = None) -> tuple[LogEvent, ...]:
    """The events that say which contract holds now, or for who knows these heads: more than one after a fork."""
    setting = [event for event in log.events if event.type in SETS_CONTRACT and event.text("contract")]
    if heads is not None and setting:
        known = log.ancestry(heads)
        setting = [event for event in setting if event.id in known]
    if len(setting) < 2:
        return tuple(setting)
    replaced: set[str] = set()
    for event in setting:
        replaced |= log.ancestry(event.parents)
    return tuple(event for event in setting if event.id not in replaced)


def in_force(log: Log, heads: Iterable[str] | None = None) -> frozenset[str]:
    """The digests of the contracts that hold: one, none before there were contracts, several after a fork."""
    return frozenset(event.text("contract") or "" for event in setting_events(log, heads))


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


class _StateDraft:
    """The state during replay."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.lease: PacketLease | None = None
        self.assignment = Assignment()
        self.holders: dict[str, None] = {}
        self.runs: dict[tuple[str, str], LinkedRun] = {}
        self.links: dict[tuple[str, str], list[LogEvent]] = {}
        self.evidence: list[LogEvent] = []
        self.verdicts: list[LogEvent] = []
        self.approvals: list[LogEvent] = []
        self.waivers: list[LogEvent] = []
        self.refinement: LogEvent | None = None
        self.presented: LogEvent | None = None
        self.superseded_by = ""

    @cached_property
    def trunk(self) -> frozenset[str]:
        """The events that have seen everything before them in the order of replay: all of them without branches."""
        heads: set[str] = set()
        found: set[str] = set()
        for event in self.log.events:
            if heads.issubset(event.parents):
                found.add(event.id)
            heads.difference_update(event.parents)
            heads.add(event.id)
        return frozenset(found)

    def place(self, event: LogEvent) -> None:
        said = {key: event.text(key) or "" for key in ("assignee", "branch", "worktree", "base_commit", "base_packet")}
        self.assignment = replace(self.assignment, **{key: value for key, value in said.items() if value})

    def claim(self, event: LogEvent) -> None:
        self.hold(event)
        self.place(event)

    def hold(self, event: LogEvent) -> None:
        holder = event.text("holder")
        if holder is not None:
            self.holders[holder] = None
            self.lease = PacketLease(holder, event.text("lease") or "", event.text("expires_at") or "")

    def renew(self, event: LogEvent) -> None:
        # A renewal written on another branch after the lease had ended renews nothing.
        if self.lease is not None and self.lease.lease == event.text("lease"):
            self.hold(event)

    def let_go(self, _event: LogEvent) -> None:
        self.lease = None

    def hand_over(self, event: LogEvent) -> None:
        self.lease = None
        self.assignment = replace(self.assignment, assignee=event.text("to") or "")

    def judge(self, event: LogEvent) -> None:
        self.verdicts.append(event)
        if event.text("verdict") in ENDING_VERDICTS:
            self.lease = None

    def supersede(self, event: LogEvent) -> None:
        self.lease = None
        self.superseded_by = event.text("by") or ""

    def resolve(self, event: LogEvent) -> None:
        self.lease = None
        self.hold(event)

    def link(self, event: LogEvent) -> None:
        key = _key_of(event)
        self.links.setdefault(key, []).append(event)
        self.runs[key] = LinkedRun(key[1], self.links[key][0])

    def close(self, event: LogEvent) -> None:
        """The writer of the end has seen only earlier links: one made on another branch meanwhile stays open."""
        key = _key_of(event)
        if key not in self.runs:
            return
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


def _key_of(event: LogEvent) -> tuple[str, str]:
    return event.text("store") or "", event.text("run") or ""


_Change: TypeAlias = Callable[[_StateDraft, LogEvent], None]

# Types that are not named here change nothing but the lane.
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
