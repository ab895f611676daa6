"""Judging moves in a history that has branches: docs/approvals/moves.md, rules 2 to 5, for events that a change brings.
Also who held the packet, rule 7: the commands ask it of the person who types, and an event is a file that anyone can
write.

A settlement is the only move without a row in the table of transitions, so everything in it is compared with the moves
that it settles. Those are trusted; the settlement's claims about them are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from workpacket.ledger.fold import LaneReplay, fold
from workpacket.ledger.log import Log
from workpacket.lifecycle.gates import lease_held
from workpacket.model.event_types import FORKED
from workpacket.model.events import LogEvent
from workpacket.problem import Problem


def unseen_moves(log: Log, replay: LaneReplay, event: LogEvent, on_base: Collection[str]) -> Iterator[str]:
    """Yield the moves that the base has and the writer of this event had not seen."""
    for identity in on_base:
        if not replay.has_seen(event, identity):
            move = log.by_id[identity]
            yield f"it does not follow {move.type} by {move.actor.id} ({identity[:12]}), which is on the base"


def settlement_faults(log: Log, replay: LaneReplay, event: LogEvent) -> Iterator[str]:
    """Yield everything in which a settlement does more than choose one branch of its fork."""
    latest = replay.join(event.parents)
    if replay.lane(latest) != FORKED:
        yield "there is no fork to settle"
        return
    if set(event.texts("moves")) != set(latest):
        yield "it does not name exactly the latest moves"
    if event.lane_to not in {log.by_id[identity].lane_to for identity in latest}:
        yield f"none of the moves that it settles leads to {event.lane_to}"
    named = {log.by_id[each].text("by") for each in latest if log.by_id[each].lane_to == event.lane_to}
    if len(named) > 1:
        yield "the moves that it settles name several packets that take its place"
    yield from _false_return(replay, event)
    holder = event.text("holder")
    if holder is not None and holder not in _holders(log, latest):
        yield f"{holder} did not hold the packet on any of its branches"


def _holders(log: Log, latest: Iterable[str]) -> Iterator[str]:
    """Who holds the packet at the end of each branch, and who held it before the fork. Who gave it back does not."""
    branches = [log.ancestry([identity]) for identity in latest]
    for view in (*branches, frozenset.intersection(*branches)):
        lease = fold(log.as_of(view)).lease
        if lease is not None:
            yield lease.holder


def _false_return(replay: LaneReplay, event: LogEvent) -> Iterator[str]:
    """Report a wrong return lane: only the block says where a blocked packet returns to; blocks that differ leave no
    answer.
    """
    said = event.text("came_from")
    if event.lane_to == "BLOCKED":
        origin = replay.blocked_in(event.texts("moves"))
        if origin is None:
            yield "the moves that it settles were blocked in different lanes"
        elif said not in {None, origin}:
            yield f"the packet was blocked in {origin}, but the settlement says {said}"
    elif said is not None:
        yield f"it says that the packet was blocked in {said}, and leads to {event.lane_to}"


def dropped_verdicts(replay: LaneReplay, heads: Iterable[str], lane: str | None) -> list[LogEvent]:
    """Return the signed verdicts on the branches of the fork in this view that a settlement in `lane` does not
    follow.
    """
    latest = replay.join(heads)
    if len(latest) < 2:
        return []
    found = [
        move
        for tip, branch in replay.since_fork(latest)
        if tip.lane_to != lane
        for move in branch
        if move.type == "verdict.given" and move.attest
    ]
    return list(dict.fromkeys(found))


# What only the holder of a packet may write while the lease lasts.
_BY_HOLDER: Final = frozenset({"released", "handed_over", "submitted", "lease.renewed"})
# What says until when somebody holds a packet.
_LEASING: Final = frozenset({"claimed", "lease.renewed", "fork.resolved"})

HOLDER_JUDGED: Final = _BY_HOLDER | _LEASING


def holder_faults(log: Log, event: LogEvent, longest: timedelta) -> Iterator[Problem]:
    """`longest` is for how long a claim may last. A lease that had ended by the event's own time keeps no one out."""
    if event.type in _BY_HOLDER:
        holder = lease_held(fold(log.as_of(event.parents)), event.at)
        if holder and event.actor.id != holder:
            yield Problem("not_the_holder", f"{event.actor.id} wrote {event.type} while {holder} held the packet")
        if event.type == "lease.renewed" and event.text("holder") != holder:
            message = f"it renews the lease of {event.text('holder')}, and {holder or 'no one'} held the packet"
            yield Problem("not_the_holder", message)
    ends = event.text("expires_at") if event.type in _LEASING else None
    if ends is not None and datetime.fromisoformat(ends) > datetime.fromisoformat(event.at) + longest:
        hours = int(longest.total_seconds()) // 3600
        yield Problem("lease_too_long", f"its lease ends at {ends}, more than {hours} hours after {event.at}")
