"""What the log says about a packet: values only, for gates, boards and reports to read."""

from __future__ import annotations

from workpacket.model.event_types import FORKED
from workpacket.model.events import Event
from workpacket.model.findings import Finding
from workpacket.value import Value


class Lease(Value):
    """Who holds the packet, and until when unless renewed. A packet taken over from before the log has no end."""

    holder: str
    lease: str
    expires_at: str


class Assignment(Value):
    """Where and by whom the work is to be done; '' where nothing was said."""

    assignee: str = ""
    branch: str = ""
    worktree: str = ""
    base_commit: str = ""
    base_packet: str = ""


class Run(Value):
    """A run of the runtime that works on the packet. `closed` holds the event with its outcome and digest.

    A run that goes on after it was closed is linked again: `linked` is the first link that nobody closed, else the
    last one. `store` tells apart runs of one name in two clones.
    """

    run: str
    linked: Event
    closed: Event | None = None

    @property
    def store(self) -> str:
        return self.linked.text("store") or ""


class PacketState(Value):
    """The replay of one log. The tuples of events are in the order of replay."""

    packet: str
    lane: str
    came_from: str | None
    latest_moves: tuple[Event, ...]
    heads: tuple[str, ...]
    lease: Lease | None
    assignment: Assignment
    holders: tuple[str, ...]
    runs: tuple[Run, ...]
    evidence: tuple[Event, ...]
    verdicts: tuple[Event, ...]
    approvals: tuple[Event, ...]
    waivers: tuple[Event, ...]
    refinement: Event | None
    presented: Event | None
    superseded_by: str
    history: tuple[Event, ...]
    findings: tuple[Finding, ...]

    @property
    def forked(self) -> bool:
        return self.lane == FORKED

    @property
    def open_runs(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.closed is None)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with the log that makes this state doubtful."""
        return not any(finding.severity == "error" for finding in self.findings)
