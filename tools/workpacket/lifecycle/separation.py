"""Who did the work of a packet, and whether someone may judge it, based on keys and the people behind them.

Without `[actors]` in the policy of the base, only names are known, and a different name counts as a different person.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.actors import Actors
    from workpacket.ledger.fold import PacketState
    from workpacket.model.events import LogEvent

CODING = frozenset({"claimed", "lease.renewed", "submitted", "evidence.recorded"})


def coders(events: Iterable[LogEvent]) -> tuple[str, ...]:
    """Return everyone who worked on the packet: those who recorded work, and those named as holders."""
    found: dict[str, None] = {}
    for event in events:
        holder = event.text("holder")
        if holder:
            found[holder] = None
        if event.type in CODING:
            found[event.actor.id] = None
    return tuple(found)


def workers(events: Iterable[LogEvent], actors: Actors) -> tuple[str, ...]:
    """Return these names and the current names of the keys that signed the work: a policy may rename an actor."""
    from workpacket.approvals.event_signatures import signing_key

    seen = tuple(events)
    keys = {signing_key(event) for event in seen if event.sig and event.type in CODING} if actors.present else set()
    renamed = (name for key in sorted(keys) for name in actors.names_by_key.get(key, ()))
    return tuple(dict.fromkeys((*coders(seen), *renamed)))


def not_apart(judge: str, events: Iterable[LogEvent], actors: Actors) -> Iterator[str]:
    """Yield why this actor may not judge the work in these events; nothing if other people did the work."""
    seen = tuple(events)
    named = coders(seen)
    reasons = [reason for coder in named if (reason := actors.why_not_apart(judge, coder))]
    if not reasons:
        renamed = (name for name in workers(seen, actors) if name not in named)
        reasons = [reason for name in renamed if (reason := actors.why_not_apart(judge, name))]
    yield from reasons


CLAIMED = "claimed, not proven"


def proven_events(actors: Actors, events: Iterable[LogEvent]) -> frozenset[str]:
    """Return those of these events whose signature proves their actor under this policy. Verifying a signature takes
    longer than reading the event, so only those that are shown should be asked about.
    """
    if not actors.present:
        return frozenset()
    from workpacket.approvals.event_signatures import EventSignatures

    signatures = EventSignatures(actors)
    return frozenset(event.id for event in events if event.sig and signatures.judge(event).proven)


def lease_events(state: PacketState) -> list[LogEvent]:
    """Return the event that gave the lease to its holder, in a list; nothing if the packet is free."""
    lease = state.lease
    if lease is None or not lease.holder:
        return []
    given = (event for event in reversed(state.history) if event.text("holder") == lease.holder)
    return list(islice(given, 1))


def lease_claimed(state: PacketState, proven: Container[str] | None) -> str:
    """Return ` (claimed, not proven)` if the holder of the lease is not proven.

    Without `proven`, a signature is assumed to be valid: a list of many packets does not verify them.
    """
    lease = state.lease
    if lease is None or not lease.holder:
        return ""
    given = [event for event in lease_events(state) if event.actor.id == lease.holder]
    shown = [event for event in given if (bool(event.sig) if proven is None else event.id in proven)]
    return "" if shown else f" ({CLAIMED})"
