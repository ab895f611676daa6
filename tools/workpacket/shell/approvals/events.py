"""What the events of a packet say about approvals: who saw what, which bytes were used, who came first."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.approvals.facts import PacketLog
from workpacket.approvals.statement import Subject
from workpacket.ledger.log import Log
from workpacket.lifecycle.added_gates import gates_of
from workpacket.lifecycle.approval_terms import CONSUMING
from workpacket.model.events import Event
from workpacket.shell.approvals.matter import Matter
from workpacket.shell.base.policy import lifecycle_of


def packet_log(log: Log, heads: tuple[str, ...]) -> PacketLog:
    """The log as somebody sees it who knows these heads."""
    seen = log.ancestry(heads)
    events = [event for event in log.events if event.id in seen]
    return PacketLog(
        {event.id: event.parents for event in events}, frozenset(event.id for event in events if event.moves_lane)
    )


def consumed_subjects(consumer: Event, matter: Matter) -> tuple[Subject, ...]:
    """The bytes that the event says it rests on: the refinement it names, else its files as they were before it."""
    named = consumer.data.get("refinement")
    if isinstance(named, Mapping):
        return (Subject(str(named.get("path")), str(named.get("sha256"))),)
    paths = {path for path, _ in matter.files}
    before = tuple(
        sorted(Subject(each.path, each.prev) for each in consumer.subjects if each.prev and each.path in paths)
    )
    return before or matter.subjects


def gates_asked(event: Event, policy: bytes | None) -> tuple[str, ...]:
    """The gates that the event had to pass, by the policy under which it came, or is to come, onto the base."""
    if not event.moves_lane and event.type not in CONSUMING:
        return ()
    return gates_of(event, lifecycle_of(policy or b""))


def earlier(one: tuple[str, int] | None, other: tuple[str, int]) -> bool:
    """Whether a rival was on the base before; of two that came with one commit, each is the other's rival."""
    return one is not None and (one[1] < other[1] or one[0] == other[0])
