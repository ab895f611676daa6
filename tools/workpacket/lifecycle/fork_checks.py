"""Judge moves in a history with branches: rules 2 to 5 of docs/approvals/moves.md, for the events in a change. Also
rule 7, who held the packet: commands check it for the person who runs them, but anyone can write an event file.

A settlement is the only move without a row in the table of transitions, so everything in it is compared with the moves
that it settles. The moves are trusted; the settlement's claims about them are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from workpacket.ledger.fold import LaneReplay, fold, setting_events
from workpacket.ledger.log import Log
from workpacket.lifecycle.coverage import submission_before
from workpacket.lifecycle.gates import lease_held
from workpacket.model.event_types import FORKED
from workpacket.model.events import LogEvent
from workpacket.problem import Problem


def unseen_moves(log: Log, replay: LaneReplay, event: LogEvent, on_base: Collection[str]) -> Iterator[str]:
    """Yield the moves on the base that the writer of this event had not seen."""
    for identity in on_base:
        if not replay.has_seen(event, identity):
            move = log.by_id[identity]
            yield f"it was written without {move.type} by {move.actor.id} ({identity[:12]}), which is on the base"


def settlement_faults(log: Log, replay: LaneReplay, event: LogEvent) -> Iterator[str]:
    """Yield everything that a settlement does beyond choosing one branch of its fork."""
    latest = replay.join(event.parents)
    if replay.lane(latest) != FORKED:
        yield "there is no fork to settle"
        return
    if set(event.texts("moves")) != set(latest):
        yield "it must name exactly the latest moves"
    if event.lane_to not in {log.by_id[identity].lane_to for identity in latest}:
        yield f"none of the moves that it settles leads to {event.lane_to}"
    named = {log.by_id[each].text("by") for each in latest if log.by_id[each].lane_to == event.lane_to}
    if len(named) > 1:
        yield "the moves that it settles name different replacements of the packet"
    yield from _false_return(replay, event)
    holder = event.text("holder")
    if holder is not None and holder not in _holders(log, latest):
        yield f"{holder} did not hold the packet on any of its branches"


def _holders(log: Log, latest: Iterable[str]) -> Iterator[str]:
    """Yield the holders of the packet at the end of each branch, and before the fork. A holder who released it does not
    count.
    """
    branches = [log.ancestry([identity]) for identity in latest]
    for view in (*branches, frozenset.intersection(*branches)):
        lease = fold(log.as_of(view)).lease
        if lease is not None:
            yield lease.holder


def _false_return(replay: LaneReplay, event: LogEvent) -> Iterator[str]:
    """Report a wrong lane to return to. Only the `blocked` event says where a blocked packet returns; if there are
    several that differ, it stays open.
    """
    said = event.text("came_from")
    if event.lane_to == "BLOCKED":
        origin = replay.blocked_in(event.texts("moves"))
        if origin is None:
            yield "the moves that it settles were blocked in different lanes"
        elif said not in {None, origin}:
            yield f"the packet was blocked in {origin}, but the settlement says {said}"
    elif said is not None:
        yield f"it says that the packet was blocked in {said}, but leads to {event.lane_to}"


def dropped_verdicts(replay: LaneReplay, heads: Iterable[str], lane: str | None) -> list[LogEvent]:
    """Return the signed verdicts on the branches of the fork that a settlement in `lane` does not follow."""
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


def dropped_decisions(log: Log, removed: Collection[str]) -> Iterator[LogEvent]:
    """Yield the signed decisions that a revert drops while what they decided about stays: an amendment without the
    contract that it replaced, which would be in force again, and a verdict other than PASS without its submission.
    """
    for event in log.events:
        if event.id not in removed or not event.attest:
            continue
        decided: Iterable[LogEvent | None] = ()
        if event.type == "amended":
            decided = setting_events(log, event.parents)
        elif event.type == "verdict.given" and event.text("verdict") != "PASS":
            decided = (submission_before(log, event),)
        if any(each is not None and each.id not in removed for each in decided):
            yield event


# The events that only the holder of a packet may write during the lease.
_BY_HOLDER: Final = frozenset({"released", "handed_over", "submitted", "lease.renewed"})
# The events that say until when a packet is held.
_LEASING: Final = frozenset({"claimed", "lease.renewed", "fork.resolved"})

HOLDER_JUDGED: Final = _BY_HOLDER | _LEASING


def holder_faults(log: Log, event: LogEvent, longest: timedelta, clock: str) -> Iterator[Problem]:
    """Report events by anyone other than the holder. `longest` is the longest time a claim may last. A lease that had
    ended by the time of the event excludes no one. `clock` is the present: whether a lease came from a clock that was
    ahead must not depend on a time that the event's writer chose.
    """
    if event.type in _BY_HOLDER:
        holder = lease_held(fold(log.as_of(event.parents)), event.at, clock)
        if holder and event.actor.id != holder:
            yield Problem("not_the_holder", f"{event.actor.id} wrote {event.type} while {holder} held the packet")
        if event.type == "lease.renewed" and event.text("holder") != holder:
            message = f"it renews the lease of {event.text('holder')}, but {holder or 'no one'} held the packet"
            yield Problem("not_the_holder", message)
    ends = event.text("expires_at") if event.type in _LEASING else None
    if ends is not None and datetime.fromisoformat(ends) > datetime.fromisoformat(event.at) + longest:
        hours = int(longest.total_seconds()) // 3600
        yield Problem("lease_too_long", f"its lease ends at {ends}, more than {hours} hours after {event.at}")
