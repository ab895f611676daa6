"""Who did the work of a packet, and whether somebody may judge it: over keys and the people behind them.

Without `[actors]` in the policy of the base there are only names, and another name counts as another person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workpacket.approvals.actors import Actors
from workpacket.model.events import LogEvent

CODING = frozenset({"claimed", "lease.renewed", "submitted", "evidence.recorded"})


def coders(events: Iterable[LogEvent]) -> tuple[str, ...]:
    """Everybody who worked on the packet: who wrote that they did, and who is said to hold it."""
    found: dict[str, None] = {}
    for event in events:
        holder = event.text("holder")
        if holder:
            found[holder] = None
        if event.type in CODING:
            found[event.actor.id] = None
    return tuple(found)


def not_apart(judge: str, events: Iterable[LogEvent], actors: Actors) -> Iterator[str]:
    """Why this actor may not judge the work that these events record; nothing if it is other people's."""
    for coder in coders(events):
        reason = actors.why_not_apart(judge, coder)
        if reason:
            yield reason
