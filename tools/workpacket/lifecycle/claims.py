"""Who does the work: prepare, claim, renew, release, handover; and links to the runs that do it.

A link is recorded before its run starts and closed after it has ended. No transaction spans both store and log. In this
order, a crash in between leaves an open link of a run that never started or has ended, but never an active run without
a link.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime, timedelta

from workpacket.ledger.fold import LinkedRun, PacketState
from workpacket.ledger.log import EventWriter, Log, NewLogEvent, next_event
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import (
    Claim,
    claim_unmet,
    held_by_other,
    holder_unmet,
    lease_ended,
    lease_held,
    reminders,
    still_unmet,
)
from workpacket.lifecycle.moves import Answer, Draft, Planned, added_unmet, finished_unmet, move
from workpacket.lifecycle.projections import project
from workpacket.lifecycle.transitions import forward_command, move_unmet, transition
from workpacket.model.canonical import Json
from workpacket.model.plan import Plan, log_seen
from workpacket.problem import Problem
from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.authorship import Declared


def prepare(
    facts: Facts, packet: PacketFacts, *, assignee: str, branch: str, worktree: str, base_commit: str, base_packet: str
) -> Answer:
    """Record where the work will be done, and who will do it. The shell has already created the branch and the work
    tree."""
    name = packet.id.text
    unmet = prepare_unmet(facts, packet)
    if unmet:
        return unmet
    draft = Draft("prepare", facts)
    said: dict[str, Json] = {"assignee": assignee, "branch": branch, "base_commit": base_commit}
    said |= {"worktree": worktree} if worktree else {}
    said |= {"base_packet": base_packet} if base_packet else {}
    draft.happened(packet, "prepared", said)
    where = f" in {worktree}" if worktree else ""
    then = f"{'' if assignee == facts.actor.id else f'{shlex.quote(assignee)} types: '}workpacket claim {name}"
    return Planned(draft.plan(), f"{name} is prepared for {assignee} on {branch}{where}", then, {"id": name, **said})


def prepare_unmet(facts: Facts, packet: PacketFacts) -> tuple[Problem, ...]:
    row = transition("claim")
    if packet.lane in {*row.origins, row.target} and packet.state.sound:
        return ()
    return move_unmet(packet.state, row, facts.policy.lanes)


def claim_refusal(facts: Facts, packet: PacketFacts, branch: str) -> tuple[Problem, ...]:
    """Return everything that prevents the actor from claiming."""
    unmet = finished_unmet(facts, packet) or move_unmet(packet.state, transition("claim"), facts.policy.lanes)
    if unmet and unmet[0].code == "wrong_lane" and packet.state.lane == "IN_PROGRESS":
        return (_claimed(facts, packet, unmet[0]),)
    return unmet or claim_unmet_of_draft(facts, packet, branch)


def _claimed(facts: Facts, packet: PacketFacts, unmet: Problem) -> Problem:
    """Say what an existing claim means for the actor, which depends on who made it."""
    name, state = packet.id.text, packet.state
    if lease_held(state, facts.moment.now) == facts.actor.id:
        submit = forward_command(name, "IN_PROGRESS", facts.policy.lanes, light=packet.light)
        return replace(unmet, hint=f"do the work, commit it with git, then: {submit}")
    other = held_by_other(state, facts.actor.id, facts.moment.now)
    return other or lease_ended(name)


def claim_unmet_of_draft(facts: Facts, packet: PacketFacts, branch: str) -> tuple[Problem, ...]:
    """Return everything other than the lane that prevents the actor from claiming."""
    dependencies = packet.dependencies()
    lanes = {name: _dependency_lane(facts, name) for name in dependencies}
    claim = Claim(facts.actor.id, packet.state.assignment.branch or branch, facts.target_here)
    found = claim_unmet(packet.state, claim, dependencies, lanes, facts.policy, facts.moment.now)
    left = still_unmet(found, packet.state, facts.moment.now, facts.approved)[0]
    return (*left, *added_unmet(facts, packet, transition("claim")))


def _dependency_lane(facts: Facts, name: str) -> str:
    """Return the lane of a dependency; for a base id, the most advanced lane among its revisions."""
    if facts.lane_of(name):
        return facts.lane_of(name)
    lanes = [packet.lane for packet in facts.packets.values() if packet.id.base == name and packet.lane]
    return next((lane for lane in facts.policy.satisfied_by if lane in lanes), lanes[-1] if lanes else "")


def claim(
    facts: Facts,
    packet: PacketFacts,
    *,
    branch: str,
    worktree: str,
    declared: Declared | None = None,
    switched: bool = False,
) -> Answer:
    """Claim the packet. `switched` means that the same command has just checked out its branch."""
    name = packet.id.text
    unmet = claim_refusal(facts, packet, branch)
    if unmet:
        return unmet
    draft = Draft("claim", facts)
    where = packet.state.assignment.branch or branch
    lease = record_claim(draft, packet, branch=where, worktree=worktree, declared=declared)
    project(draft, {name: "IN_PROGRESS"})
    said = f"{facts.actor.id} holds {name} until {lease['expires_at']}" + (f", on {branch}" if switched else "")
    tree = worktree or packet.state.assignment.worktree
    enter = _into(tree, facts.target_branch) if tree else f"git switch {shlex.quote(where)}"
    steps = [] if switched else [enter]
    if left := packet.left_open():
        steps.append(f"fill in {', '.join(left)} in {packet.packet_path}")
    submit = forward_command(name, "IN_PROGRESS", facts.policy.lanes, light=packet.light)
    steps += ["do the work there and commit it", submit]
    return Planned(draft.plan(), said, ", then: ".join(steps), {"id": name, **lease})


def record_claim(
    draft: Draft,
    packet: PacketFacts,
    *,
    branch: str,
    worktree: str = "",
    begun: bool = False,
    declared: Declared | None = None,
) -> dict[str, Json]:
    """Record the claim, and return the lease. `begun`: the same command has just made the packet ready."""
    lease = _lease(draft.facts)
    place: dict[str, Json] = {"branch": branch}
    place |= {"worktree": worktree} if worktree else {}
    place |= {"lane_from": "READY_FOR_DEV"} if begun else {}
    place |= declared.data() if declared is not None else {}
    move(draft, packet, "claimed", "IN_PROGRESS", {**lease, **place})
    return lease


def _into(tree: str, target: str) -> str:
    """Return the command to switch to another work tree. That work tree's log must include the claim; otherwise
    commands there would refuse the holder.
    """
    place = shlex.quote(tree)
    return f"commit the governed files, then: git -C {place} merge {shlex.quote(target)}, then: cd {place}"


def _lease(facts: Facts) -> dict[str, Json]:
    ends = datetime.fromisoformat(facts.moment.now) + timedelta(hours=facts.policy.lease_hours)
    return {
        "holder": facts.actor.id,
        "lease": facts.moment.tx,
        "expires_at": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def renew(facts: Facts, packet: PacketFacts) -> Answer:
    """Extend the holder's lease."""
    name, state = packet.id.text, packet.state
    unmet = move_unmet(state, transition("release"), facts.policy.lanes) or holder_unmet(
        state, facts.actor.id, facts.moment.now
    )
    lease = state.lease
    if not unmet and (lease is None or lease_held(state, facts.moment.now) != facts.actor.id):
        unmet = (lease_ended(name),)
    if unmet or lease is None:
        return unmet
    draft = Draft("claim", facts)
    renewed = {**_lease(facts), "lease": lease.lease or facts.moment.tx}
    draft.happened(packet, "lease.renewed", renewed)
    said = f"{facts.actor.id} holds {name} until {renewed['expires_at']}"
    submit = forward_command(name, "IN_PROGRESS", facts.policy.lanes, light=packet.light)
    return Planned(draft.plan(), said, submit, {"id": name, **renewed})


def release(facts: Facts, packet: PacketFacts, *, reason: str, to: str = "") -> Answer:
    """Release the packet; with `to`, hand it over."""
    name, state = packet.id.text, packet.state
    row = transition("handover" if to else "release")
    unmet = move_unmet(state, row, facts.policy.lanes) or (
        *holder_unmet(state, facts.actor.id, facts.moment.now),
        *added_unmet(facts, packet, row),
    )
    if unmet:
        return unmet
    draft = Draft(row.command, facts)
    data: dict[str, Json] = {"reason": reason, **({"to": to} if to else {})}
    holder = state.lease.holder if state.lease is not None else ""
    data |= {"holder": holder} if holder else {}
    move(draft, packet, row.event, row.target, data)
    project(draft, {name: row.target})
    said = f"{name} was handed over to {to}" if to else f"{name} is ready for dev again"
    then = (f"{shlex.quote(to)} types: " if to else "") + f"workpacket claim {name}"
    notes = reminders(state, "the next holder can resume it or cancel it: workpacket runtime cancel")
    return Planned(draft.plan(), said, then, {"id": name}, notes)


class Ending(Value):
    """How a run ended. `digest` and `events` describe its stream, if the store was read."""

    outcome: str
    code: str = ""
    reason: str = ""
    digest: str = ""
    events: int = 0

    def as_data(self) -> dict[str, Json]:
        said: dict[str, Json] = {"outcome": self.outcome}
        said |= {name: text for name, text in (("code", self.code), ("reason", self.reason)) if text}
        return {**said, "stream_sha256": self.digest, "events": self.events} if self.digest else said


def link_plan(log: Log, state: PacketState, writer: EventWriter, run: str, store: str) -> Plan | None:
    """Return the plan for a link; None if the link already exists."""
    if open_link(state, run, store) is not None:
        return None
    data: dict[str, Json] = {"run": run, "stream": run}
    return _plan(log, writer, NewLogEvent("run.linked", {**data, "store": store} if store else data))


def close_plan(log: Log, writer: EventWriter, run: LinkedRun, ending: Ending) -> Plan:
    return _plan(log, writer, NewLogEvent("run.closed", {**_names(run), **ending.as_data()}))


def open_link(state: PacketState, run: str, store: str) -> LinkedRun | None:
    return next((one for one in state.open_runs if (one.run, one.store) == (run, store)), None)


def close_all(draft: Draft, packet: PacketFacts, outcome: str) -> tuple[str, ...]:
    """Unlink the runs of a packet that has ended, and return a note on each. The runs themselves are not stopped."""
    for run in packet.state.open_runs:
        draft.happened(packet, "run.closed", {**_names(run), **Ending(outcome).as_data()})
    return tuple(
        f"{run.run} is no longer linked; if it is still running: workpacket runtime cancel {shlex.quote(run.run)}"
        for run in packet.state.open_runs
    )


def _names(run: LinkedRun) -> Mapping[str, Json]:
    return {"run": run.run, **({"store": run.store} if run.store else {})}


def _plan(log: Log, writer: EventWriter, happening: NewLogEvent) -> Plan:
    after = [log.by_id[head] for head in log.heads]
    event = next_event(writer, log.packet, happening, after=after)
    return Plan("run", writer.tx, (), (event,), (log_seen(log.packet, log.stored),))
