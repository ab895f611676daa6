"""Judge the events of a change: moves in a history with branches (rules 2 to 5 and 7 of docs/approvals/moves.md), and
submissions, whose evidence must prove the criteria and whose commit must contain the work.

A settlement is the only move without a row in the table of transitions, so everything in it is compared with the moves
that it settles. The moves are trusted; the settlement's claims about them are not.

The event's own claims are not trusted: they are compared with the criteria and the scope of the packet, and with what
git says about the commit. The same applies to the packet's file, whose bytes a submission or a verdict records: an
approval of a verdict is bound to the bytes before the verdict. The command changes only the status of the file, so the
two versions must differ only in the status, and a commit must contain the later one with some status.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, Final

from workpacket.documents.packet import Packet
from workpacket.ledger.fold import LaneReplay, fold, setting_events
from workpacket.ledger.log import Log
from workpacket.lifecycle.contract import is_complete
from workpacket.lifecycle.gates import lease_held
from workpacket.lifecycle.proofs import folded, unlike_demand
from workpacket.lifecycle.scope import outside
from workpacket.model.canonical import Json
from workpacket.model.event_types import FORKED
from workpacket.model.events import ChangedFile, LogEvent
from workpacket.model.lanes import BUILT_IN
from workpacket.problem import Location, Problem
from workpacket.text.source import Source, apply_edits
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.contract import Demand


def unseen_moves(log: Log, replay: LaneReplay, event: LogEvent, on_base: Collection[str]) -> Iterator[str]:
    """Yield the moves on the base that the writer of this event had not seen."""
    for identity in on_base:
        if not replay.has_seen(event, identity):
            move = log.by_id[identity]
            yield f"it does not follow {move.type} by {move.actor.id} ({identity[:12]}), which is on the base"


def settlement_faults(log: Log, replay: LaneReplay, event: LogEvent) -> Iterator[str]:
    """Yield everything that a settlement does besides choosing one branch of its fork."""
    latest = replay.join(event.parents)
    if replay.lane(latest) != FORKED:
        yield "there is no fork to resolve"
        return
    if set(event.texts("moves")) != set(latest):
        yield "it must list exactly the latest moves"
    if event.lane_to not in {log.by_id[identity].lane_to for identity in latest}:
        yield f"none of the moves that it resolves leads to {event.lane_to}"
    named = {log.by_id[each].text("by") for each in latest if log.by_id[each].lane_to == event.lane_to}
    if len(named) > 1:
        yield "the moves that it resolves specify different replacements for the packet"
    yield from _false_return(replay, event)
    holder = event.text("holder")
    if holder is not None and holder not in _holders(log, latest):
        yield f"{holder} did not hold the packet on any of its branches"


def _holders(log: Log, latest: Iterable[str]) -> Iterator[str]:
    """Yield the holders of the packet at the end of each branch, and before the fork. A holder who released the packet
    does not count.
    """
    branches = [log.ancestry([identity]) for identity in latest]
    for view in (*branches, frozenset.intersection(*branches)):
        lease = fold(log.as_of(view)).lease
        if lease is not None:
            yield lease.holder


def _false_return(replay: LaneReplay, event: LogEvent) -> Iterator[str]:
    """Report a return to the wrong lane. Only the `blocked` event says where a blocked packet returns; if there are
    several such events and they differ, the lane remains open.
    """
    said = event.text("came_from")
    if event.lane_to == "BLOCKED":
        origin = replay.blocked_in(event.texts("moves"))
        if origin is None:
            yield "the packet was blocked in different lanes before the moves that it resolves"
        elif said not in {None, origin}:
            yield f"the packet was blocked in {origin}, but the resolution says {said}"
    elif said is not None:
        yield f"it says that the packet was blocked in {said}, but it leads to {event.lane_to}"


def dropped_verdicts(replay: LaneReplay, heads: Iterable[str], lane: str | None) -> list[LogEvent]:
    """Return the signed verdicts on those branches of the fork that a settlement in `lane` does not follow."""
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
    """Yield the signed decisions that a revert drops while what they decided about remains: an amendment without the
    contract that it replaced, which would become current again, and a verdict other than PASS without its submission.
    """
    for event in log.events:
        if event.id not in removed or not event.attest:
            continue
        decided: Iterable[LogEvent | None] = ()
        if event.type == "amended":
            decided = setting_events(log, event.parents)
        elif event.type == "verdict.given" and event.text("verdict") != "PASS":
            decided = (log.submission_before(event),)
        if any(each is not None and each.id not in removed for each in decided):
            yield event


# The events that only the holder of a packet may write during the lease.
_BY_HOLDER: Final = frozenset({"released", "handed_over", "submitted", "lease.renewed"})
# The events that say until when a packet is held.
_LEASING: Final = frozenset({"claimed", "lease.renewed", "fork.resolved"})

HOLDER_JUDGED: Final = _BY_HOLDER | _LEASING


def holder_faults(log: Log, event: LogEvent, longest: timedelta, clock: str) -> Iterator[Problem]:
    """Report events by anyone other than the holder. `longest` is the longest time a claim may last. A lease that had
    expired by the time of the event excludes no one. `clock` is the current time: whether a lease came from a clock
    that was ahead must not depend on a time that the event's writer chose.
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


class SubmittedWork(Value):
    """What the packet and git say about a submission.

    `changed` are the paths that the commit changes, or None if the commit is not in this clone. `older` says that the
    commit was on the base before the work was claimed, and `amended` says that the packet was given a different
    contract after the submission. `same` are the commits with proofs that contain the same work; `absent` are the paths
    that are given as proof but missing from the commit; `exempt` are the criteria that the contract exempts from proof.
    `misdescribed` says that the digest of the work in the event is not that of its commit. `demands` are the proofs
    that the contract requires, by criterion, and `required` says that every criterion must have one.
    """

    criteria: Sequence[str]
    scope: Sequence[str]
    changed: Sequence[str] | None
    older: bool = False
    amended: bool = False
    same: Set[str] = frozenset()
    absent: Set[str] = frozenset()
    exempt: Set[str] = frozenset()
    misdescribed: bool = False
    demands: Mapping[str, Demand] = NOTHING
    required: bool = False


def submission_faults(event: LogEvent, work: SubmittedWork) -> Iterator[Problem]:
    """Yield faults, each with the code of the condition that can be waived."""
    commit = (event.text("commit") or "")[:12]
    if work.changed is None:
        yield Problem("changes_unknown", f"commit {commit} is missing here, so it is unknown what was submitted")
        return
    if work.older:
        yield Problem("changes_unknown", f"commit {commit} is on the base, and is older than the claim")
    if work.misdescribed:
        yield Problem("changes_unknown", f"the event does not describe the work in commit {commit}")
    if work.amended:
        return
    yield from _evidence_faults(evidence_rows(event), work)
    for path in outside(work.changed, work.scope):
        yield Problem("outside_scope", f"{path} is outside the scope", Location(path))


def evidence_rows(event: LogEvent) -> list[Mapping[str, Json]]:
    listed: Any = event.data["evidence"]
    return list(listed)


def _evidence_faults(rows: Sequence[Mapping[str, Json]], work: SubmittedWork) -> Iterator[Problem]:
    """Report faults in the evidence. The last row about a criterion counts, as in a submission by a person."""
    last = {folded(row["criterion"]): row for row in rows}
    wanted = {folded(criterion): criterion for criterion in work.criteria}
    for criterion in last.keys() - wanted.keys():
        yield Problem("evidence_missing", f"{criterion[:100]!r} is not a criterion of the packet")
    for wanted_as, criterion in wanted.items():
        for problem in _criterion_faults(last.get(wanted_as), work.demands.get(wanted_as), work):
            yield Problem(problem.code, f"{criterion[:100]!r} {problem.message}")
    if wanted and not any(row["result"] == "met" for row in last.values()):
        yield Problem("evidence_missing", "no criterion was met")


def _criterion_faults(row: Mapping[str, Json] | None, demand: Demand | None, work: SubmittedWork) -> Iterator[Problem]:
    """Yield why the last row about a criterion does not prove that criterion: faults of the evidence, and differences
    from the proof that the contract requires.
    """
    unlike = list(unlike_demand(row or {}, demand, required=work.required))
    if row is None and not (unlike and not is_complete(demand)):
        yield Problem("evidence_missing", "has no evidence")
        return
    looked_at = demand is not None and not demand.command and is_complete(demand)
    fault = next(_faults_of(row, work), "") if row is not None and not looked_at else ""
    if fault:
        yield Problem("evidence_missing", fault)
    yield from (Problem(each.code, f"is not proved: {each.message}") for each in unlike)


def _faults_of(row: Mapping[str, Json], work: SubmittedWork) -> Iterator[str]:
    """Yield what prevents a row from proving its criterion. The row's own label proves nothing."""
    if row["result"] == "not_applicable":
        if not row.get("reason"):
            yield "is marked as not applicable, but no reason is given"
        if folded(row["criterion"]) not in map(folded, work.exempt):
            yield "is marked as not applicable, but the contract does not exempt it from proof"
        return
    if row["result"] != "met":
        yield "was not met"
    if row.get("limit") == "time":
        yield "was not met: its command was stopped"
    elif "command" in row and row.get("exit_code") != 0:
        yield f"was not met: its command exited with {row.get('exit_code', 'no exit code')}"
    places = row.get("proof")
    named = places if isinstance(places, list) else []
    if "command" not in row and not named:
        yield "is marked as met, but no command or location proves it"
    yield from (f"was not met: {place} is not in the commit" for place in named if place in work.absent)
    commit = row.get("commit")
    if commit is not None and commit not in work.same:
        yield f"was proved at {str(commit)[:12]}, where the work differs"


def subject_faults(log: Log, subject: ChangedFile, versions: Mapping[str, bytes]) -> Iterator[str]:
    """Compare the files named in an event with `versions`, which commits in this clone contain, by digest. A clone
    without the commits of the work has few of these versions, and nothing is compared.

    Several moves may have been committed together, so a version may differ in status from the one in a commit.
    """
    if subject.sha256 is None or subject.prev is None:
        yield f"it says that {subject.path} was added or removed, but only the file's status may change"
        return
    before, after = versions.get(subject.prev), versions.get(subject.sha256)
    if after is None:
        after = _between(log, subject, versions)
    if after is None:
        if versions:
            yield (
                f"no commit contains {subject.path} with the content {subject.sha256[:12]}, which the event "
                "gives as the new version"
            )
    elif before is None:
        if subject.prev not in set(_in_other_lanes(log, subject.path, after)):
            yield f"{subject.path} never had the content {subject.prev[:12]}, which the event gives as the old version"
    elif _without_status(subject.path, before) != _without_status(subject.path, after):
        yield f"the versions of {subject.path} in the event differ in more than the status"


def _between(log: Log, subject: ChangedFile, versions: Mapping[str, bytes]) -> bytes | None:
    """Return the version that becomes the new one when only its status changes."""
    return next(
        (data for data in versions.values() if subject.sha256 in set(_in_other_lanes(log, subject.path, data))), None
    )


def _with_statuses(path: str, data: bytes, statuses: Sequence[str]) -> Iterator[bytes]:
    """Yield, for each status, the file as it is after the command that moves the packet to the lane of that status."""
    packet = Packet(Source.from_bytes(path, data))
    run = packet.first_line(packet.status)
    for status in statuses:
        yield apply_edits(packet.source, [run.replaced_by(status).edit]).encode() if run is not None else data


def _without_status(path: str, data: bytes) -> bytes:
    return next(_with_statuses(path, data, [""]))


def _in_other_lanes(log: Log, path: str, data: bytes) -> Iterator[str]:
    """Yield the digests of the text with each lane's status, for versions that were never committed."""
    statuses = [name for lane in BUILT_IN.lanes for name in (lane.title, lane.token)]
    for token in sorted({event.lane_to for event in log.events if event.lane_to}):
        statuses += [token, token.replace("_", " "), token.replace("_", " ").title()]
    for version in _with_statuses(path, data, statuses):
        yield hashlib.sha256(version).hexdigest()
