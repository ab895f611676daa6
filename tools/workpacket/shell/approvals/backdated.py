"""Approvals that were in time only if a commit was made before one that it comes after.

An approval must be used before it expires, and the time of its use is the time of the commit that brought the event
onto the base. Where the server makes that commit, the server's clock decides; where a branch was fast-forwarded, its
author wrote the time, and could write one that lay back. No commit is older than those before it on the line: what was
in time by its own commit and is not by theirs is told of. A warning, since a clock that was ahead does the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from workpacket.approvals.decide import decide
from workpacket.approvals.instants import CLOCK_SKEW, write_instant
from workpacket.git.history import line_times
from workpacket.git.repository import Repository
from workpacket.model.events import Event
from workpacket.model.findings import Finding
from workpacket.shell.approvals.events import gates_asked
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.base.revision import policy_at
from workpacket.value import replace


def backdated(approvals: Approvals, events: Iterable[Event]) -> Iterator[Finding]:
    """A finding for each event whose approvals counted by the time of its commit alone."""
    if not approvals.base.commit:
        return
    latest = _latest(approvals.repository, approvals.base.commit, int(approvals.now.timestamp()))
    # Of a commit that lies ahead of the clock, the clock decides until when it does.
    approvals.by_clock |= max(latest.values(), default=0) > approvals.now.timestamp()
    for event in events:
        settled = approvals.settled(event)
        if settled is None:
            continue
        commit, _, said = settled
        later = datetime.fromtimestamp(latest[commit], UTC)
        if later - said <= CLOCK_SKEW:
            continue
        for gate in gates_asked(event, policy_at(approvals.repository, approvals.policy_commit(event)).policy):
            against = _only_then(approvals, event, gate, later)
            if against:
                what = f"{commit[:12]}, which brought it, says {write_instant(said)}, but a commit before it says"
                message = f"{what} {write_instant(later)}, and by then: {', '.join(against)}"
                yield Finding("use_backdated", "warning", event.path, 0, 0, message)


def _only_then(approvals: Approvals, event: Event, gate: str, later: datetime) -> list[str]:
    """The codes of what stood against the gate `later`, if nothing did at the time of the event's own commit."""
    if not approvals.verdict(event.packet, gate, event).met:
        return []
    facts = replace(approvals.facts(event.packet, gate, event), on_base_since=later)
    return list(dict.fromkeys(refusal.code for refusal in decide(facts).unmet))


@lru_cache(maxsize=16)
def _latest(repository: Repository, commit: str, now: int) -> Mapping[str, int]:
    """For each commit of the line the latest time that it or one before it gives. What lies ahead of `now` is wrong."""
    latest: dict[str, int] = {}
    reached = 0
    for each, time in line_times(repository, commit):
        reached = max(reached, time if time <= now else 0)
        latest[each] = max(reached, time)
    return latest
