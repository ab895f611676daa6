"""Judge a change: every move between base and head must be legal and have passed its gate. Anyone can write an event
file, so the gates' conditions are checked again, in the events and in the files that they refer to: a submission has
proof, a verdict is given by someone else, an activation has its refinement. Approvals are judged elsewhere
(`shell.approvals.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from workpacket.approvals.event_signatures import EventSignatures
from workpacket.ledger.fold import SETS_CONTRACT, LaneReplay, fold
from workpacket.ledger.log import Log, is_renaming
from workpacket.lifecycle.authorship import coders, not_apart
from workpacket.lifecycle.change_checks import (
    HOLDER_JUDGED,
    SubmittedWork,
    dropped_verdicts,
    holder_faults,
    settlement_faults,
    subject_faults,
    submission_faults,
    unseen_moves,
)
from workpacket.lifecycle.gates import CONSUMING, RESOLVE_GATE, covers, unfinished_runs
from workpacket.lifecycle.proofs import attestation_fault
from workpacket.lifecycle.review import Report, is_vouched_for, report_of
from workpacket.lifecycle.transitions import TRANSITIONS, Transition, is_legal, transitions
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.events import LogEvent
from workpacket.model.lanes import MAY_BE_STUB, LaneTable
from workpacket.model.layout import packet_paths
from workpacket.problem import Problem
from workpacket.value import NOTHING, Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.policy import EvidencePolicy, LifecyclePolicy

# The code for conditions that no waiver can lift: no rule has this name.
_NEVER_LIFTED: Final = ""

# Returns the digest of a file at head, None if the file is missing.
DigestOf = Callable[[str], str | None]


class EventObjection(Value):
    """One objection to an event."""

    code: str
    event: LogEvent
    message: str


class Around(Value):
    """What the gates examine outside the judged log.

    `dependencies` are the packets that the claimed one waits for, and whether they were ever done; `waivers` are the
    approved ones; `contained` says whether a commit is part of head; `submitted` returns what the packet and git say
    about a submission; `open_points` are points in the refinement's checklist that are not met. `packets` are those
    that have a log; `versions` returns the bytes of a file in every commit of this clone, by digest. `standing` is used
    if the policy has a gate for standing packets: it returns the last day of this packet according to its files ('' if
    it is not a standing packet) and according to those on the base (None if the base does not have it). `unreplayed` is
    the reason why a verdict should have waited for a replay. `light`: whether the packet's document is in the light
    form; `light_unmet`: what that document lacks.
    """

    dependencies: Mapping[str, bool]
    waivers: Sequence[LogEvent]
    contained: Callable[[LogEvent], bool]
    submitted: Callable[[LogEvent], SubmittedWork]
    open_points: Callable[[], Sequence[str]]
    packets: Collection[str] = ()
    versions: Callable[[str], Mapping[str, bytes]] = lambda _: NOTHING
    standing: Callable[[], tuple[str, str | None] | None] = lambda: None
    unreplayed: Callable[[LogEvent], str] = lambda _: ""
    light: bool = False
    light_unmet: Callable[[], Sequence[str]] = lambda: ()

    def lifts(self, unmet: Problem) -> bool:
        return any(covers(waiver, unmet) for waiver in self.waivers)


def judge_change(
    log: Log,
    known: frozenset[str],
    digest_of: DigestOf,
    around: Callable[[], Around],
    *,
    clock: str,
    governed: bool,
    reports: Sequence[Report],
    policy: LifecyclePolicy,
) -> Iterator[EventObjection]:
    """Yield objections to the events of a log that are not on the base; `known` are the ids of the events on the base.

    `clock` is the current time. `governed`: whether the base has a log at all. `reports` are the reports of the
    verdicts in all logs. `policy` is the base's policy.
    """
    yield from _renamed_too_late(log, known)
    if log.is_renamed:  # its documents have the other id, under which it is judged
        return
    brought = [event for event in log.events if event.id not in known]
    if not any(_is_judged(event) for event in brought):
        return
    replay = LaneReplay(log)
    longest = timedelta(hours=policy.lease_hours)
    on_base = [event.id for event in log.events if event.id in known and event.moves_lane]
    workers: set[str] = set()
    for event in log.events:
        workers.update(coders((event,)))
        if event.id in known or not _is_judged(event):
            continue
        for unmet in holder_faults(log, event, longest, clock):
            if not around().lifts(unmet):
                yield EventObjection("move_without_gate", event, unmet.message)
        if event.type == "lease.renewed":
            continue  # it counts only until its lease ends, whatever the base has done since
        for message in unseen_moves(log, replay, event, on_base):
            yield EventObjection("move_beside_base", event, f"{event.type}: {message}")
        if event.type in SETS_CONTRACT:
            yield from _false_standing(event, around)
        if event.moves_lane:
            yield from _illegal(replay, event, policy.lanes)
            yield from _placed_by_hand(log, replay, event, governed=governed)
            yield from _ungated(_Move(event, workers, digest_of, around, reports))
            yield from _past_runs(log, event, known, around)
            yield from _false_subjects(log, event, around)


def _renamed_too_late(log: Log, known: frozenset[str]) -> Iterator[EventObjection]:
    """Report the renaming of a packet that is on the base: its id could then be given to a different packet, with the
    same log.
    """
    for event in log.stored:
        if is_renaming(event) and event.id not in known and not known.isdisjoint(log.ancestry(event.parents)):
            yield EventObjection("move_without_gate", event, "it renames a packet that has already been merged")


def _is_judged(event: LogEvent) -> bool:
    """Return true for moves, changes of holder, and events that use an approval: approvals given before them are for a
    different state.
    """
    return event.moves_lane or bool(event.attest) or event.type in CONSUMING or event.type in HOLDER_JUDGED


def _past_runs(
    log: Log, event: LogEvent, known: frozenset[str], around: Callable[[], Around]
) -> Iterator[EventObjection]:
    """Report a verdict or a merge that was written while a run was active, if its writer could see the run or the run
    is on the base.
    """
    if event.type not in {"verdict.given", "merged"}:
        return
    seen = (*event.parents, *(each.id for each in log.events if each.id in known))
    for unmet in unfinished_runs(fold(log.as_of(seen))):
        if not around().lifts(unmet):
            yield EventObjection("move_without_gate", event, f"{unmet.message} when {event.type} was written")


def _illegal(replay: LaneReplay, event: LogEvent, lanes: LaneTable) -> Iterator[EventObjection]:
    came_from = replay.blocked_in(replay.join(event.parents)) if event.type == "unblocked" else None
    if not is_legal(event.type, event.lane_from, event.lane_to, came_from=came_from, lanes=lanes):
        what = f"{event.type} leads from {event.lane_from} to {event.lane_to}"
        message = f"{what}, which is not a valid transition{_between(event, lanes)}"
        yield EventObjection("move_illegal", event, message)


def _between(event: LogEvent, lanes: LaneTable) -> str:
    """Describe a lane that the base's policy adds and the move skips, or one that the policy does not define."""
    unknown = [token for token in (event.lane_from, event.lane_to) if token and lanes.lane(token) is None]
    if unknown:
        return f": the policy on the base does not define lane {unknown[0]}"
    row = next((row for row in transitions(lanes) if row.event == event.type and event.lane_from in row.origins), None)
    way = lanes.way
    if row is None or event.lane_from not in way or event.lane_to not in way:
        return ""
    left_out = [
        token for token in way[way.index(event.lane_from) + 1 : way.index(event.lane_to)] if lanes.is_added(token)
    ]
    return f": it leaves out {', '.join(left_out)}" if left_out else ""


def _placed_by_hand(log: Log, replay: LaneReplay, event: LogEvent, *, governed: bool) -> Iterator[EventObjection]:
    """Report an illegal lane that a person chose by hand, when adopting a packet, or when settling a fork."""
    if event.type == "adopted" and governed and event.lane_to not in MAY_BE_STUB:
        message = f"it was adopted as {event.lane_to}, but once packets have logs, work must start as a stub"
        yield EventObjection("move_illegal", event, message)
    if event.type == "fork.resolved":
        for message in settlement_faults(log, replay, event):
            yield EventObjection("move_illegal", event, f"fork.resolved: {message}")
        dropped = [] if event.attest else dropped_verdicts(replay, event.parents, event.lane_to)
        for verdict in dropped:
            said = f"{verdict.text('verdict')} by {verdict.actor.id} ({verdict.id[:12]})"
            message = f"fork.resolved drops the signed verdict {said} without using gate {RESOLVE_GATE}"
            yield EventObjection("move_without_gate", event, message)


def _false_standing(event: LogEvent, around: Callable[[], Around]) -> Iterator[EventObjection]:
    """Report a packet that passed the gate for standing packets without being one, or a standing packet that bypassed
    the gate."""
    found = around().standing()
    if found is None:
        return
    here, before = found
    said = event.text("standing") or ""
    if said != here:
        message = f"{event.type} says {_until(said)}, but the scope of the packet says {_until(here)}"
        yield EventObjection("move_without_gate", event, message)
    elif before is not None and before != here:
        message = f"the scope on the base says {_until(before)}, and no amendment changes it to {_until(here)}"
        yield EventObjection("move_without_gate", event, message)


def _until(day: str) -> str:
    return f"standing until {day}" if day else "not a standing packet"


def _false_subjects(log: Log, event: LogEvent, around: Callable[[], Around]) -> Iterator[EventObjection]:
    """Compare what a submission or a verdict says about the packet's file, before and after, with the commits."""
    if event.type in {"submitted", "verdict.given"}:
        paths = packet_paths(log.packet)
        for subject in (each for each in event.subjects if each.path in paths):
            for message in subject_faults(log, subject, around().versions(subject.path)):
                yield EventObjection("event_subject_false", event, message)


class _Move(Value):
    """An event that moves a packet, and what the gates examine."""

    event: LogEvent
    workers: set[str]
    digest_of: DigestOf
    around: Callable[[], Around]
    reports: Sequence[Report]


Judge: TypeAlias = Callable[[_Move], Sequence[Problem]]


def judges_of(rows: Iterable[Transition]) -> Mapping[str, Judge]:
    """Return the judge for each type of event behind a gate. A handwritten event could pass a gate that has no
    judge."""
    judges: dict[str, Judge] = {}
    for row in rows:
        judge = _JUDGES.get(row.gate)
        if judge is not None:
            judges[row.event] = judge
        elif row.gate and row.gate not in _NOT_ASKED_AGAIN:
            raise LookupError(
                f"`check --base` does not check gate {row.gate!r} of {row.typed!r} again: add a judge to _JUDGES "
                "in tools/workpacket/lifecycle/event_checks.py, or explain in _NOT_ASKED_AGAIN why none is "
                "needed"
            )
    return judges


def _ungated(move: _Move) -> Iterator[EventObjection]:
    judge = _successor if move.event.type == "superseded" else _JUDGE_OF_EVENT.get(move.event.type)
    for unmet in judge(move) if judge is not None else ():
        if not move.around().lifts(unmet):
            yield EventObjection("move_without_gate", move.event, unmet.message)


def _activation(move: _Move) -> list[Problem]:
    refinement = move.event.data["refinement"]
    assert isinstance(refinement, Mapping)
    light = move.event.text("form") == LIGHT_FORM
    if light != move.around().light:
        return [Problem(_NEVER_LIFTED, "the activation names a different form than the packet's document does")]
    if light:
        return [Problem(_NEVER_LIFTED, why) for why in move.around().light_unmet()]
    if move.digest_of(str(refinement["path"])) != refinement["sha256"]:
        return [Problem(_NEVER_LIFTED, f"{refinement['path']} is not the approved refinement")]
    nameless = (
        [] if move.event.text("contract") else [Problem(_NEVER_LIFTED, "the activation does not refer to a contract")]
    )
    points = move.around().open_points()
    path = refinement["path"]
    return [*nameless, *(Problem("coverage_point_open", f"{point!r} is not met in {path}") for point in points)]


def _claim(move: _Move) -> list[Problem]:
    around = move.around()
    missing = (name for name, done in around.dependencies.items() if not done)
    unmet = [Problem("dependency_unmet", f"its dependency {name} was not done") for name in missing]
    # The same condition has another code when a person claims and the packet has no log.
    return [each for each in unmet if not around.lifts(replace(each, code="dependency_unknown_lane"))]


def _successor(move: _Move) -> list[Problem]:
    """Require that the replacement for a packet exists, even though the move has no gate."""
    by = str(move.event.data["by"])
    fit = by in move.around().packets and by != move.event.packet
    return [] if fit else [Problem(_NEVER_LIFTED, f"{by} has no log, so it cannot replace {move.event.packet}")]


def _merge(move: _Move) -> list[Problem]:
    if move.around().contained(move.event):
        return []
    commit = str(move.event.data["commit"])[:12]
    return [Problem(_NEVER_LIFTED, f"neither {commit} nor an equivalent change is in this history")]


def _verdict(move: _Move) -> list[Problem]:
    event = move.event
    found = []
    if event.actor.id in move.workers:
        found.append(Problem("verdict_by_coder", f"{event.actor.id} judged their own work"))
    report = report_of(event)
    if report is not None and not is_vouched_for(report, move.digest_of(report.path), move.reports):
        found.append(Problem(_NEVER_LIFTED, f"report {report.path} is not the one submitted with the verdict"))
    reasoned = move.around().light and event.text("reason")
    if report is None and event.text("verdict") != "CHANGES" and not reasoned:
        found.append(Problem("report_missing", "the verdict has no report"))
    unreplayed = move.around().unreplayed(event) if event.text("verdict") == "PASS" else ""
    if unreplayed:
        found.append(Problem("replay_missing", unreplayed))
    return found


_JUDGES: Final[Mapping[str, Judge]] = {
    "activation": _activation,
    "claim": _claim,
    "submit": lambda move: list(submission_faults(move.event, move.around().submitted(move.event))),
    "verdict": _verdict,
    "containment": _merge,
}
_NOT_ASKED_AGAIN: Final[Mapping[str, str]] = {
    "reason": "the event's schema requires one, so an event without it is refused when the log is read",
}
# Built at import, so that a transition whose gate has no judge fails at import, not for a reviewer.
_JUDGE_OF_EVENT: Final = judges_of(TRANSITIONS)


def judge_actors(log: Log, known: frozenset[str], signatures: EventSignatures) -> Iterator[EventObjection]:
    """Yield objections to the writers of events that are not on the base; `known` are the ids of those that are on
    it."""
    actors = signatures.actors
    if not actors.present:
        return
    for event in log.stored:
        if event.id in known:
            continue
        signed = signatures.judge(event)
        if not signed.proven:
            yield EventObjection(signed.code, event, signed.message)
        if event.type == "verdict.given":
            before = log.ancestry(event.parents)
            for reason in not_apart(event.actor.id, (log.by_id[each] for each in before), actors):
                yield EventObjection(
                    "move_without_gate", event, f"the verdict was not given by a different person: {reason}"
                )


def judge_attested(log: Log, known: frozenset[str], policy: EvidencePolicy) -> Iterator[EventObjection]:
    """Yield objections to new replays that refer to a CI attestation; `known` are the ids of events on the base."""
    for event in log.events:
        if event.id in known or not event.text("attestation"):
            continue  # only a replay has one
        why = attestation_fault(event, log.as_of(event.parents).events, policy)
        if why:
            yield EventObjection("replay_attestation_invalid", event, why)
