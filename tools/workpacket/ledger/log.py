"""The log of one packet as a graph: events joined to their parents, ordered for replay.

What can be wrong with single files is found by `decode`; here it is what can be wrong between them: a missing parent,
a false clock, a second beginning. Only events whose whole ancestry holds are replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workpacket.ledger.decode import decode_event, is_event_name
from workpacket.ledger.faults import fault
from workpacket.model.event_types import GENESIS_TYPES
from workpacket.model.events import LOG_FOLDER, Event
from workpacket.model.findings import Finding
from workpacket.value import Value


class Log(Value):
    """The events that hold together, by id and in the order of replay; the heads among them; and all that is wrong."""

    packet: str
    by_id: Mapping[str, Event]
    heads: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self.by_id.values())

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong that makes the history doubtful."""
        return not any(finding.severity == "error" for finding in self.findings)

    def ancestry(self, heads: Iterable[str]) -> frozenset[str]:
        """These events and everything before them; ids that are not in the log stand for nothing."""
        seen: set[str] = set()
        waiting = [head for head in heads if head in self.by_id]
        while waiting:
            identity = waiting.pop()
            if identity not in seen:
                seen.add(identity)
                waiting.extend(self.by_id[identity].parents)
        return frozenset(seen)

    def unseen_moves(self, heads: Iterable[str]) -> tuple[Event, ...]:
        """The lane moves that somebody who saw `heads` did not know of: they make an approval stale."""
        seen = self.ancestry(heads)
        return tuple(event for event in self.events if event.moves_lane and event.id not in seen)

    def as_of(self, heads: Iterable[str]) -> Log:
        """The log as somebody saw it whose heads these were."""
        seen = self.ancestry(heads)
        return join_events(self.packet, [event for event in self.events if event.id in seen])

    def until(self, moment: str) -> Log:
        """The log without events that claim a later time, and without what followed from them."""
        later = {event.id for event in self.events if event.at > moment}
        for event in self.events:
            if not later.isdisjoint(event.parents):
                later.add(event.id)
        return join_events(self.packet, [event for event in self.events if event.id not in later])


def read_log(packet: str, files: Mapping[str, bytes]) -> Log:
    """The log of `packet` from the files of its folder, by name."""
    folder = f"{LOG_FOLDER}/{packet}"
    events: list[Event] = []
    findings: list[Finding] = []
    for name, data in files.items():
        if not is_event_name(name):
            findings.append(fault("log_foreign_file", f"{folder}/{name}", "the name is not that of an event"))
            continue
        decoded = decode_event(folder, name, data, names=files)
        if isinstance(decoded, Event):
            events.append(decoded)
        else:
            findings.append(decoded)
    return join_events(packet, events, findings)


def join_events(packet: str, events: Iterable[Event], findings: Iterable[Finding] = ()) -> Log:
    """The graph of events that were decoded without fault; `findings` are those of the files that were not."""
    known = {event.id: event for event in events}
    found = list(findings)
    attached: dict[str, Event] = {}
    followed: set[str] = set()
    # Clocks grow along every edge, so in this order parents come before their children.
    for event in sorted(known.values(), key=_replay_order):
        problem = _joint_fault(event, known)
        if problem is not None:
            found.append(problem)
        elif all(parent in attached for parent in event.parents):
            attached[event.id] = event
            followed.update(event.parents)
    found += _beginning_faults(packet, known, [event for event in attached.values() if not event.parents])
    heads = tuple(sorted(attached.keys() - followed))
    return Log(packet, attached, heads, tuple(sorted(found, key=lambda finding: finding.order)))


def _replay_order(event: Event) -> tuple[int, str]:
    return event.clock, event.id


def _joint_fault(event: Event, known: Mapping[str, Event]) -> Finding | None:
    before = 0
    for parent in event.parents:
        if parent not in known:
            return fault("log_event_missing", event.path, f"its parent {parent} is not in the log")
        before = max(before, known[parent].clock)
    if event.clock != before + 1:
        return fault("log_false_clock", event.path, f"the clock says {event.clock}; its parents ask for {before + 1}")
    if not event.parents and event.type not in GENESIS_TYPES:
        return fault("event_malformed", event.path, f"/parents: an event of type {event.type} cannot begin a log")
    if event.parents and event.type in ("created", "adopted"):
        return fault("event_malformed", event.path, f"/parents: an event of type {event.type} can only begin a log")
    return None


def _beginning_faults(packet: str, known: Mapping[str, Event], beginnings: list[Event]) -> list[Finding]:
    if not beginnings:
        missing = fault("log_no_genesis", f"{LOG_FOLDER}/{packet}", "no event in this log is its beginning")
        return [missing] if known else []
    first = beginnings[0].id
    return [fault("log_second_genesis", other.path, f"the log begins with {first} already") for other in beginnings[1:]]
